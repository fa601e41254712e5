"""TrainJob, trainer.kubeflow.org/v1alpha1 (Kubeflow Trainer v2.0 to v2.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from stallscope.load.kinds.context import Context
from stallscope.load.kinds.flows import all_pairs, collective, dns, is_ranked, metrics, to_rendezvous, webhook
from stallscope.load.kinds.jobset import JOBSET_NAME, fields_of, plans_of, services_of
from stallscope.load.kinds.launch import Launch, launch_of, ranks_per_pod
from stallscope.load.kinds.mpi_common import launch_over_ssh
from stallscope.load.kinds.plan import Draft, RolePlan, assemble
from stallscope.load.kinds.rendezvous import TORCH_PORT, Found, resolve
from stallscope.load.kinds.trainjob_runtime import Runtime, Step, find_runtime, shape_of, steps_of
from stallscope.model.kube import KubeObject
from stallscope.model.quantity import parse_quantity
from stallscope.model.source import as_list, as_map, as_str, dig
from stallscope.model.traffic import Flow
from stallscope.model.workload import Gang, Rendezvous, RoleKind, TrainingJob

#: The broker overlay of Flux (plugins/flux/templates/broker.toml: default_port).
FLUX_PORT = 8050


def expand_trainjob(ctx: Context, obj: KubeObject) -> tuple[TrainingJob, ...]:
    """
    A JobSet of the TrainJob's own name. Node i of the trainer step is node rank i; initializers finish first and are no
    ranks. An unknown runtime leaves the number of nodes and the patches, so the job is listed with what is missing.
    """
    runtime = find_runtime(ctx, obj)
    steps = steps_of(ctx, obj, runtime) if runtime else None
    if runtime is None or steps is None:
        return ()
    shape = shape_of(obj, runtime, steps)
    launches = {s.job.name: launch_of(s.job.template.spec, "node", fields_of(shape, s.job)) for s in steps}
    plans, _ = plans_of(shape, launches, _kinds(runtime, steps))
    plans = tuple(_decorated(obj, runtime, p, launches[p.role.name]) for p in plans)
    found = _rendezvous(obj, runtime, plans, launches)
    roles = tuple(p.role for p in plans)
    notes = [] if runtime.source else [f"runtime {runtime.name} taken as Trainer v2.3 installs it"] if runtime.known else []
    draft = Draft(
        kind="TrainJob",
        plans=plans,
        group_labels={JOBSET_NAME: obj.name},
        rendezvous=found.rendezvous,
        flows=(
            *to_rendezvous(roles, found.rendezvous),
            *_flows(runtime, plans),
            *dns(roles),
            *metrics(roles),
            webhook("Kubeflow Trainer"),
        ),
        services=services_of(shape),
        gang=_gang(obj, runtime, sum(r.replicas for r in roles)),
        notes=(*notes, *found.notes),
        unsupported=(*found.unsupported, *(() if runtime.known else (f"runtime {runtime.name} is not among the files",))),
    )
    return (assemble(ctx, obj, draft),)


def _kinds(runtime: Runtime, steps: Sequence[Step]) -> dict[str, RoleKind]:
    kinds: dict[str, RoleKind] = {}
    for item in steps:
        name = item.job.name
        if item.step.endswith("-initializer"):
            kinds[name] = RoleKind.OTHER
        elif runtime.framework == "mpi" and name == "launcher":
            kinds[name] = RoleKind.COORDINATOR if runtime.launcher_is_node else RoleKind.LAUNCHER
        elif item.step == "trainer" or name == "node":
            kinds[name] = RoleKind.WORKER
        else:
            kinds[name] = RoleKind.OTHER
    return kinds


def _decorated(obj: KubeObject, runtime: Runtime, plan: RolePlan, launch: Launch) -> RolePlan:
    """The plan with the ranks its framework starts, the gang's label or annotation, and the trainer's port."""
    role = plan.role
    ranks = _ranks(obj, runtime, launch) if role.kind in (RoleKind.WORKER, RoleKind.COORDINATOR) else 0
    labels, annotations = dict(role.added_labels), dict(role.template.annotations)
    group = as_map(dig(runtime.body, "spec", "podGroupPolicy"))
    if isinstance(group.get("coscheduling"), Mapping):
        labels["scheduling.x-k8s.io/pod-group"] = obj.name
    if isinstance(group.get("volcano"), Mapping):
        annotations["scheduling.k8s.io/group-name"] = obj.name
    return RolePlan(
        role=replace(
            role,
            ranks_per_pod=ranks,
            added_labels=labels,
            template=replace(role.template, annotations=annotations),
        ),
        identify=plan.identify,
    )


def _ranks(obj: KubeObject, runtime: Runtime, launch: Launch) -> int:
    """
    Processes a node: numProcPerNode, else one a device; without devices torchrun gets one a CPU (torch.go), MPI the slots
    of the runtime (mpi.go), XGBoost and JAX one (xgboost.go, jax.go).
    """
    said = obj.get("spec", "trainer", "numProcPerNode")
    declared = said if isinstance(said, int) and not isinstance(said, bool) and said > 0 else None
    match runtime.framework:
        case "torch" | "":
            by_launcher = launch.torchrun or not launch.text
            cpus = _cpus(obj) if by_launcher and not launch.accelerators and runtime.framework else 1
            return ranks_per_pod(launch, declared or (cpus if cpus > 1 else "auto"))[0]
        case "mpi" | "flux":
            slots = dig(runtime.policy, runtime.framework, "numProcPerNode", default=1)
            slots = slots if isinstance(slots, int) and slots > 0 else 1
            by_device = (
                launch.accelerators if slots == 1 and launch.accelerators > 1 and runtime.framework == "mpi" else slots
            )
            return declared or by_device
        case "xgboost":
            return max(launch.accelerators, 1)
    return 1


def _cpus(obj: KubeObject) -> int:
    """CPUs of a node, whole: requests before limits (getNumCPUPerNode, which rounds up as Quantity.Value does)."""
    per_node = as_map(obj.get("spec", "trainer", "resourcesPerNode"))
    for where in ("requests", "limits"):
        amount = parse_quantity(dig(per_node, where, "cpu"))
        if amount:
            return min(max(-(-amount.numerator // amount.denominator), 1), 4096)
    return 1


def _rendezvous(obj: KubeObject, runtime: Runtime, plans: Sequence[RolePlan], launches: Mapping[str, Launch]) -> Found:
    """Node 0 of the trainer step on port 29500 (PET_MASTER_*, JAX_COORDINATOR_ADDRESS, DMLC_TRACKER_*): fixed by Trainer."""
    node = next((p for p in plans if p.role.name == "node" and is_ranked(p.role)), None)
    node = node or next((p for p in plans if is_ranked(p.role)), None)
    if node is None or runtime.framework == "mpi":
        return Found(rendezvous=None)
    where = node.role.template.at("spec", "containers")
    host = f"{obj.name}-node-0-0.{obj.name}"
    match runtime.framework:
        case "torch":
            default = Rendezvous(address=host, port=TORCH_PORT, role=node.role.name, location=where)
            given = {"PET_MASTER_ADDR": host, "PET_MASTER_PORT": str(TORCH_PORT)}
            seen = {n: replace(x, env={**x.env, **given}) for n, x in launches.items()}
            tuned = _tuned(obj)
            return Found(rendezvous=default) if tuned else resolve(plans, obj.namespace, seen, default)
        case "jax":
            return Found(
                rendezvous=Rendezvous(address=host, port=TORCH_PORT, role=node.role.name, backend="jax", location=where)
            )
        case "xgboost":
            return Found(
                rendezvous=Rendezvous(address=host, port=TORCH_PORT, role=node.role.name, backend="rabit", location=where)
            )
        case "flux":
            return Found(
                rendezvous=Rendezvous(address=host, port=FLUX_PORT, role=node.role.name, backend="flux", location=where)
            )
    return resolve(plans, obj.namespace, launches, None)


def _tuned(obj: KubeObject) -> bool:
    """``tune run`` of the TrainJob itself: Trainer adds ``--rdzv_endpoint`` with node 0."""
    return list(as_list(obj.get("spec", "trainer", "command"))) == ["tune", "run"]


def _flows(runtime: Runtime, plans: Sequence[RolePlan]) -> tuple[Flow, ...]:
    roles = [p.role for p in plans]
    flows = [*collective(roles)]
    if runtime.framework == "mpi":
        launchers = [r for r in roles if r.name == "launcher"]
        nodes = [r for r in roles if r.name == "node" and r.replicas > 0]
        flows += [f for launcher in launchers for node in nodes for f in launch_over_ssh(launcher, node)]
    if runtime.framework == "flux":
        flows += all_pairs([r for r in roles if is_ranked(r)], FLUX_PORT, "Flux brokers form a tree on their own port")
    return tuple(flows)


def _gang(obj: KubeObject, runtime: Runtime, total: int) -> Gang | None:
    """``podGroupPolicy`` of the runtime: minMember is every pod of the TrainJob, initializers included."""
    group = as_map(dig(runtime.body, "spec", "podGroupPolicy"))
    for system in ("coscheduling", "volcano"):
        policy = group.get(system)
        if isinstance(policy, Mapping):
            holder = runtime.source or obj
            return Gang(
                system=system,
                min_count=total,
                topology_key=_tier(policy),
                mode={"hard": "required", "soft": "preferred"}.get(as_str(dig(policy, "networkTopology", "mode")), ""),
                location=holder.at("spec", "podGroupPolicy", system),
            )
    return None


def _tier(policy: Mapping[str, Any]) -> str:
    tier = dig(policy, "networkTopology", "highestTierAllowed")
    return f"tier {tier}" if isinstance(tier, int) else as_str(dig(policy, "networkTopology", "highestTierName"))
