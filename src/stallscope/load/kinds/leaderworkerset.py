"""LeaderWorkerSet, leaderworkerset.x-k8s.io/v1 (lws v0.10 pkg/controllers, pkg/webhooks/pod_webhook.go)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from stallscope.load.kinds.context import Context, count, template
from stallscope.load.kinds.exclusive import with_exclusive
from stallscope.load.kinds.flows import collective, dns, metrics, webhook
from stallscope.load.kinds.generic import network_of
from stallscope.load.kinds.launch import launch_of, ranks_per_pod
from stallscope.load.kinds.plan import Draft, PodIdentity, RolePlan, assemble
from stallscope.load.kinds.services import fqdn
from stallscope.model.kube import KubeObject
from stallscope.model.workload import JobService, PodTemplate, Role, RoleKind, TrainingJob

PREFIX = "leaderworkerset.sigs.k8s.io"
NAME = f"{PREFIX}/name"
_KEY = f"{PREFIX}/group-key"
_TEMPLATE = ("spec", "leaderWorkerTemplate")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Set:
    """One LeaderWorkerSet: groups of `size` pods; `unique`: every group has its own Service."""

    name: str
    namespace: str
    groups: int
    size: int
    unique: bool
    subgroup: int
    excluded: bool

    def leader(self, group: int) -> str:
        return f"{self.name}-{group}"

    def subdomain(self, group: int) -> str:
        return self.leader(group) if self.unique else self.name


def expand_leaderworkerset(ctx: Context, obj: KubeObject) -> tuple[TrainingJob, ...]:
    """
    `replicas` groups of one leader (index 0) and size - 1 workers. Groups never talk to each other, so the job is the
    first group and `copies` says how many there are.
    """
    groups = count(ctx, obj, ("spec", "replicas"), default=1)
    size = count(ctx, obj, (*_TEMPLATE, "size"), default=1, minimum=1)
    worker = template(ctx, obj, (*_TEMPLATE, "workerTemplate"))
    if groups is None or size is None or worker is None:
        return ()
    leader = template(ctx, obj, (*_TEMPLATE, "leaderTemplate"), optional=True)
    if leader is None and obj.get(*_TEMPLATE, "leaderTemplate") is not None:
        return ()
    subgroup = obj.get(*_TEMPLATE, "subGroupPolicy", "subGroupSize")
    shape = _Set(
        name=obj.name,
        namespace=obj.namespace,
        groups=groups,
        size=size,
        unique=obj.get("spec", "networkConfig", "subdomainPolicy") == "UniquePerReplica",
        subgroup=subgroup if isinstance(subgroup, int) and not isinstance(subgroup, bool) and subgroup > 0 else 0,
        excluded=obj.get(*_TEMPLATE, "subGroupPolicy", "subGroupPolicyType") == "LeaderExcluded",
    )
    templates = {"leader": leader or worker, "worker": worker}
    late = obj.get("spec", "startupPolicy") == "LeaderReady"
    notes = [f"{groups} groups alike: the first is judged, the others never talk to it"] if groups > 1 else []
    if groups == 0:
        notes.append("no group at all (replicas 0)")
    plans: list[RolePlan] = []
    launches = {}
    for name, kind in (("leader", RoleKind.COORDINATOR), ("worker", RoleKind.WORKER)):
        pods = (1 if name == "leader" else size - 1) if groups else 0
        effective = _effective(obj, templates[name])
        launches[name] = launch_of(effective.spec, fields=_fields(shape))
        launches[name] = replace(launches[name], env={**_variables(shape), **launches[name].env})
        ranks, note = ranks_per_pod(launches[name])
        notes += [f"{name}: {note}"] if note else []
        role = Role(
            name=name,
            kind=kind,
            replicas=pods,
            template=effective,
            ranks_per_pod=ranks,
            added_labels={NAME: obj.name, f"{PREFIX}/template-revision-hash": f"<revision of {obj.name}>"},
            # The worker StatefulSet is made once the leader pod exists, or is ready (LeaderReady).
            creation_order=(2 if late else 1) if name == "worker" else 0,
            replicas_route=("spec", "replicas") if name == "leader" else (*_TEMPLATE, "size"),
        )
        plans.append(RolePlan(role=role, identify=_identifier(shape, worker=name == "worker")))
    services = (_service(shape),)
    net = network_of(plans, launches, obj.namespace, services)
    roles = tuple(p.role for p in plans)
    draft = Draft(
        kind="LeaderWorkerSet",
        plans=tuple(plans),
        group_labels={NAME: obj.name, f"{PREFIX}/group-index": "0"} if groups > 1 else {NAME: obj.name},
        rendezvous=net.rendezvous,
        flows=(*(net.flows or collective(roles)), *dns(roles), *metrics(roles), webhook("the LWS controller")),
        services=services,
        copies=max(groups, 1),
        notes=(*notes, *net.notes),
        unsupported=net.unsupported,
    )
    return (assemble(ctx, obj, draft),)


def _effective(obj: KubeObject, found: PodTemplate) -> PodTemplate:
    """The template with the affinities of ``exclusive-topology``: a group stays in one domain that no other group uses."""
    key = obj.annotations.get(f"{PREFIX}/exclusive-topology", "")
    return replace(found, spec=with_exclusive(found.spec, key, _KEY)) if key else found


def _variables(shape: _Set) -> Mapping[str, str]:
    """What AddLWSVariables puts into every container."""
    address = f"{shape.leader(0)}.{shape.subdomain(0)}.{shape.namespace}"
    return {"LWS_LEADER_ADDRESS": address, "LWS_GROUP_SIZE": str(shape.size)}


def _fields(shape: _Set) -> dict[str, str]:
    return {"metadata.namespace": shape.namespace, f"metadata.labels['{NAME}']": shape.name}


def _identifier(shape: _Set, *, worker: bool) -> Callable[[int], PodIdentity]:
    def identify(index: int) -> PodIdentity:
        group, place = 0, index + 1 if worker else 0
        host = f"{shape.leader(group)}-{place}" if worker else shape.leader(group)
        labels = {
            f"{PREFIX}/group-index": str(group),
            f"{PREFIX}/worker-index": str(place),
            _KEY: _sha1(f"{shape.namespace}/{shape.leader(group)}"),
            "apps.kubernetes.io/pod-index": str(place if worker else group),
            "statefulset.kubernetes.io/pod-name": host,
            **_subgroup(shape, group, place),
        }
        domain = shape.subdomain(group)
        names = (f"{host}.{domain}", fqdn(f"{host}.{domain}", shape.namespace))
        return PodIdentity(name=host, labels=labels, host_names=names)

    return identify


def _subgroup(shape: _Set, group: int, place: int) -> dict[str, str]:
    """Labels of subGroupPolicy (getSubGroupIndex): an odd pod out means the leader is extra and counts to subgroup 0."""
    if not shape.subgroup or (place == 0 and shape.excluded):
        return {}
    extra = (shape.size - 1) % shape.subgroup == 0 and shape.size % shape.subgroup != 0
    number = 0 if place == 0 else (place - 1 if extra else place) // shape.subgroup
    return {
        f"{PREFIX}/subgroup-index": str(number),
        f"{PREFIX}/subgroup-key": _sha1(f"{shape.leader(group)}/{number}"),
    }


def _service(shape: _Set) -> JobService:
    selector: dict[str, Any] = {NAME: shape.name}
    if shape.unique:
        selector[f"{PREFIX}/group-index"] = "0"
    return JobService(name=shape.subdomain(0), namespace=shape.namespace, selector=selector)


def _sha1(text: str) -> str:
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
