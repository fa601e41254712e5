"""
Needs of a job whose kind has no protocol of its own (JobSet, Job, StatefulSet, LeaderWorkerSet, HyperPod): read from what
its containers run.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from stallscope.load.kinds.flows import all_pairs, collective, is_ranked, service, to_rendezvous
from stallscope.load.kinds.launch import Launch, port_of
from stallscope.load.kinds.mpi_common import both_ways
from stallscope.load.kinds.plan import RolePlan
from stallscope.load.kinds.rendezvous import TPU_PORT, resolve
from stallscope.model.traffic import Flow, FlowKind
from stallscope.model.workload import JobService, Rendezvous, Role, RoleKind

#: libtpu's own port between the hosts of a slice (containerPort 8471 in every GKE TPU manifest).
TPU_SLICE_PORT = 8471
#: TensorFlow's customary port, when no container declares ``tfjob-port``.
TENSORFLOW_PORT = 2222

_MPI = re.compile(r"\b(mpirun|mpiexec|horovodrun)\b")
_SSH_PORT = re.compile(r"(?:plm_rsh_args|ssh|sshd)\b[^\n;|&]{0,80}?-p\s*(\d{2,5})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """Rendezvous and flows of a job, with what was assumed."""

    rendezvous: Rendezvous | None
    flows: tuple[Flow, ...]
    notes: tuple[str, ...] = ()
    unsupported: tuple[str, ...] = ()


def network_of(
    plans: Sequence[RolePlan],
    launches: Mapping[str, Launch],
    namespace: str,
    services: Iterable[JobService] = (),
    *,
    default: Rendezvous | None = None,
    slices: int = 1,
) -> Network:
    """
    Rendezvous as written by the containers, else `default`, else JAX's fixed port on TPU; collectives on any port, except
    between the hosts of one TPU slice, whose ports are fixed; ssh and OpenMPI's ports where mpirun is called. `slices`
    counts the groups of pods that would form one TPU slice each.
    """
    roles = [p.role for p in plans]
    ranked = [r for r in roles if is_ranked(r)]
    single_slice = slices == 1 and _single_slice(plans, launches)
    if default is None and single_slice and ranked:
        first = next(p for p in plans if is_ranked(p.role))
        host = next(iter(first.identify(0).host_names), first.identify(0).name)
        where = first.role.template.at("spec", "containers")
        default = Rendezvous(address=host, port=TPU_PORT, role=first.role.name, backend="jax", location=where)
    found = resolve(plans, namespace, launches, default, services)
    flows: list[Flow] = [*to_rendezvous(roles, found.rendezvous)]
    if single_slice:
        why = "the hosts of a TPU slice set up the interconnect between them"
        flows += all_pairs(ranked, TPU_SLICE_PORT, why, FlowKind.COLLECTIVE)
    elif any(launches.get(r.name, Launch()).tensorflow for r in roles) and not _nccl(ranked, launches):
        tasks = [r for r in roles if r.kind is not RoleKind.OTHER]
        number = next((n for r in tasks if (n := port_of(r.template.spec, "tfjob-port"))), TENSORFLOW_PORT)
        flows += all_pairs(tasks, number, "TensorFlow tasks speak gRPC to each other (TF_CONFIG)")
    else:
        flows += collective(roles)
    flows += _mpi(plans, launches)
    return Network(rendezvous=found.rendezvous, flows=tuple(flows), notes=found.notes, unsupported=found.unsupported)


def _nccl(ranked: Sequence[Role], launches: Mapping[str, Launch]) -> bool:
    """Devices in ranks: TensorFlow then uses NCCL among workers, besides gRPC."""
    return any(launches.get(r.name, Launch()).accelerators for r in ranked)


def _single_slice(plans: Sequence[RolePlan], launches: Mapping[str, Launch]) -> bool:
    """
    TPU hosts that form one slice: one role, no MEGASCALE variable. Multislice jobs reach other slices over the data-centre
    network on ports chosen at run time, as GPU jobs do.
    """
    ranked = [p for p in plans if is_ranked(p.role)]
    if len(ranked) != 1:
        return False
    launch = launches.get(ranked[0].role.name, Launch())
    return launch.tpu and not any(n.startswith("MEGASCALE") for n in launch.names)


def _mpi(plans: Sequence[RolePlan], launches: Mapping[str, Launch]) -> tuple[Flow, ...]:
    """mpirun starts its daemons over ssh and they connect back on ports chosen at run time."""
    flows: list[Flow] = []
    for plan in plans:
        launch = launches.get(plan.role.name, Launch())
        if not _MPI.search(launch.text):
            continue
        match = _SSH_PORT.search(launch.text)
        number = int(match.group(1)) if match and int(match.group(1)) < 65536 else 22
        for other in (p.role for p in plans if p.role.replicas > 0):
            if other is not plan.role or other.replicas > 1:
                why = f"mpirun starts its daemons over ssh (port {number})"
                flows.append(service(plan.role.name, other.name, number, why, kind=FlowKind.LAUNCHER))
                if not (is_ranked(plan.role) and is_ranked(other)):
                    flows += both_ways(plan.role, other)
    return tuple(dict.fromkeys(flows))
