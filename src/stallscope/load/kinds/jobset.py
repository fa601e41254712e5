"""JobSet, jobset.x-k8s.io/v1alpha2 (jobset v0.12 pkg/controllers/jobset_controller.go, pkg/webhooks/jobset_webhook.go)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from stallscope.judge.inputs import ProblemKind
from stallscope.load.kinds.batch import job_labels, parallel_pods
from stallscope.load.kinds.context import Context, count, describe, named_items, placeholder, template
from stallscope.load.kinds.exclusive import with_exclusive
from stallscope.load.kinds.flows import dns, metrics, webhook
from stallscope.load.kinds.generic import network_of
from stallscope.load.kinds.launch import Launch, launch_of, ranks_per_pod
from stallscope.load.kinds.plan import Draft, PodIdentity, RolePlan, assemble, random_name
from stallscope.load.kinds.services import fqdn
from stallscope.model.kube import KubeObject
from stallscope.model.source import Route, as_list, as_map, as_str, as_str_map, dig
from stallscope.model.workload import JobService, PodTemplate, Role, RoleKind, TrainingJob

PREFIX = "jobset.sigs.k8s.io"
JOBSET_NAME = f"{PREFIX}/jobset-name"
_EXCLUSIVE = "alpha.jobset.sigs.k8s.io/exclusive-topology"
_BY_LABEL = "exclusive placement by node labels that a script sets (alpha.jobset.sigs.k8s.io/node-selector)"
_LEADERS = ("leader", "launcher", "driver", "master", "coordinator", "chief", "head")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicatedJob:
    """One entry of ``replicatedJobs`` after defaulting: `replicas` Jobs of `parallelism` pods each."""

    name: str
    replicas: int
    parallelism: int
    template: PodTemplate
    group: str = "default"
    depends_on: tuple[tuple[str, str], ...] = ()
    by_label: bool = False
    indexed: bool = True
    replicas_route: Route = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A JobSet as its controller sees it; `subdomain` empty: DNS host names are switched off."""

    name: str
    namespace: str
    jobs: tuple[ReplicatedJob, ...]
    subdomain: str
    publish_not_ready: bool = True
    in_order: bool = False
    coordinator: str = ""


def expand_jobset(ctx: Context, obj: KubeObject) -> tuple[TrainingJob, ...]:
    """
    Pods of all replicated jobs are ranks, in the order of the spec. JobSet is made for distributed work and gives every
    pod a name in one headless Service, so more than one pod means peers.
    """
    shape = read_shape(ctx, obj)
    if shape is None:
        return ()
    launches = {j.name: launch_of(j.template.spec, fields=fields_of(shape, j)) for j in shape.jobs}
    plans, notes = plans_of(shape, launches, role_kinds(shape))
    services = services_of(shape)
    net = network_of(plans, launches, shape.namespace, services, slices=sum(j.replicas for j in shape.jobs))
    roles = tuple(p.role for p in plans)
    draft = Draft(
        kind="JobSet",
        plans=plans,
        group_labels={JOBSET_NAME: shape.name},
        rendezvous=net.rendezvous,
        flows=(*net.flows, *dns(roles), *metrics(roles), webhook("the JobSet controller")),
        services=services,
        leader_first=True,
        notes=(*notes, *net.notes),
        unsupported=(*net.unsupported, *(f"{j.name}: {_BY_LABEL}" for j in shape.jobs if j.by_label)),
    )
    return (assemble(ctx, obj, draft),)


def read_shape(ctx: Context, obj: KubeObject) -> Shape | None:
    """The JobSet's shape with the webhook's defaults; ``None`` after reporting why not."""
    route: Route = ("spec", "replicatedJobs")
    items = obj.get(*route)
    if not as_list(items):
        kind = ProblemKind.UNRENDERED if placeholder(items) else ProblemKind.INVALID
        what = "has no entries" if items is None or items == [] else f"must be a list, found {describe(items)}"
        ctx.problem(kind, obj, route, f"spec.replicatedJobs {what}")
        return None
    jobs: list[ReplicatedJob] = []
    for index, name, item in named_items(obj, *route):
        job = read_replicated_job(ctx, obj, (*route, index), name, item)
        if job is None:
            return None
        jobs.append(job)
    if not jobs:
        ctx.problem(ProblemKind.INVALID, obj, route, "spec.replicatedJobs has no entry with a name")
        return None
    network = as_map(obj.get("spec", "network"))
    subdomain = as_str(network.get("subdomain")) or obj.name
    hostnames = network.get("enableDNSHostnames") is not False
    return Shape(
        name=obj.name,
        namespace=obj.namespace,
        jobs=tuple(jobs),
        subdomain=subdomain if hostnames else "",
        publish_not_ready=network.get("publishNotReadyAddresses") is not False,
        in_order=obj.get("spec", "startupPolicy", "startupPolicyOrder") == "InOrder",
        coordinator=coordinator_of(obj, subdomain),
    )


