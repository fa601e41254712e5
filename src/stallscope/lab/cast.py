"""A judged job and one placement -> what the lab builds: pods with names, ranks with the environment their kind gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from stallscope.errors import LabError
from stallscope.judge.outside import outside_endpoint
from stallscope.judge.pods import endpoint
from stallscope.judge.result import Judgement
from stallscope.lab.topology import LabPod, LabSpec
from stallscope.model.source import as_list, as_map, as_str, dig
from stallscope.model.topology import Topology
from stallscope.model.traffic import Endpoint, Outside, PortRange, Protocol
from stallscope.model.workload import Pod, TrainingJob

NO_ZONE = "(no zone)"
DEFAULT_PORT = 29500
#: Variables of the pod spec that change how ranks talk; anything else of the user's stays out of the lab.
_PASSED = ("NCCL_", "GLOO_", "TP_", "TORCH_")
#: Kinds whose controller sets torchrun's PET_ variables (Training Operator 1.5+, Trainer v2, HyperPod's copy of the former).
_PET_KINDS = frozenset({"PyTorchJob", "TrainJob", "HyperPodPyTorchJob"})


@dataclass(frozen=True, slots=True, kw_only=True)
class RankSeat:
    """One rank: its pod, its number, its number inside the pod, and its environment."""

    rank: int
    pod: str
    env: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cast:
    """
    Everything the lab needs of a job under one placement. `notes` are departures from the job, one line each; `dns` is
    cluster DNS as the policies see it, for jobs that need names.
    """

    spec: LabSpec
    seats: tuple[RankSeat, ...]
    endpoints: Mapping[str, Endpoint]
    ports: tuple[PortRange, ...]
    rendezvous_port: int
    dns: Endpoint | None = None
    notes: tuple[str, ...] = ()

    @property
    def ring(self) -> tuple[str, ...]:
        """Pods in rank order."""
        return tuple(seat.pod for seat in self.seats)


def cast(judgement: Judgement, job: TrainingJob, placement: Mapping[str, str | None], *, max_ranks: int = 16) -> Cast:
    """
    Cast `job` onto `placement` (pod -> node).

    Raises LabError when a pod has no place (the job would not start whole) or fewer than two ranks remain.
    """
    pending = [p.name for p in job.pods if not placement.get(p.name)]
    if pending:
        raise LabError(
            f"{job.ref}: {len(pending)} of {len(job.pods)} pods have no node in this placement ({', '.join(pending[:3])})",
            hint="a job whose pods stay Pending has nothing to rehearse: see what `check` says about its placement",
        )
    zones = _zones(judgement.topology, placement)
    pods = tuple(LabPod(name=_name(p), node=str(placement[p.name]), host_names=p.host_names, rank=p.rank) for p in job.pods)
    seats, notes = _seats(job, max_ranks)
    if len(seats) < 2:
        raise LabError(f"{job.ref} has {len(seats)} rank: nothing is exchanged, so there is nothing to rehearse")
    return Cast(
        spec=LabSpec(pods=pods, zones=zones),
        seats=seats,
        endpoints=_endpoints(judgement, job, placement),
        ports=_needed(job),
        rendezvous_port=job.rendezvous.port if job.rendezvous else DEFAULT_PORT,
        dns=_dns(judgement, job),
        notes=notes,
    )


def _dns(judgement: Judgement, job: TrainingJob) -> Endpoint | None:
    if not any(flow.destination == Outside.CLUSTER_DNS for flow in job.flows):
        return None
    return outside_endpoint(Outside.CLUSTER_DNS, judgement.inputs.objects)[0]


def _name(pod: Pod) -> str:
    """Names with a random tail get none: in the lab nothing else bears them."""
    return pod.name.removesuffix("-*")


def _zones(topology: Topology | None, placement: Mapping[str, str | None]) -> dict[str, str]:
    known = {n.name: n.zone or NO_ZONE for n in topology.nodes} if topology else {}
    return {node: known.get(node, NO_ZONE) for node in placement.values() if node} | known


def _endpoints(judgement: Judgement, job: TrainingJob, placement: Mapping[str, str | None]) -> dict[str, Endpoint]:
    nodes = {n.name: n for n in judgement.topology.nodes} if judgement.topology else {}
    return {_name(p): endpoint(p, job.role(p.role), nodes.get(placement[p.name] or ""), judgement.facts) for p in job.pods}


def _needed(job: TrainingJob) -> tuple[PortRange, ...]:
    """TCP port ranges that flows between the job's own pods need."""
    outside = set(Outside)
    return tuple(
        dict.fromkeys(
            ports
            for flow in job.flows
            if flow.source not in outside and flow.destination not in outside
            for ports in flow.ports
            if ports.protocol is Protocol.TCP
        )
    )


