"""
The seam of the placement package for whole jobs: pods in creation order x topology -> what the scheduler may do.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from stallscope.model.topology import Topology
from stallscope.placement.feasible import Feasibility, NodeFailure, feasible, judge_pod, unjudged_resources
from stallscope.placement.outcome import GroupOutcome, Placement, PodRequest
from stallscope.placement.podspec import compile_pod
from stallscope.placement.problem import Problem, build_problem
from stallscope.placement.search import Search, State, explore, waiting, zones_of
from stallscope.placement.settings import DEFAULT_SETTINGS, Settings
from stallscope.placement.state import Cluster, build_cluster
from stallscope.placement.witness import replay

__all__ = [
    "Feasibility",
    "GroupOutcome",
    "NodeFailure",
    "Placement",
    "PodRequest",
    "Settings",
    "feasible",
    "judge_group",
]

#: States looked at before the search gives up.
BUDGET = 20_000


def judge_group(
    pods: Sequence[PodRequest],
    topology: Topology,
    *,
    settings: Settings = DEFAULT_SETTINGS,
    ranks: Collection[str] | None = None,
    budget: int = BUDGET,
) -> GroupOutcome:
    """
    All outcomes reachable when the pods are created in this order and ties are broken by an adversary.

    `ranks` are the names of the pods that count for zone sets (default: all); others (an MPI launcher) still take room.
    """
    cluster = build_cluster(topology)
    specs = [compile_pod(p.body) for p in pods]
    counted = [ranks is None or p.name in ranks for p in pods]
    problem = build_problem(specs, cluster, settings, counted=counted)
    return outcome_of(problem, explore(problem, budget), [p.name for p in pods])


def outcome_of(problem: Problem, search: Search, names: Sequence[str]) -> GroupOutcome:
    """Summarise a search."""
    finals = search.finals
    sets = sorted({zones_of(problem, f) for f in finals}, key=lambda s: (len(s), sorted(s)))
    worst = max(finals, key=lambda f: (len(zones_of(problem, f)), -waiting(f)), default=None)
    stuck = max(finals, key=waiting, default=None)

    def named(state: State | None) -> Placement | None:
        return replay(problem, search.path(state), names) if state is not None else None

    return GroupOutcome(
        zone_sets=tuple(sets),
        may_split=any(len(s) > 1 for s in sets) or not search.complete,
        may_start_whole=any(not waiting(f) for f in finals) or not search.complete,
        must_start_whole=search.complete and all(not waiting(f) for f in finals),
        worst=named(worst),
        locked=named(stuck) if stuck is not None and waiting(stuck) else None,
        infeasible=_infeasible(problem, problem.cluster, names),
        unjudged=_unjudged(problem),
        exhaustive=search.complete,
    )


def _infeasible(problem: Problem, cluster: Cluster, names: Sequence[str]) -> dict[str, Feasibility]:
    """Pods no node can take even before the job placed anything, one entry a class (its first pod)."""
    found = {}
    for chosen in problem.classes:
        if not any(k.allowed[chosen.index] and problem.fits(k, problem.empty, chosen.index) for k in problem.kinds):
            found[names[chosen.members[0]]] = judge_pod(chosen.spec, cluster, problem.settings)
    return found


def _unjudged(problem: Problem) -> tuple[str, ...]:
    names = list(problem.unjudged)
    for chosen in problem.classes:
        names += unjudged_resources(chosen.spec, problem.cluster)
    blank = [k for k in problem.kinds if not k.zone and any(k.allowed)]
    if blank:
        count = sum(len(k.nodes) for k in blank)
        names.append(f"zone of {count} node(s) without the label {problem.settings.zone_key}")
    return tuple(dict.fromkeys(names))
