"""Where a job can land: the scheduler's reachable outcomes, reduced to what the joint judgement needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from stallscope.judge.gang import declared_gang
from stallscope.judge.pods import pod_requests
from stallscope.judge.result import Answer
from stallscope.judge.witness import Witness
from stallscope.model.topology import Topology
from stallscope.model.workload import RoleKind, TrainingJob
from stallscope.placement.feasible import feasible_by_class
from stallscope.placement.group import Feasibility, GroupOutcome, Placement, PodRequest, judge_group
from stallscope.placement.settings import DEFAULT_SETTINGS, Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Landing:
    """
    `feasible` is per role, for an empty cluster as given; `zones_of_role` the zones of those nodes. `witness` is the
    worst reachable placement, or the only one. Without a topology all are empty and `can_split` is about the spec.
    """

    can_split: Answer
    why: str = ""
    outcome: GroupOutcome | None = None
    witness: Witness | None = None
    feasible: Mapping[str, Feasibility] = field(default_factory=dict)
    zones_of_role: Mapping[str, frozenset[str]] = field(default_factory=dict)
    caveats: tuple[str, ...] = ()

    def reachable(self, zones: tuple[str, str]) -> bool:
        """Can two pods land in these two zones in one outcome?"""
        return self.outcome is None or any(set(zones) <= zone_set for zone_set in self.outcome.zone_sets)


def land(job: TrainingJob, topology: Topology | None, settings: Settings = DEFAULT_SETTINGS) -> Landing:
    """The landing of `job` on `topology`; without one, what its manifests alone decide."""
    if topology is None or not topology.nodes:
        return _from_spec(job)
    pods = pod_requests(job)
    outcome = judge_group(pods, topology, settings=settings, ranks=_whose_zone_counts(job), gang=declared_gang(job))
    per_role = feasible_by_class(_one_of_each_role(pods), topology, settings)
    zone_of = {n.name: n.zone for n in topology.nodes}
    return Landing(
        can_split=_answer(job, outcome),
        outcome=outcome,
        witness=_witness(outcome, topology),
        feasible=per_role,
        zones_of_role={r: frozenset(zone_of[n] for n in f.feasible if zone_of[n]) for r, f in per_role.items()},
        caveats=_caveats(job, outcome, topology),
    )


def _whose_zone_counts(job: TrainingJob) -> frozenset[str] | None:
    """Ranks and parameter servers: where a launcher, a submitter or an initializer runs splits nothing."""
    kinds = (RoleKind.COORDINATOR, RoleKind.WORKER, RoleKind.SERVER)
    roles = {r.name for r in job.roles if r.kind in kinds}
    return frozenset(p.name for p in job.pods if p.role in roles) or None


def _from_spec(job: TrainingJob) -> Landing:
    if not job.distributed or len(job.pods) < 2:
        return Landing(can_split=Answer.NO, why="the job is one pod")
    from stallscope.placement.spec_only import spec_only  # here, as most runs have nodes

    counted = _whose_zone_counts(job)
    answer = spec_only([p for p in pod_requests(job) if counted is None or p.name in counted])
    return Landing(
        can_split=Answer(answer.can_split),
        why=answer.why,
        caveats=("no nodes were given, so this follows from the manifests alone; add --nodes FILE", *answer.caveats),
    )


def _one_of_each_role(pods: Sequence[PodRequest]) -> list[tuple[str, Mapping[str, Any]]]:
    first: dict[str, Mapping[str, Any]] = {}
    for pod in pods:
        first.setdefault(pod.klass, pod.body)
    return sorted(first.items())


def _answer(job: TrainingJob, outcome: GroupOutcome) -> Answer:
    """A split is a split whatever is not modelled; its absence is only claimed after a whole search of modelled parts."""
    if len(job.pods) < 2:
        return Answer.NO
    if outcome.may_split:
        return Answer.YES
    return Answer.NO if outcome.exhaustive and not outcome.unjudged else Answer.UNKNOWN


def _witness(outcome: GroupOutcome, topology: Topology) -> Witness | None:
    chosen: Placement | None = outcome.worst or outcome.likely or outcome.locked
    if chosen is None:
        return None
    return Witness(nodes=dict(chosen.nodes), zones={n.name: n.zone for n in topology.nodes})


def _caveats(job: TrainingJob, outcome: GroupOutcome, topology: Topology) -> tuple[str, ...]:
    """What the answer leaves out, in one line each."""
    found = [f"not modelled: {name}" for name in outcome.unjudged]
    if job.scheduler_name not in ("", "default-scheduler"):
        found.append(f"the job asks for scheduler '{job.scheduler_name}'; kube-scheduler's rules were judged")
    if not topology.capacity_known:
        found.append(f"{topology.source or 'the node list'} has no capacity: only labels and taints were judged")
    if not outcome.exhaustive:
        found.append("the search was cut short: outcomes not listed may still happen")
    return tuple(found)
