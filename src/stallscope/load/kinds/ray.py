"""Ray on Kubernetes: the cluster every Ray kind holds (kuberay v1.7 controllers/ray/common/{pod,service}.go)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from stallscope.judge.inputs import ProblemKind
from stallscope.load.kinds.context import MAX_COUNT, Context, count, describe, placeholder, template
from stallscope.load.kinds.flows import RANKED, any_port, api_server, collective, service
from stallscope.load.kinds.launch import launch_of, port_of, with_port
from stallscope.load.kinds.plan import PodIdentity, RolePlan, random_name
from stallscope.load.kinds.services import fqdn
from stallscope.model.kube import KubeObject
from stallscope.model.source import Route, as_list, as_map, as_str, as_str_map, dig
from stallscope.model.traffic import EPHEMERAL, Flow, FlowKind, Outside, PortRange, port
from stallscope.model.workload import Gang, JobService, Rendezvous, Role, RoleKind

GCS_PORT, CLIENT_PORT, DASHBOARD_PORT, METRICS_PORT, SERVE_PORT = 6379, 10001, 8265, 8080, 8000
#: Where Ray starts worker processes (ray start: --min-worker-port, --max-worker-port); raylets take ephemeral ports.
WORKER_PORTS = PortRange(10002, 19999)

_HEAD = "head"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """A RayCluster spec: `route` leads to it in `obj`; `name` ends in a random tail when a RayJob makes it."""

    obj: KubeObject
    route: Route
    name: str

    @property
    def spec(self) -> Mapping[str, Any]:
        return as_map(self.obj.get(*self.route))

    @property
    def label(self) -> str:
        """Value of ``ray.io/cluster``."""
        return self.name

    @property
    def head_service(self) -> str:
        return as_str(dig(self.spec, "headGroupSpec", "headService", "metadata", "name")) or f"{self.name}-head-svc"

    @property
    def autoscaling(self) -> bool:
        return self.spec.get("enableInTreeAutoscaling") is True

    def start_port(self, key: str, default: int) -> int:
        """A port of the head's rayStartParams (text in the API), else `default`."""
        value = str(dig(self.spec, "headGroupSpec", "rayStartParams", key, default=""))
        return int(value) if value.isdecimal() and 0 < int(value) < 65536 else default


def read_plans(ctx: Context, cluster: Cluster, notes: list[str]) -> tuple[RolePlan, ...] | None:
    """Head and worker groups; ``None`` after reporting why not."""
    obj, base = cluster.obj, cluster.route
    if not isinstance(obj.get(*base), Mapping):
        value = obj.get(*base)
        kind = ProblemKind.UNRENDERED if placeholder(value) else ProblemKind.INVALID
        what = "is missing" if value is None else f"must be a mapping, found {describe(value)}"
        ctx.problem(kind, obj, base, f"{'.'.join(map(str, base))} {what}")
        return None
    head = _head(ctx, cluster)
    if head is None:
        return None
    plans = [head]
    for index, item in enumerate(as_list(obj.get(*base, "workerGroupSpecs"))):
        plan = _group(ctx, cluster, index, as_map(item), notes)
        if plan is None:
            return None
        plans.append(plan)
    return tuple(plans)


def _head(ctx: Context, cluster: Cluster) -> RolePlan | None:
    route = (*cluster.route, "headGroupSpec", "template")
    found = template(ctx, cluster.obj, route)
    if found is None:
        return None
    first = as_str(dig(as_list(found.spec.get("containers")), 0, "name"))
    devices = launch_of(found.spec).accelerators
    role = Role(
        name=_HEAD,
        kind=RoleKind.COORDINATOR,
        replicas=1,
        template=replace(found, spec=with_port(found.spec, "metrics", METRICS_PORT, first)),
        ranks_per_pod=devices,
        added_labels=_labels(cluster, _HEAD, "headgroup", found.labels, "headGroupSpec"),
        replicas_route=(*cluster.route, "headGroupSpec"),
    )

    def identify(_: int) -> PodIdentity:
        names = (cluster.head_service, fqdn(cluster.head_service, cluster.obj.namespace))
        return PodIdentity(name=f"{cluster.name}-head-*", host_names=names)

    return RolePlan(role=role, identify=identify)


