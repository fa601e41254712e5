"""
MPIJob. v1 is run by the Training Operator (kubectl exec, no Service: pkg/controller.v1/mpi), v2beta1 by the MPI Operator
(ssh, one headless Service: mpi-operator pkg/controller/mpi_job_controller.go).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from stallscope.judge.inputs import ProblemKind
from stallscope.load.kinds.batch import job_labels
from stallscope.load.kinds.context import Context, count, describe, placeholder, template
from stallscope.load.kinds.flows import api_server, collective, dns, metrics, webhook
from stallscope.load.kinds.launch import launch_of
from stallscope.load.kinds.mpi_common import both_ways, launch_over_ssh
from stallscope.load.kinds.plan import Draft, PodIdentity, RolePlan, assemble
from stallscope.load.kinds.services import fqdn
from stallscope.load.kinds.training_operator import JOB_NAME, PREFIX
from stallscope.model.kube import KubeObject
from stallscope.model.source import Route
from stallscope.model.workload import JobService, PodTemplate, Role, RoleKind, TrainingJob

_SPECS = "mpiReplicaSpecs"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Replicas:
    """One replica spec after defaulting: Launcher 1, Worker 0 (SetDefaults_MPIJob of both operators)."""

    name: str
    replicas: int
    template: PodTemplate
    route: Route


def expand_mpijob(ctx: Context, obj: KubeObject) -> tuple[TrainingJob, ...]:
    """One kind, two operators: the version decides (``v2beta1`` is the MPI Operator's, all else the Training Operator's)."""
    newer = obj.api_version.rpartition("/")[2].startswith("v2")
    return expand_mpijob_v2(ctx, obj) if newer else expand_mpijob_v1(ctx, obj)


def expand_mpijob_v1(ctx: Context, obj: KubeObject) -> tuple[TrainingJob, ...]:
    """
    The launcher runs ``kubectl exec`` into the workers, so it needs the API server and no ssh. It is a rank only when it
    asks for GPUs (isGPULauncher: it then stands first in the hostfile). No Service exists: pods go by address.
    """
    read = _read(ctx, obj)
    if read is None:
        return ()
    specs, slots = read
    plans: list[RolePlan] = []
    for spec in specs:
        launcher = spec.name == "Launcher"
        ranked = not launcher or launch_of(spec.template.spec).accelerators > 0
        kind = RoleKind.WORKER if not launcher else RoleKind.COORDINATOR if ranked else RoleKind.LAUNCHER
        labels = {
            f"{PREFIX}/operator-name": "mpijob-controller",
            JOB_NAME: obj.name,
            f"{PREFIX}/replica-type": spec.name.lower(),
            **({f"{PREFIX}/job-role": "master"} if launcher else {}),
        }
        role = _role(spec, kind, slots if ranked else 0, labels, order=1 if launcher else 0)
        plans.append(RolePlan(role=role, identify=_v1_identifier(obj, launcher)))
    roles = tuple(p.role for p in plans)
    flows = [api_server(r.name, "the launcher starts ranks with kubectl exec") for r in roles if r.name == "Launcher"]
    for launcher_role in (r for r in roles if r.kind is RoleKind.LAUNCHER):
        for worker in (r for r in roles if r.name == "Worker" and r.replicas > 0):
            flows += both_ways(launcher_role, worker)
    draft = Draft(
        kind="MPIJob",
        plans=tuple(plans),
        group_labels={JOB_NAME: obj.name},
        flows=(*flows, *collective(roles), *dns(roles), *metrics(roles), webhook("the Training Operator")),
    )
    return (assemble(ctx, obj, draft),)


def expand_mpijob_v2(ctx: Context, obj: KubeObject) -> tuple[TrainingJob, ...]:
    """
    Workers are pods reached over ssh by the launcher, which is a batch/v1 Job; with runLauncherAsWorker the launcher is
    the first host of the hostfile and so holds rank 0. Ranks of a host are its slots (slotsPerWorker, default 1).
    """
    read = _read(ctx, obj)
    if read is None:
        return ()
    specs, slots = read
    as_worker = obj.get("spec", "runLauncherAsWorker") is True
    late = obj.get("spec", "launcherCreationPolicy") == "WaitForWorkersReady"
    common = {f"{PREFIX}/operator-name": "mpi-operator", JOB_NAME: obj.name}
    plans: list[RolePlan] = []
    for spec in specs:
        launcher = spec.name == "Launcher"
        kind = RoleKind.WORKER if not launcher else RoleKind.COORDINATOR if as_worker else RoleKind.LAUNCHER
        labels = {**common, f"{PREFIX}/job-role": spec.name.lower()}
        # Workers are created first; the launcher Job in the same pass, or once they are ready.
        order = (2 if late else 1) if launcher else 0
        role = _role(spec, kind, 0 if kind is RoleKind.LAUNCHER else slots, labels, order=order)
        plans.append(RolePlan(role=role, identify=_v2_identifier(obj, launcher, as_worker)))
    roles = tuple(p.role for p in plans)
    ssh = (
        flow
        for launcher_role in (r for r in roles if r.name == "Launcher")
        for worker in (r for r in roles if r.name == "Worker" and r.replicas > 0)
        for flow in launch_over_ssh(launcher_role, worker)
    )
    # Not ready pods are published only for a launcher that is a worker: it would otherwise wait for itself.
    network = JobService(name=obj.name, namespace=obj.namespace, selector=common, publish_not_ready=as_worker)
    draft = Draft(
        kind="MPIJob",
        plans=tuple(plans),
        group_labels={JOB_NAME: obj.name},
        flows=(*ssh, *collective(roles), *dns(roles), *metrics(roles)),
        services=(network,),
    )
    return (assemble(ctx, obj, draft),)


def _read(ctx: Context, obj: KubeObject) -> tuple[tuple[_Replicas, ...], int] | None:
    """Replica specs (Launcher first: the order of the hostfile) and slots; ``None`` after reporting why not."""
    base: Route = ("spec", _SPECS)
    specs = obj.get(*base)
    if not isinstance(specs, Mapping) or not specs:
        kind = ProblemKind.UNRENDERED if placeholder(specs) else ProblemKind.INVALID
        found = "is missing" if specs is None else f"must map roles to replica specs, found {describe(specs)}"
        ctx.problem(kind, obj, base, f"spec.{_SPECS} {found}")
        return None
    if "Launcher" not in specs:
        ctx.problem(ProblemKind.INVALID, obj, base, f"spec.{_SPECS} has no Launcher")
        return None
    slots = count(ctx, obj, ("spec", "slotsPerWorker"), default=1, minimum=0)
    if slots is None:
        return None
    read: list[_Replicas] = []
    for name, default in (("Launcher", 1), ("Worker", 0)):
        if name not in specs:
            continue
        replicas = count(
            ctx, obj, (*base, name, "replicas"), default=default, maximum=1 if name == "Launcher" else 2**31 - 1
        )
        found_template = template(ctx, obj, (*base, name, "template"))
        if replicas is None or found_template is None:
            return None
        read.append(_Replicas(name=name, replicas=replicas, template=found_template, route=(*base, name)))
    return tuple(read), slots or 1


def _role(spec: _Replicas, kind: RoleKind, ranks: int, labels: Mapping[str, str], *, order: int) -> Role:
    return Role(
        name=spec.name,
        kind=kind,
        replicas=spec.replicas,
        template=spec.template,
        ranks_per_pod=ranks,
        added_labels=dict(labels),
        creation_order=order,
        replicas_route=(*spec.route, "replicas"),
    )


def _v1_identifier(obj: KubeObject, launcher: bool) -> Callable[[int], PodIdentity]:
    def identify(index: int) -> PodIdentity:
        if launcher:
            return PodIdentity(name=f"{obj.name}-launcher")
        return PodIdentity(name=f"{obj.name}-worker-{index}", labels={f"{PREFIX}/replica-index": str(index)})

    return identify


def _v2_identifier(obj: KubeObject, launcher: bool, as_worker: bool) -> Callable[[int], PodIdentity]:
    def identify(index: int) -> PodIdentity:
        host = f"{obj.name}-launcher" if launcher else f"{obj.name}-worker-{index}"
        labels: dict[str, str] = job_labels(host) if launcher else {}
        if not launcher or as_worker:
            # Workers move up by one when the launcher takes index 0 (workerReplicaIndexLabel).
            labels[f"{PREFIX}/replica-index"] = "0" if launcher else str(index + as_worker)
        names = (f"{host}.{obj.name}", fqdn(f"{host}.{obj.name}", obj.namespace))
        return PodIdentity(name=f"{host}-*" if launcher else host, labels=labels, host_names=names)

    return identify