def read_replicated_job(
    ctx: Context, obj: KubeObject, route: Route, name: str, item: Mapping[str, Any]
) -> ReplicatedJob | None:
    """One entry; replicas default to 1, pods are min(parallelism, completions)."""
    replicas = count(ctx, obj, (*route, "replicas"), default=1)
    parallelism = parallel_pods(ctx, obj, (*route, "template", "spec"))
    found = template(ctx, obj, (*route, "template", "spec", "template"))
    if replicas is None or parallelism is None or found is None:
        return None
    key, by_label = _exclusive(obj, item)
    if key and not by_label:
        found = replace(found, spec=with_exclusive(found.spec, key, f"{PREFIX}/job-key", everywhere=True))
    return ReplicatedJob(
        name=name,
        replicas=replicas,
        parallelism=parallelism,
        template=found,
        by_label=by_label,
        group=as_str(item.get("groupName"), "default"),
        depends_on=tuple((as_str(dig(d, "name")), as_str(dig(d, "status"))) for d in as_list(item.get("dependsOn"))),
        indexed=dig(item, "template", "spec", "completionMode") != "NonIndexed",
        replicas_route=(*route, "replicas"),
    )


def _exclusive(obj: KubeObject, item: Mapping[str, Any]) -> tuple[str, bool]:
    """Topology key of exclusive placement (the JobSet's, else the replicated job's), and whether it works by node labels."""
    own = as_str_map(dig(item, "template", "metadata", "annotations"))
    for notes in (obj.annotations, own):
        if notes.get(_EXCLUSIVE):
            return notes[_EXCLUSIVE], "alpha.jobset.sigs.k8s.io/node-selector" in notes
    return "", False


def coordinator_of(obj: KubeObject, subdomain: str) -> str:
    """``spec.coordinator`` as the endpoint the label carries (CoordinatorEndpoint); empty when there is none."""
    spec = obj.get("spec", "coordinator")
    if not isinstance(spec, Mapping) or not as_str(spec.get("replicatedJob")):
        return ""
    parts = [spec.get(k) if isinstance(spec.get(k), int) else 0 for k in ("jobIndex", "podIndex")]
    return f"{obj.name}-{spec['replicatedJob']}-{parts[0]}-{parts[1]}.{subdomain}"


def plans_of(
    shape: Shape, launches: Mapping[str, Launch], kinds: Mapping[str, RoleKind]
) -> tuple[tuple[RolePlan, ...], tuple[str, ...]]:
    """A role a replicated job; `kinds` says what each does."""
    total = sum(j.replicas for j in shape.jobs)
    sizes: dict[str, int] = {}
    for job in shape.jobs:
        sizes[job.group] = sizes.get(job.group, 0) + job.replicas
    plans: list[RolePlan] = []
    notes: list[str] = []
    seen = 0
    in_group: dict[str, int] = {}
    order = creation_orders(shape)
    for job in shape.jobs:
        ranks, note = ranks_per_pod(launches[job.name], None)
        notes += [f"{job.name}: {note}"] if note else []
        labels = {
            JOBSET_NAME: shape.name,
            f"{PREFIX}/jobset-uid": f"<uid of {shape.name}>",
            f"{PREFIX}/replicatedjob-name": job.name,
            f"{PREFIX}/restart-attempt": "0",
            f"{PREFIX}/replicatedjob-replicas": str(job.replicas),
            f"{PREFIX}/global-replicas": str(total),
            f"{PREFIX}/group-name": job.group,
            f"{PREFIX}/group-replicas": str(sizes[job.group]),
            **({f"{PREFIX}/coordinator": shape.coordinator} if shape.coordinator else {}),
        }
        role = Role(
            name=job.name,
            kind=kinds[job.name],
            replicas=job.replicas * job.parallelism,
            template=job.template,
            ranks_per_pod=ranks,
            added_labels=labels,
            creation_order=order[job.name],
            replicas_route=job.replicas_route,
        )
        plans.append(RolePlan(role=role, identify=_identifier(shape, job, seen, in_group.get(job.group, 0))))
        seen += job.replicas
        in_group[job.group] = in_group.get(job.group, 0) + job.replicas
    return tuple(plans), tuple(notes)


