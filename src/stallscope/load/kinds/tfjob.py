"""TFJob, kubeflow.org/v1 (training-operator v1.9 pkg/controller.v1/tensorflow)."""

from __future__ import annotations

from stallscope.load.kinds.context import Context
from stallscope.load.kinds.flows import all_pairs, collective, dns, is_ranked, metrics, webhook
from stallscope.load.kinds.plan import MAX_PODS, Draft, RolePlan, assemble
from stallscope.load.kinds.training_operator import (
    JOB_NAME,
    Family,
    launches_of,
    read_roles,
    replica_services,
    with_master,
)
from stallscope.model.kube import KubeObject
from stallscope.model.workload import Rendezvous, RoleKind, TrainingJob

FAMILY = Family(
    kind="TFJob",
    specs="tfReplicaSpecs",
    container="tensorflow",
    port_name="tfjob-port",
    port=2222,
    roles=(
        ("Chief", RoleKind.COORDINATOR),
        ("Master", RoleKind.COORDINATOR),
        ("Worker", RoleKind.WORKER),
        ("PS", RoleKind.SERVER),
        ("Evaluator", RoleKind.OTHER),
    ),
)


def expand_tfjob(ctx: Context, obj: KubeObject) -> tuple[TrainingJob, ...]:
    """
    Every task of TF_CONFIG's cluster speaks gRPC on its tfjob-port. Only multi-worker training on GPUs (no parameter
    servers) uses NCCL besides, on ports chosen at run time; without GPUs its collectives stay on gRPC. The evaluator reads
    checkpoints and talks to nobody.
    """
    plans = read_roles(ctx, obj, FAMILY)
    if not plans:
        return ()
    plans = _mastered(plans)
    launches = launches_of(plans, FAMILY)
    roles = tuple(p.role for p in plans)
    tasks = [r for r in roles if r.kind is not RoleKind.OTHER]
    servers = any(r.kind is RoleKind.SERVER and r.replicas > 0 for r in roles)
    devices = any(launches[r.name].accelerators for r in roles if is_ranked(r))
    first = next((p for p in plans if p.role.kind is not RoleKind.OTHER and p.role.replicas > 0), None)
    ports = sorted({FAMILY.port_in(p) for p in plans if p.role.kind is not RoleKind.OTHER})
    grpc = (
        flow
        for number in ports
        for flow in all_pairs(tasks, number, "TensorFlow tasks speak gRPC to each other (TF_CONFIG)")
        if FAMILY.port_in(next(p for p in plans if p.role.name == flow.destination)) == number
    )
    draft = Draft(
        kind="TFJob",
        plans=plans,
        group_labels={JOB_NAME: obj.name},
        rendezvous=_chief(obj, first) if first else None,
        flows=(
            *grpc,
            *(collective(roles) if devices and not servers else ()),
            *dns(roles),
            *metrics(roles),
            webhook("the Training Operator"),
        ),
        services=replica_services(obj, FAMILY, plans, MAX_PODS),
    )
    return (assemble(ctx, obj, draft),)


def _mastered(plans: tuple[RolePlan, ...]) -> tuple[RolePlan, ...]:
    """job-role=master goes to Chief and Master, else to worker 0 (IsMasterRole)."""
    led = any(p.role.kind is RoleKind.COORDINATOR for p in plans)
    marked = []
    for plan in plans:
        if plan.role.kind is RoleKind.COORDINATOR:
            marked.append(with_master(plan))
        elif plan.role.name == "Worker" and not led:
            marked.append(with_master(plan, only=0))
        else:
            marked.append(plan)
    return tuple(marked)


def _chief(obj: KubeObject, plan: RolePlan) -> Rendezvous:
    host = plan.identify(0).name
    return Rendezvous(
        address=f"{host}.{obj.namespace}.svc",
        port=FAMILY.port_in(plan),
        role=plan.role.name,
        backend="grpc",
        location=plan.role.template.at("spec", "containers"),
    )
