"""PyTorchJob, kubeflow.org/v1 (training-operator v1.9 pkg/controller.v1/pytorch: envvar.go, master.go, elastic.go)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from stallscope.judge.inputs import ProblemKind
from stallscope.load.kinds.context import Context, count
from stallscope.load.kinds.flows import collective, dns, metrics, to_rendezvous, webhook
from stallscope.load.kinds.launch import Launch, ranks_per_pod
from stallscope.load.kinds.plan import MAX_PODS, Draft, RolePlan, assemble
from stallscope.load.kinds.rendezvous import Found, resolve
from stallscope.load.kinds.training_operator import (
    JOB_NAME,
    Family,
    launches_of,
    read_roles,
    replica_services,
    with_master,
)
from stallscope.model.kube import KubeObject
from stallscope.model.source import as_str
from stallscope.model.workload import RoleKind, TrainingJob

FAMILY = Family(
    kind="PyTorchJob",
    specs="pytorchReplicaSpecs",
    container="pytorch",
    port_name="pytorchjob-port",
    port=23456,
    roles=(("Master", RoleKind.COORDINATOR), ("Worker", RoleKind.WORKER)),
    single=("Master",),
)


def expand_pytorchjob(ctx: Context, obj: KubeObject) -> tuple[TrainingJob, ...]:
    """
    Master is rank 0, Worker i is node rank i + 1 (RANK, PET_NODE_RANK); without a Master, Worker 0 is rank 0. Each pod
    hosts nproc_per_node ranks when torchrun starts them.
    """
    plans = read_roles(ctx, obj, FAMILY)
    if not plans:
        return ()
    elastic = obj.get("spec", "elasticPolicy")
    notes: list[str] = []
    if isinstance(elastic, Mapping) and not _elastic_bounds(ctx, obj, notes):
        return ()
    launches = launches_of(plans, FAMILY)
    plans = tuple(_with_ranks(obj, p, launches[p.role.name], notes) for p in plans)
    master = plans[0].role.name == "Master"
    plans = (with_master(plans[0], only=None if master else 0), *plans[1:])
    services = replica_services(obj, FAMILY, plans, MAX_PODS)
    found = _rendezvous(obj, plans, launches, isinstance(elastic, Mapping), notes)
    roles = tuple(p.role for p in plans)
    draft = Draft(
        kind="PyTorchJob",
        plans=plans,
        group_labels={JOB_NAME: obj.name},
        rendezvous=found.rendezvous,
        flows=(
            *to_rendezvous(roles, found.rendezvous),
            *collective(roles),
            *dns(roles),
            *metrics(roles),
            webhook("the Training Operator"),
        ),
        services=services,
        notes=(*notes, *found.notes),
        unsupported=found.unsupported,
    )
    return (assemble(ctx, obj, draft),)


def _with_ranks(obj: KubeObject, plan: RolePlan, launch: Launch, notes: list[str]) -> RolePlan:
    declared = obj.get("spec", "elasticPolicy", "nProcPerNode") or obj.get("spec", "nprocPerNode")
    ranks, note = ranks_per_pod(launch, declared if declared is not None else "auto")
    if note:
        notes.append(f"{plan.role.name}: {note}")
    return RolePlan(role=replace(plan.role, ranks_per_pod=ranks), identify=plan.identify)


def _elastic_bounds(ctx: Context, obj: KubeObject, notes: list[str]) -> bool:
    """Report bad bounds of the elastic policy. The pods now are Worker.replicas; the bounds limit a later rescale."""
    low = count(ctx, obj, ("spec", "elasticPolicy", "minReplicas"), default=-1, minimum=-1)
    high = count(ctx, obj, ("spec", "elasticPolicy", "maxReplicas"), default=-1, minimum=-1)
    if low is None or high is None:
        return False
    low, high = (high if low < 0 else low), (low if high < 0 else high)
    if 0 <= high < low:
        ctx.problem(
            ProblemKind.INVALID,
            obj,
            ("spec", "elasticPolicy", "maxReplicas"),
            f"spec.elasticPolicy.maxReplicas {high} is below minReplicas {low}",
        )
        return False
    if high > 0:
        notes.append(f"elastic: {low} to {high} workers; judged with Worker.replicas")
    return True


def _rendezvous(
    obj: KubeObject, plans: tuple[RolePlan, ...], launches: dict[str, Launch], elastic: bool, notes: list[str]
) -> Found:
    """
    With a Master the operator appends MASTER_ADDR/PORT after the user's variables, so its values win; only torchrun's own
    flags beat them. Elastic jobs get PET_RDZV_ENDPOINT (rdzvHost, else worker 0). Without either nothing is set.
    """
    given: dict[str, str] = {}
    if plans[0].role.name == "Master":
        address, number = f"{obj.name}-master-0", str(FAMILY.port_in(plans[0]))
        given = {"MASTER_ADDR": address, "PET_MASTER_ADDR": address, "MASTER_PORT": number, "PET_MASTER_PORT": number}
    if elastic:
        given |= _elastic_variables(obj, plans[-1])
    for name, launch in launches.items():
        lost = sorted(k for k, v in given.items() if launch.env.get(k, v) != v)
        notes += [f"{name}: {k}={launch.env[k]} in the template is overwritten by the operator ({given[k]})" for k in lost]
    seen = {name: replace(launch, env={**launch.env, **given}) for name, launch in launches.items()}
    found = resolve(plans, obj.namespace, seen, None)
    if found.rendezvous is None and plans[0].role.replicas > 1:
        return Found(
            rendezvous=None, notes=("no Master and no elasticPolicy: the operator sets no MASTER_ADDR and no RANK",)
        )
    return found


def _elastic_variables(obj: KubeObject, worker: RolePlan) -> dict[str, str]:
    host = as_str(obj.get("spec", "elasticPolicy", "rdzvHost")) or f"{obj.name}-worker-0"
    chosen = obj.get("spec", "elasticPolicy", "rdzvPort")
    number = chosen if isinstance(chosen, int) and 0 < chosen < 65536 else FAMILY.port_in(worker)
    backend = as_str(obj.get("spec", "elasticPolicy", "rdzvBackend"), "c10d")
    return {"PET_RDZV_ENDPOINT": f"{host}:{number}", "PET_RDZV_BACKEND": backend}
