"""How often the job splits under two models of ties, by a few seeded runs of the scored model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from stallscope.placement.likely import run_once
from stallscope.placement.outcome import Placement
from stallscope.placement.problem import Problem
from stallscope.placement.stage import set_stage
from stallscope.placement.ties import Lcg, interleaved, uniform
from stallscope.placement.witness import zones_used

UNIFORM = "uniform ties"
INTERLEAVED = "zone-interleaved order"
#: Runs a model gets at most, and the work (pods x nodes) all runs together may cost.
MOST_RUNS = 12
WORK = 400_000


@dataclass(frozen=True, slots=True)
class Chances:
    """`likely`: the zone-interleaved model's first outcome. `odds`: model -> share of its `runs` that split."""

    likely: Placement | None = None
    odds: Mapping[str, float] = field(default_factory=dict)
    runs: int = 0


def chances(problem: Problem, names: Sequence[str], need: int = 0) -> Chances:
    """
    Seeded runs of the scored model; a run splits when its counted pods use two zones or more. Runs that bind fewer than
    `need` pods (a gang) count as nothing bound.
    """
    if not names or not problem.cluster.nodes:
        return Chances()
    stage = set_stage(problem)
    nodes = [n.node for n in problem.cluster.nodes]
    runs = max(1, min(MOST_RUNS, WORK // (len(names) * len(nodes))))
    odds = {}
    likely = None
    for model, order in ((INTERLEAVED, interleaved), (UNIFORM, uniform)):
        split = 0
        for seed in range(runs):
            placement = run_once(stage, order(nodes, Lcg(seed)), names)
            if len(names) - len(placement.pending) < need:
                placement = Placement(nodes=dict.fromkeys(names))
            likely = likely or placement
            split += len(zones_used(problem, placement, names)) > 1
        odds[model] = split / runs
    return Chances(likely, odds, runs)