def _group(ctx: Context, cluster: Cluster, index: int, item: Mapping[str, Any], notes: list[str]) -> RolePlan | None:
    obj = cluster.obj
    route = (*cluster.route, "workerGroupSpecs", index)
    name = as_str(item.get("groupName"))
    if not name:
        ctx.problem(ProblemKind.INVALID, obj, route, f"worker group {index} has no groupName")
        return None
    pods = _replicas(ctx, cluster, route, item, name, notes)
    found = template(ctx, obj, (*route, "template"))
    if pods is None or found is None:
        return None
    hosts = item.get("numOfHosts", 1)
    hosts = hosts if isinstance(hosts, int) and hosts > 1 else 1
    first = as_str(dig(as_list(found.spec.get("containers")), 0, "name"))
    role = Role(
        name=name,
        kind=RoleKind.WORKER,
        replicas=pods,
        template=replace(found, spec=with_port(found.spec, "metrics", METRICS_PORT, first)),
        ranks_per_pod=max(launch_of(found.spec).accelerators, 1),
        added_labels=_labels(cluster, "worker", name, found.labels, "workerGroupSpecs", index),
        creation_order=1,
        replicas_route=(*route, "replicas"),
    )
    return RolePlan(role=role, identify=_worker_identifier(cluster, name, hosts, pods))


def _replicas(
    ctx: Context, cluster: Cluster, route: Route, item: Mapping[str, Any], name: str, notes: list[str]
) -> int | None:
    """
    GetWorkerGroupDesiredReplicas: replicas (0) held between minReplicas (0) and maxReplicas (2147483647), times
    numOfHosts (1); nothing while the group is suspended. The autoscaler starts from there.
    """
    obj = cluster.obj
    wanted = count(ctx, obj, (*route, "replicas"), default=0)
    low = count(ctx, obj, (*route, "minReplicas"), default=0)
    high = count(ctx, obj, (*route, "maxReplicas"), default=MAX_COUNT)
    hosts = count(ctx, obj, (*route, "numOfHosts"), default=1)
    if wanted is None or low is None or high is None or hosts is None:
        return None
    if high < low:
        ctx.problem(
            ProblemKind.INVALID, obj, (*route, "maxReplicas"), f"{name}: maxReplicas {high} is below minReplicas {low}"
        )
        return None
    if item.get("suspend") is True:
        notes.append(f"{name} is suspended: no pods")
        return 0
    chosen = min(max(wanted, low), high)
    if cluster.autoscaling and high > chosen:
        top = "no limit" if high == MAX_COUNT else f"at most {high}"
        notes.append(f"{name}: autoscaling from {low} replicas, {top}; judged with the {chosen} it starts with")
    return chosen * hosts


def _labels(cluster: Cluster, node_type: str, group: str, own: Mapping[str, str], *where: str | int) -> dict[str, str]:
    """
    labelPod: three labels nobody can change; the others yield to the template's. The top-level ``labels`` of a group are
    put on its pods too.
    """
    extra = as_str_map(dig(cluster.spec, *where, "labels"))
    soft = {
        "ray.io/is-ray-node": "yes",
        "ray.io/identifier": f"{cluster.label}-{node_type}"[-63:],
        "app.kubernetes.io/name": "kuberay",
        "app.kubernetes.io/created-by": "kuberay-operator",
    }
    fixed = {"ray.io/cluster": cluster.label, "ray.io/node-type": node_type, "ray.io/group": group}
    return {**{k: v for k, v in soft.items() if k not in own}, **extra, **fixed}


def _worker_identifier(cluster: Cluster, group: str, hosts: int, pods: int) -> Callable[[int], PodIdentity]:
    def identify(index: int) -> PodIdentity:
        replica, host = divmod(index, hosts)
        labels = {"ray.io/worker-group-replica-index": str(replica)}
        if hosts > 1:
            labels |= {
                "ray.io/worker-group-replica-name": f"{group}-<random {replica}>",
                "ray.io/replica-host-index": str(host),
            }
        return PodIdentity(name=random_name(f"{cluster.name}-{group}-worker", index, pods), labels=labels)

    return identify


