"""XGBoostJob, kubeflow.org/v1 (training-operator v1.9 pkg/controller.v1/xgboost/xgboost.go)."""

from __future__ import annotations

from stallscope.judge.inputs import ProblemKind
from stallscope.load.kinds.context import Context
from stallscope.load.kinds.flows import collective, dns, metrics, to_rendezvous, webhook
from stallscope.load.kinds.plan import MAX_PODS, Draft, assemble
from stallscope.load.kinds.training_operator import (
    JOB_NAME,
    Family,
    read_roles,
    replica_services,
    with_master,
)
from stallscope.model.kube import KubeObject
from stallscope.model.workload import Rendezvous, RoleKind, TrainingJob

FAMILY = Family(
    kind="XGBoostJob",
    specs="xgbReplicaSpecs",
    container="xgboost",
    port_name="xgboostjob-port",
    port=9999,
    roles=(("Master", RoleKind.COORDINATOR), ("Worker", RoleKind.WORKER)),
    single=("Master",),
)


def expand_xgboostjob(ctx: Context, obj: KubeObject) -> tuple[TrainingJob, ...]:
    """
    The tracker runs on master 0 (MASTER_ADDR, MASTER_PORT); RANK is 0 there and i + 1 on worker i. Workers then link up
    among themselves on ports chosen at run time (Rabit ring and tree). LightGBM uses WORKER_ADDRS the same way.
    """
    plans = read_roles(ctx, obj, FAMILY)
    if not plans:
        return ()
    if plans[0].role.name != "Master":
        ctx.problem(ProblemKind.INVALID, obj, ("spec", FAMILY.specs), "has no Master: the tracker would run nowhere")
        return ()
    plans = (with_master(plans[0]), *plans[1:])
    roles = tuple(p.role for p in plans)
    meeting = Rendezvous(
        address=f"{obj.name}-master-0",
        port=FAMILY.port_in(plans[0]),
        role="Master",
        backend="rabit",
        location=plans[0].role.template.at("spec", "containers"),
    )
    draft = Draft(
        kind="XGBoostJob",
        plans=plans,
        group_labels={JOB_NAME: obj.name},
        rendezvous=meeting,
        flows=(
            *to_rendezvous(roles, meeting, "every worker registers with the Rabit tracker on the master"),
            *collective(roles, "workers link up in a ring and a tree on ports chosen at run time (Rabit)"),
            *dns(roles),
            *metrics(roles),
            webhook("the Training Operator"),
        ),
        services=replica_services(obj, FAMILY, plans, MAX_PODS),
    )
    return (assemble(ctx, obj, draft),)
