"""JAXJob, kubeflow.org/v1 (training-operator v1.9 pkg/controller.v1/jax/envvar.go)."""

from __future__ import annotations

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
    kind="JAXJob",
    specs="jaxReplicaSpecs",
    container="jax",
    port_name="jaxjob-port",
    port=6666,
    roles=(("Worker", RoleKind.WORKER),),
)


def expand_jaxjob(ctx: Context, obj: KubeObject) -> tuple[TrainingJob, ...]:
    """One process a pod (PROCESS_ID = index); worker 0 coordinates (COORDINATOR_ADDRESS, COORDINATOR_PORT)."""
    plans = read_roles(ctx, obj, FAMILY)
    if not plans:
        return ()
    plans = (with_master(plans[0], only=0),)
    roles = tuple(p.role for p in plans)
    meeting = Rendezvous(
        address=f"{obj.name}-worker-0",
        port=FAMILY.port_in(plans[0]),
        role="Worker",
        backend="jax",
        location=plans[0].role.template.at("spec", "containers"),
    )
    draft = Draft(
        kind="JAXJob",
        plans=plans,
        group_labels={JOB_NAME: obj.name},
        rendezvous=meeting,
        flows=(
            *to_rendezvous(
                roles, meeting, f"every process registers with the JAX coordinator {meeting.address}:{meeting.port}"
            ),
            *collective(roles, "processes connect to each other on ports chosen at run time (NCCL on GPUs, Gloo on CPUs)"),
            *dns(roles),
            *metrics(roles),
            webhook("the Training Operator"),
        ),
        services=replica_services(obj, FAMILY, plans, MAX_PODS),
    )
    return (assemble(ctx, obj, draft),)
