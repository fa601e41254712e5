"""RayCluster, RayJob and RayService, ray.io/v1 (kuberay v1.7)."""

from __future__ import annotations

from stallscope.judge.inputs import ProblemKind
from stallscope.load.kinds.batch import job_labels
from stallscope.load.kinds.context import Context, template
from stallscope.load.kinds.flows import dns, metrics, service, webhook
from stallscope.load.kinds.plan import Draft, PodIdentity, RolePlan, assemble
from stallscope.load.kinds.ray import (
    Cluster,
    dashboard_port,
    flows_of,
    gang_of,
    read_plans,
    rendezvous_of,
    services_of,
)
from stallscope.load.kinds.ray_isolation import isolation_of
from stallscope.model.kube import KubeObject
from stallscope.model.source import as_map, as_str, dig
from stallscope.model.traffic import FlowKind
from stallscope.model.workload import PodTemplate, Role, RoleKind, TrainingJob

_ORIGIN = "ray.io/originated-from-cr-name"
_ORIGIN_KIND = "ray.io/originated-from-crd"


def expand_raycluster(ctx: Context, obj: KubeObject) -> tuple[TrainingJob, ...]:
    """A head and worker groups."""
    cluster = Cluster(obj=obj, route=("spec",), name=obj.name)
    return _expand(ctx, obj, cluster, "RayCluster")


def expand_rayservice(ctx: Context, obj: KubeObject) -> tuple[TrainingJob, ...]:
    """The cluster behind a service: listed with its pods, not judged as training."""
    cluster = Cluster(obj=obj, route=("spec", "rayClusterConfig"), name=f"{obj.name}-xxxxx")
    return _expand(ctx, obj, cluster, "RayService", serving=True)


def expand_rayjob(ctx: Context, obj: KubeObject) -> tuple[TrainingJob, ...]:
    """
    A RayCluster with a random tail to its name and, in K8sJobMode (the default), a Job whose pod submits to the head's
    dashboard. The other modes submit from the operator, the head pod, or by hand.
    """
    if obj.get("spec", "rayClusterSpec") is None and as_map(obj.get("spec", "clusterSelector")):
        name = as_str(dig(obj.get("spec", "clusterSelector"), "ray.io/cluster")) or "it selects"
        message = f"runs on the existing RayCluster {name}; only that cluster can be judged"
        hint = f"check the file of RayCluster {name}"
        ctx.problem(ProblemKind.UNSUPPORTED, obj, ("spec", "clusterSelector"), message, hint)
        return ()
    cluster = Cluster(obj=obj, route=("spec", "rayClusterSpec"), name=f"{obj.name}-xxxxx")
    return _expand(ctx, obj, cluster, "RayJob")


def _expand(ctx: Context, obj: KubeObject, cluster: Cluster, kind: str, *, serving: bool = False) -> tuple[TrainingJob, ...]:
    notes: list[str] = []
    plans = read_plans(ctx, cluster, notes)
    if plans is None:
        return ()
    submits = kind == "RayJob" and as_str(obj.get("spec", "submissionMode"), "K8sJobMode") == "K8sJobMode"
    submitter = _submitter(ctx, obj, cluster) if submits else None
    if submits and submitter is None:
        return ()
    flows = list(flows_of(cluster, plans, operator=kind == "RayJob"))
    if submitter is not None:
        why = "the submitter sends the job to the head's dashboard"
        number = dashboard_port(cluster)
        flows.append(service(submitter.role.name, plans[0].role.name, number, why, kind=FlowKind.LAUNCHER))
    if kind != "RayCluster":
        notes.append(f"the RayCluster's name gets a random tail ({cluster.name})")
    if serving:
        notes.append("not judged as training: a RayService serves")
    roles = (*(p.role for p in plans), *((submitter.role,) if submitter else ()))
    talking = sum(r.replicas for r in roles)
    draft = Draft(
        kind=kind,
        plans=(*plans, *((submitter,) if submitter else ())),
        group_labels={"ray.io/cluster": cluster.label},
        rendezvous=rendezvous_of(cluster),
        flows=() if serving else (*flows, *dns(roles), *metrics(roles), webhook("KubeRay")),
        services=services_of(cluster, plans, owner="" if kind == "RayCluster" else obj.name),
        gang=gang_of(obj, talking),
        extra_objects=isolation_of(cluster, submitter=_submitter_labels(obj) if submitter else None),
        distributed=False if serving else None,
        notes=tuple(notes),
    )
    return (assemble(ctx, obj, draft),)


def _submitter(ctx: Context, obj: KubeObject, cluster: Cluster) -> RolePlan | None:
    """submitterPodTemplate, else a pod of the head's image (getSubmitterTemplate, GetDefaultSubmitterContainer)."""
    route = ("spec", "submitterPodTemplate")
    if obj.get(*route) is not None:
        found = template(ctx, obj, route)
    else:
        image = dig(cluster.spec, "headGroupSpec", "template", "spec", "containers", 0, "image")
        limits = {"requests": {"cpu": "500m", "memory": "200Mi"}, "limits": {"cpu": "1", "memory": "1Gi"}}
        container = {"name": "ray-job-submitter", "image": image, "resources": limits}
        found = PodTemplate(
            spec={"containers": [container], "restartPolicy": "Never"},
            source=obj,
            route=route,
            patchable=False,
            why_not="KubeRay makes the submitter pod; write spec.submitterPodTemplate to change it",
        )
    if found is None:
        return None
    role = Role(
        name="submitter",
        kind=RoleKind.LAUNCHER,
        replicas=1,
        template=found,
        ranks_per_pod=0,
        added_labels={
            **_submitter_labels(obj),
            "app.kubernetes.io/created-by": "kuberay-operator",
            **job_labels(obj.name),
        },
        # The submitter Job is made once the cluster is ready.
        creation_order=2,
        replicas_route=route,
    )
    return RolePlan(role=role, identify=lambda _: PodIdentity(name=f"{obj.name}-*"))


def _submitter_labels(obj: KubeObject) -> dict[str, str]:
    return {_ORIGIN: obj.name, _ORIGIN_KIND: "RayJob"}
