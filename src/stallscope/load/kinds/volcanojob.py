"""Volcano Job, batch.volcano.sh/v1alpha1 (volcano v1.15 pkg/controllers/job, pkg/webhooks/admission/jobs/mutate)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from stallscope.judge.inputs import ProblemKind
from stallscope.load.kinds import volcano_plugins as plugged
from stallscope.load.kinds.context import Context, count, describe, placeholder, template
from stallscope.load.kinds.flows import dns, metrics, webhook
from stallscope.load.kinds.generic import network_of
from stallscope.load.kinds.launch import Launch, launch_of, ranks_per_pod
from stallscope.load.kinds.plan import Draft, PodIdentity, RolePlan, assemble
from stallscope.load.kinds.services import fqdn
from stallscope.model.kube import KubeObject
from stallscope.model.source import Route, as_list, as_map, as_str, dig
from stallscope.model.traffic import Flow
from stallscope.model.workload import Gang, Role, RoleKind, TrainingJob

_SERVERS = ("ps", "server", "scheduler")
_LEADERS = ("master", "chief", "leader", "head", "launcher")


def expand_volcanojob(ctx: Context, obj: KubeObject) -> tuple[TrainingJob, ...]:
    """
    One role a task. Pods are peers when a framework plugin, a launcher or a collective's variable says so; other Volcano
    jobs are listed, since they ask to start together, but no peer edges are claimed.
    """
    plugins = plugged.plugins_of(obj)
    tasks = _tasks(ctx, obj)
    if tasks is None:
        return ()
    launches = {p.role.name: launch_of(p.role.template.spec) for p in tasks}
    kinds = plugged.role_kinds(plugins)
    plans = tuple(_ranked(obj, p, kinds, launches[p.role.name], named="svc" in plugins) for p in tasks)
    roles = tuple(p.role for p in plans)
    services = plugged.services_of(obj, plugins)
    framework = plugged.framework_of(plugins)
    if framework:
        meeting = plugged.rendezvous_of(plugins, plans)
        flows: tuple[Flow, ...] = plugged.flows_of(plugins, roles, meeting)
        notes: tuple[str, ...] = (f"plugin {framework}",)
        unsupported: tuple[str, ...] = ()
    else:
        net = network_of(plans, launches, obj.namespace, services)
        meeting, flows, notes, unsupported = net.rendezvous, net.flows, net.notes, net.unsupported
    word = framework or next((x.telltale for x in launches.values() if x.telltale), "")
    peers = bool(word) and sum(r.replicas for r in roles) > 1
    draft = Draft(
        kind="Job",
        plans=plans,
        group_labels={plugged.JOB_NAME: obj.name},
        rendezvous=meeting if peers else None,
        flows=(*((*flows, *dns(roles)) if peers else ()), *metrics(roles), webhook("Volcano", 8443)),
        services=services,
        leader_first=True,
        gang=_gang(obj, roles),
        extra_objects=plugged.network_policy(obj, plugins),
        distributed=peers,
        notes=notes if peers else ("not distributed: nothing shows that its pods talk to each other",),
        unsupported=unsupported if peers else (),
    )
    job = assemble(ctx, obj, draft)
    # The webhook fills in schedulerName on the Job, and pods without one inherit it.
    scheduler = as_str(obj.get("spec", "schedulerName")) or "volcano"
    named = any(as_str(r.template.spec.get("schedulerName")) for r in roles)
    return (job if named else replace(job, scheduler_name=scheduler),)


def _tasks(ctx: Context, obj: KubeObject) -> tuple[RolePlan, ...] | None:
    route: Route = ("spec", "tasks")
    items = obj.get(*route)
    if not as_list(items):
        kind = ProblemKind.UNRENDERED if placeholder(items) else ProblemKind.INVALID
        what = "has no entries" if items is None or items == [] else f"must be a list, found {describe(items)}"
        ctx.problem(kind, obj, route, f"spec.tasks {what}")
        return None
    orders: dict[str, int] = {}
    plans: list[RolePlan] = []
    for index, item in enumerate(as_list(items)):
        name = as_str(dig(item, "name")) or f"default{index}"
        replicas = count(ctx, obj, (*route, index, "replicas"), default=0)
        found = template(ctx, obj, (*route, index, "template"))
        if replicas is None or found is None:
            return None
        waits = [as_str(n) for n in as_list(dig(item, "dependsOn", "name"))]
        orders[name] = max((orders[n] + 1 for n in waits if n in orders), default=0)
        if any(n == name for n in (p.role.name for p in plans)):
            ctx.problem(ProblemKind.INVALID, obj, (*route, index, "name"), f"two tasks are called {name}")
            return None
        labels = {
            plugged.JOB_NAME: obj.name,
            "volcano.sh/job-namespace": obj.namespace,
            "volcano.sh/task-spec": name,
            "volcano.sh/queue-name": as_str(obj.get("spec", "queue")) or "default",
        }
        group = {"scheduling.k8s.io/group-name": f"{obj.name}-<uid of {obj.name}>"}
        role = Role(
            name=name,
            kind=RoleKind.WORKER,
            replicas=replicas,
            template=replace(found, annotations={**found.annotations, **group}),
            added_labels=labels,
            creation_order=orders[name],
            replicas_route=(*route, index, "replicas"),
        )
        plans.append(RolePlan(role=role, identify=_identifier(obj, name, as_map(item), named=False)))
    return tuple(plans)


def _ranked(obj: KubeObject, plan: RolePlan, kinds: Mapping[str, RoleKind], launch: Launch, *, named: bool) -> RolePlan:
    kind = kinds.get(plan.role.name) or _guess(plan.role, launch, framework=bool(kinds))
    ranks = ranks_per_pod(launch)[0] if kind in (RoleKind.COORDINATOR, RoleKind.WORKER) else 0
    item = next(t for t in as_list(obj.get("spec", "tasks")) if _name_of(obj, t) == plan.role.name)
    return RolePlan(
        role=replace(plan.role, kind=kind, ranks_per_pod=ranks),
        identify=_identifier(obj, plan.role.name, as_map(item), named=named),
    )


def _name_of(obj: KubeObject, item: Any) -> str:
    tasks: Sequence[Any] = as_list(obj.get("spec", "tasks"))
    return as_str(dig(item, "name")) or f"default{next(i for i, t in enumerate(tasks) if t is item)}"


def _guess(role: Role, launch: Launch, *, framework: bool) -> RoleKind:
    """A task no plugin names: mpirun makes a launcher, a telling name a server or a leader, else a worker."""
    words = role.name.lower().replace("_", "-").split("-")
    if framework:
        return RoleKind.OTHER
    if any(w in launch.text for w in ("mpirun", "mpiexec", "horovodrun")):
        return RoleKind.LAUNCHER
    if any(w in _SERVERS for w in words):
        return RoleKind.SERVER
    return RoleKind.COORDINATOR if role.replicas == 1 and any(w in _LEADERS for w in words) else RoleKind.WORKER


def _identifier(obj: KubeObject, task: str, item: Mapping[str, Any], *, named: bool) -> Callable[[int], PodIdentity]:
    size = dig(item, "partitionPolicy", "partitionSize")
    subdomain = as_str(dig(item, "template", "spec", "subdomain")) or (obj.name if named else "")
    hostname = as_str(dig(item, "template", "spec", "hostname"))

    def identify(index: int) -> PodIdentity:
        pod = f"{obj.name}-{task}-{index}"
        labels = {"volcano.sh/task-index": str(index)}
        if isinstance(size, int) and size > 0:
            labels["volcano.sh/partition-id"] = str(index // size)
        host = f"{hostname or pod}.{subdomain}"
        names = (host, fqdn(host, obj.namespace)) if subdomain else ()
        return PodIdentity(name=pod, labels=labels, host_names=names)

    return identify


def _gang(obj: KubeObject, roles: Sequence[Role]) -> Gang:
    """minAvailable (0 or absent: the sum of the tasks' minAvailable, else replicas), and networkTopology."""
    said = obj.get("spec", "minAvailable")
    least = said if isinstance(said, int) and not isinstance(said, bool) and said > 0 else _sum(obj, roles)
    topology = obj.get("spec", "networkTopology")
    tier = dig(topology, "highestTierAllowed")
    mode = as_str(dig(topology, "mode"), "hard") if isinstance(topology, Mapping) else ""
    route: Route = ("spec", "networkTopology") if mode else ("spec", "minAvailable")
    return Gang(
        system="volcano",
        min_count=least,
        topology_key=f"tier {tier}" if isinstance(tier, int) else as_str(dig(topology, "highestTierName")),
        mode={"hard": "required", "soft": "preferred"}.get(mode, ""),
        location=obj.at(*route),
    )


def _sum(obj: KubeObject, roles: Sequence[Role]) -> int:
    own = [dig(t, "minAvailable") for t in as_list(obj.get("spec", "tasks"))]
    return sum(n if isinstance(n, int) else r.replicas for n, r in zip(own, roles, strict=False))
