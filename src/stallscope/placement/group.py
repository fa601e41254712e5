"""
The seam of the placement package for whole jobs: pods in creation order x topology -> what the scheduler may do.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from stallscope.model.topology import Topology
from stallscope.model.workload import Gang
from stallscope.placement.compilation import compile_pods
from stallscope.placement.feasible import Feasibility, NodeFailure, feasible, judge_pod, unjudged_resources
from stallscope.placement.gangs import (
    GangSpec,
    TopologyRequest,
    gang_spec,
    membership,
    needed,
    reach_with_gang,
    topology_keys,
)
from stallscope.placement.odds import Chances, chances
from stallscope.placement.outcome import GroupOutcome, Placement, PodRequest
from stallscope.placement.problem import Problem, build_problem
from stallscope.placement.reach import Reach, locked_of, reach, worst_of
from stallscope.placement.settings import DEFAULT_SETTINGS, Settings
from stallscope.placement.snapshot import snapshot_of
from stallscope.placement.waiting import why_waiting

__all__ = [
    "Feasibility",
    "GangSpec",
    "GroupOutcome",
    "NodeFailure",
    "Placement",
    "PodRequest",
    "Settings",
    "TopologyRequest",
    "feasible",
    "judge_group",
]


def judge_group(
    pods: Sequence[PodRequest],
    topology: Topology,
    *,
    settings: Settings = DEFAULT_SETTINGS,
    ranks: Collection[str] | None = None,
    gang: Gang | GangSpec | None = None,
    likelihood: bool = True,
) -> GroupOutcome:
    """
    All outcomes reachable when the pods are created in this order and ties are broken by an adversary.

    `ranks` are the names of the pods that count for zone sets (default: all); others (an MPI launcher) still take room.
    `gang`: who starts the pods together, see `gangs`. `likelihood` false skips the scored runs (`likely`, `odds`).
    """
    names = [p.name for p in pods]
    declared = gang_spec(gang) if isinstance(gang, Gang) else gang
    tags = membership(declared, names)
    problem = build_problem(
        compile_pods(pods),
        snapshot_of(topology),
        settings,
        counted=[ranks is None or p.name in ranks for p in pods],
        tags=tags,
        extra_keys=topology_keys(declared),
    )
    if declared is None:
        return summarise(problem, reach(problem, names), names, problem if likelihood else None)
    ganged = reach_with_gang(problem, names, declared, tags)
    sample = ganged.sample if likelihood else None
    outcome = summarise(problem, ganged.reach, names, sample, need=needed(declared, len(names)))
    likely = outcome.likely if ganged.sample is not None or not likelihood else Placement(nodes=dict.fromkeys(names))
    return replace(outcome, likely=likely, unjudged=outcome.unjudged + declared.unjudged)


def summarise(problem: Problem, found: Reach, names: Sequence[str], sample: Problem | None, need: int = 0) -> GroupOutcome:
    """A `GroupOutcome` from what can be reached; scored runs are made on `sample`, those below `need` bind nothing."""
    sets = sorted({e.zones for e in found.ends}, key=lambda s: (len(s), sorted(s)))
    locked = locked_of(found.witnesses, names)
    scored = chances(sample, names, need) if sample else Chances()
    return GroupOutcome(
        zone_sets=tuple(sets),
        may_split=not found.exhaustive or any(len(s) > 1 for s in sets),
        may_start_whole=found.may_start_whole,
        must_start_whole=found.must_start_whole,
        worst=worst_of(problem, found.witnesses, names),
        locked=locked,
        likely=scored.likely,
        odds=scored.odds,
        odds_runs=scored.runs,
        infeasible=infeasible_pods(problem, names),
        waiting=why_waiting(problem, locked, names) if locked is not None else {},
        unjudged=unjudged_parts(problem),
        exhaustive=found.exhaustive,
    )


def infeasible_pods(problem: Problem, names: Sequence[str]) -> dict[str, Feasibility]:
    """Pods no node can take even before the job placed anything, one entry a class (its first pod)."""
    found = {}
    for chosen in problem.classes:
        if not any(k.allowed[chosen.index] and problem.fits(k, problem.empty, chosen.index) for k in problem.kinds):
            found[names[chosen.members[0]]] = judge_pod(chosen.spec, problem.cluster, problem.settings)
    return found


def unjudged_parts(problem: Problem) -> tuple[str, ...]:
    """Constructs of the pods and the cluster that the judgement leaves out, by name."""
    names = list(problem.unjudged)
    for chosen in problem.classes:
        names += unjudged_resources(chosen.spec, problem.cluster)
        names += _preemption(problem, chosen.spec.priority, may=chosen.spec.may_preempt)
    blank = sum(len(set(k.nodes)) for k in problem.kinds if not k.zone and any(k.allowed))
    if blank:
        names.append(f"zone of {blank} node(s) without the label {problem.settings.zone_key}")
    return tuple(dict.fromkeys(names))


def _preemption(problem: Problem, priority: int, *, may: bool) -> list[str]:
    lower = may and any(b.priority < priority for n in problem.cluster.nodes for b in n.pods)
    return ["preemption (bound pods of lower priority could be evicted)"] if lower else []