def _seats(job: TrainingJob, max_ranks: int) -> tuple[tuple[RankSeat, ...], tuple[str, ...]]:
    ranked = sorted((p for p in job.pods if p.rank is not None), key=lambda p: p.rank or 0)
    per_pod = {p.name: job.role(p.role).ranks_per_pod for p in ranked}
    total = sum(per_pod.values())
    notes: tuple[str, ...] = ()
    if total > max_ranks:
        if len(ranked) > max_ranks:
            raise LabError(
                f"{job.ref} has {len(ranked)} pods with ranks; this rehearsal is limited to {max_ranks}",
                hint=f"raise the limit with --ranks {len(ranked)}, or rehearse a smaller copy of the job",
            )
        if total > len(ranked):
            notes = (
                f"one process a pod instead of {total} ranks: ranks of a pod reduce among themselves before the network",
            )
        per_pod = dict.fromkeys(per_pod, 1)
    world = sum(per_pod.values())
    seats: list[RankSeat] = []
    for group, pod in enumerate(ranked):
        for local in range(per_pod[pod.name]):
            env = _environment(job, pod, ranked[0], (len(seats), world), (local, per_pod[pod.name]), (group, len(ranked)))
            seats.append(RankSeat(rank=len(seats), pod=_name(pod), env=env))
    return tuple(seats), notes


def _environment(
    job: TrainingJob, pod: Pod, first: Pod, rank: tuple[int, int], local: tuple[int, int], group: tuple[int, int]
) -> dict[str, str]:
    """What the kind's controller and torchrun set, and the pod spec's own communication variables."""
    port = str(job.rendezvous.port if job.rendezvous else DEFAULT_PORT)
    address = _master(job, first)
    env = {"GLOO_SOCKET_IFNAME": "eth0", "TORCH_FR_BUFFER_SIZE": "2000"}
    env |= _declared(job, pod)
    env |= {
        "MASTER_ADDR": address,
        "MASTER_PORT": port,
        "RANK": str(rank[0]),
        "WORLD_SIZE": str(rank[1]),
        "LOCAL_RANK": str(local[0]),
        "LOCAL_WORLD_SIZE": str(local[1]),
        "GROUP_RANK": str(group[0]),
        "NODE_RANK": str(group[0]),
    }
    if job.kind in _PET_KINDS:
        env |= {
            "PET_MASTER_ADDR": address,
            "PET_MASTER_PORT": port,
            "PET_NNODES": str(group[1]),
            "PET_NODE_RANK": str(group[0]),
            "PET_NPROC_PER_NODE": str(local[1]),
        }
    return env


def _master(job: TrainingJob, first: Pod) -> str:
    """The address as the job gives it when a pod of the job bears it, else rank 0's name."""
    known = {n for p in job.pods for n in (*p.host_names, _name(p))}
    if job.rendezvous and job.rendezvous.address in known:
        return job.rendezvous.address
    return _name(first)


def _declared(job: TrainingJob, pod: Pod) -> dict[str, str]:
    spec = job.role(pod.role).template.spec
    found = {}
    for entry in (as_map(e) for c in as_list(spec.get("containers")) for e in as_list(dig(c, "env"))):
        name, value = as_str(entry.get("name")), entry.get("value")
        if name.startswith(_PASSED) and isinstance(value, str) and "\0" not in value + name and "$(" not in value:
            found[name] = value
    return found