def role_kinds(shape: Shape) -> dict[str, RoleKind]:
    """
    What each replicated job does. One that others wait for to *complete* is gone before they start: no rank. One of a
    single pod leads when ``spec.coordinator`` or its name says so, or when it stands first before larger ones.
    """
    early = {d for job in shape.jobs for d, status in job.depends_on if status == "Complete"}
    kinds = {j.name: RoleKind.OTHER if j.name in early else RoleKind.WORKER for j in shape.jobs}
    ranked = [j for j in shape.jobs if j.name not in early]
    alone = [j.name for j in ranked if j.replicas * j.parallelism == 1]
    named = [n for n in alone if shape.coordinator.startswith(f"{shape.name}-{n}-") or n.lower() in _LEADERS]
    first = [j.name for j in ranked[:1] if j.name in alone and len(alone) < len(ranked)]
    for name in (named or first)[:1] if len(ranked) > 1 else ():
        kinds[name] = RoleKind.COORDINATOR
    return kinds


def creation_orders(shape: Shape) -> dict[str, int]:
    """
    ``startupPolicy: InOrder`` and ``dependsOn`` make later replicated jobs wait; otherwise Jobs are created in the order
    of the spec, one replicated job after the other within one reconcile.
    """
    orders: dict[str, int] = {}
    for index, job in enumerate(shape.jobs):
        waited = [orders[d] + 1 for d, _ in job.depends_on if d in orders]
        orders[job.name] = index if shape.in_order else max(waited, default=0)
    return orders


def _identifier(shape: Shape, job: ReplicatedJob, before: int, before_in_group: int) -> Callable[[int], PodIdentity]:
    def identify(index: int) -> PodIdentity:
        job_index, pod_index = divmod(index, max(job.parallelism, 1))
        owner = f"{shape.name}-{job.name}-{job_index}"
        labels = {
            f"{PREFIX}/job-index": str(job_index),
            f"{PREFIX}/job-key": hashlib.sha1(f"{shape.namespace}/{owner}".encode(), usedforsecurity=False).hexdigest(),
            f"{PREFIX}/job-global-index": str(before + job_index),
            f"{PREFIX}/job-group-index": str(before_in_group + job_index),
            **job_labels(owner, pod_index if job.indexed else None),
        }
        if not job.indexed:
            return PodIdentity(name=random_name(owner, pod_index, job.parallelism), labels=labels)
        host = f"{owner}-{pod_index}"
        names = (f"{host}.{shape.subdomain}", fqdn(f"{host}.{shape.subdomain}", shape.namespace)) if shape.subdomain else ()
        return PodIdentity(name=f"{host}-*", labels=labels, host_names=names)

    return identify


def services_of(shape: Shape) -> tuple[JobService, ...]:
    """The headless Service named like the subdomain that selects every pod of the JobSet."""
    if not shape.subdomain:
        return ()
    return (
        JobService(
            name=shape.subdomain,
            namespace=shape.namespace,
            selector={JOBSET_NAME: shape.name},
            publish_not_ready=shape.publish_not_ready,
        ),
    )


def fields_of(shape: Shape, job: ReplicatedJob) -> dict[str, str]:
    """Downward-API values every pod of a replicated job shares."""
    total = sum(j.replicas for j in shape.jobs)
    values = {
        JOBSET_NAME: shape.name,
        f"{PREFIX}/replicatedjob-name": job.name,
        f"{PREFIX}/replicatedjob-replicas": str(job.replicas),
        f"{PREFIX}/global-replicas": str(total),
        **({f"{PREFIX}/coordinator": shape.coordinator} if shape.coordinator else {}),
    }
    return {"metadata.namespace": shape.namespace} | {
        f"metadata.{where}['{key}']": value for key, value in values.items() for where in ("labels", "annotations")
    }