def services_of(cluster: Cluster, plans: tuple[RolePlan, ...], *, owner: str = "") -> tuple[JobService, ...]:
    """
    The head's Service (headless unless a serviceType says otherwise), a second one named after the RayJob or RayService
    (`owner`), and one for all workers when a group has several hosts.
    """
    namespace = cluster.obj.namespace
    kind = as_str(dig(cluster.spec, "headGroupSpec", "serviceType"))
    head = plans[0].role
    keys = (
        "ray.io/cluster",
        "ray.io/node-type",
        "ray.io/identifier",
        "app.kubernetes.io/name",
        "app.kubernetes.io/created-by",
    )
    found = [
        JobService(
            name=name,
            namespace=namespace,
            selector={k: v for k, v in head.added_labels.items() if k in keys},
            headless=kind in ("", "ClusterIP") and dig(cluster.spec, "headGroupSpec", "headService") is None,
            ports=tuple(sorted({gcs_port(cluster), CLIENT_PORT, dashboard_port(cluster), METRICS_PORT, SERVE_PORT})),
        )
        for name in dict.fromkeys((cluster.head_service, *((f"{owner}-head-svc",) if owner else ())))
    ]
    groups = as_list(cluster.spec.get("workerGroupSpecs"))
    if any(isinstance(n := dig(g, "numOfHosts"), int) and n > 1 for g in groups):
        selector = {"ray.io/cluster": cluster.label, "ray.io/node-type": "worker"}
        found.append(JobService(name=f"{cluster.name}-headless", namespace=namespace, selector=selector))
    return tuple(found)


def gcs_port(cluster: Cluster) -> int:
    """rayStartParams.port, else the head's container port ``gcs-server`` (``gcs``), else 6379."""
    spec = as_map(dig(cluster.spec, "headGroupSpec", "template", "spec"))
    declared = port_of(spec, "gcs-server") or port_of(spec, "gcs") or port_of(spec, "redis") or GCS_PORT
    return cluster.start_port("port", declared)


def dashboard_port(cluster: Cluster) -> int:
    spec = as_map(dig(cluster.spec, "headGroupSpec", "template", "spec"))
    return cluster.start_port("dashboard-port", port_of(spec, "dashboard") or DASHBOARD_PORT)


def rendezvous_of(cluster: Cluster) -> Rendezvous:
    """The GCS on the head, which workers reach by the head's Service (FQ_RAY_IP, RAY_ADDRESS)."""
    return Rendezvous(
        address=fqdn(cluster.head_service, cluster.obj.namespace),
        port=gcs_port(cluster),
        role=_HEAD,
        backend="gcs",
        location=cluster.obj.at(*cluster.route, "headGroupSpec"),
    )


def flows_of(cluster: Cluster, plans: tuple[RolePlan, ...], *, operator: bool = False) -> tuple[Flow, ...]:
    """
    Workers join at the GCS; every node's raylet, object manager and workers then dial every other node's, on ports chosen
    at run time (docs.ray.io: "Ports configurations"). `operator`: KubeRay polls the dashboard of a RayJob's cluster.
    """
    roles = [p.role for p in plans if p.role.kind in RANKED]
    head = roles[0].name
    workers = [r for r in roles[1:] if r.replicas > 0]
    number = gcs_port(cluster)
    joins = [service(r.name, head, number, "workers join the cluster at the GCS", kind=FlowKind.LAUNCHER) for r in workers]
    why = "raylets, object managers and workers of all nodes connect to each other on ports chosen at run time"
    mesh = [
        replace(any_port(a.name, b.name, why, FlowKind.SERVICE), ports=(WORKER_PORTS, PortRange(*EPHEMERAL)))
        for a in (roles[0], *workers)
        for b in (roles[0], *workers)
        if a is not b or a.replicas > 1
    ]
    scaler = [api_server(head, "the autoscaler in the head pod changes the RayCluster")] if cluster.autoscaling else []
    polls = Flow(
        kind=FlowKind.SERVICE,
        source=Outside.OPERATOR,
        destination=head,
        ports=(port(dashboard_port(cluster)),),
        reason="KubeRay follows the job through the head's dashboard",
        required=False,
    )
    return (*joins, *mesh, *collective(roles), *scaler, *((polls,) if operator else ()))


def gang_of(obj: KubeObject, total: int) -> Gang | None:
    """``ray.io/gang-scheduling-enabled``: works when KubeRay runs with a batch scheduler, which other labels give away."""
    if "ray.io/gang-scheduling-enabled" not in obj.labels:
        return None
    clues = {"volcano.sh/": "volcano", "yunikorn.apache.org/": "yunikorn", "kai.scheduler/": "kai"}
    words = (*obj.labels, *obj.annotations)
    named = obj.labels.get("ray.io/scheduler-name", "")
    system = named or next((s for prefix, s in clues.items() if any(w.startswith(prefix) for w in words)), "operator")
    return Gang(system=system, min_count=total, location=obj.at("metadata", "labels", "ray.io/gang-scheduling-enabled"))
