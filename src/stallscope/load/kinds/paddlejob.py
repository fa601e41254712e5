"""PaddleJob, kubeflow.org/v1 (training-operator v1.9 pkg/controller.v1/paddlepaddle/envvar.go)."""

from __future__ import annotations

from dataclasses import replace

from stallscope.load.kinds.context import Context
from stallscope.load.kinds.flows import collective, dns, metrics, service, to_rendezvous, webhook
from stallscope.load.kinds.launch import Launch
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
from stallscope.model.traffic import FlowKind
from stallscope.model.workload import Rendezvous, RoleKind, TrainingJob

FAMILY = Family(
    kind="PaddleJob",
    specs="paddleReplicaSpecs",
    container="paddle",
    port_name="master",
    port=36543,
    roles=(("Master", RoleKind.SERVER), ("Worker", RoleKind.WORKER)),
)


def expand_paddlejob(ctx: Context, obj: KubeObject) -> tuple[TrainingJob, ...]:
    """
    Without a Master the job is collective and worker 0 hosts PADDLE_MASTER; with one the Masters are parameter servers
    (PADDLE_SERVER_NUM) and Master 0 hosts it. ``paddle.distributed.launch`` starts one rank a device.
    """
    plans = read_roles(ctx, obj, FAMILY)
    if not plans:
        return ()
    launches = launches_of(plans, FAMILY)
    plans = tuple(_marked(p, launches[p.role.name]) for p in plans)
    first = plans[0]
    roles = tuple(p.role for p in plans)
    meeting = Rendezvous(
        address=first.identify(0).name,
        port=FAMILY.port_in(first),
        role=first.role.name,
        backend="paddle",
        location=first.role.template.at("spec", "containers"),
    )
    servers = (
        service(
            r.name, first.role.name, meeting.port, "servers register with PADDLE_MASTER", kind=FlowKind.RENDEZVOUS, index=0
        )
        for r in roles
        if r.kind is RoleKind.SERVER and r.replicas > 1
    )
    draft = Draft(
        kind="PaddleJob",
        plans=plans,
        group_labels={JOB_NAME: obj.name},
        rendezvous=meeting,
        flows=(
            *to_rendezvous(roles, meeting, f"every pod registers with PADDLE_MASTER {meeting.address}:{meeting.port}"),
            *servers,
            *collective(roles, "trainers and servers listen on ports the launcher chooses at run time"),
            *dns(roles),
            *metrics(roles),
            webhook("the Training Operator"),
        ),
        services=replica_services(obj, FAMILY, plans, MAX_PODS),
    )
    return (assemble(ctx, obj, draft),)


def _marked(plan: RolePlan, launch: Launch) -> RolePlan:
    if plan.role.name == "Master":
        return with_master(plan)
    ranks = max(launch.accelerators, 1) if "paddle.distributed.launch" in launch.text else 1
    return RolePlan(role=replace(plan.role, ranks_per_pod=ranks), identify=plan.identify)
