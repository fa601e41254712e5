"""What a judgement of a whole job is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from stallscope.placement.feasible import Feasibility


class PodRequest(NamedTuple):
    """A pod to place: `body` is plain (metadata.name/namespace/labels, spec). Pods with equal `klass` are alike."""

    name: str
    body: Mapping[str, Any]
    klass: str = ""


class Placement(NamedTuple):
    """One outcome: pod name -> node name, None = Pending."""

    nodes: Mapping[str, str | None]

    @property
    def pending(self) -> tuple[str, ...]:
        return tuple(name for name, node in self.nodes.items() if node is None)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupOutcome:
    """
    What can happen to a job. `zone_sets`: every set of zones its *bound* pods may end up using (the empty string stands
    for nodes without a zone label). `may_split`: some outcome uses two zones or more. `may_start_whole` and
    `must_start_whole`: some/every outcome binds all pods. "May" follows every feasible choice, whatever the scores say,
    hence errs on the side of "yes"; "must" and "cannot" hold for every order of retries and every tie.
    `worst` is the adversarial witness (most zones, ranks interleaved), `locked` an outcome with Pending pods if one
    is reachable, `likely` the zone-interleaved tie model's outcome. `odds` = model name -> share of split
    outcomes among `odds_runs` seeded runs of the scored model: a few runs, no exact probability.
    `infeasible`: pods no node takes even before the others are placed; `waiting`: why pods wait in `locked`, in the
    scheduler's words; both one pod per sort of pod.
    `exhaustive` is false when the search was cut: then nothing is claimed impossible.
    """

    zone_sets: tuple[frozenset[str], ...]
    may_split: bool
    may_start_whole: bool
    must_start_whole: bool
    worst: Placement | None = None
    locked: Placement | None = None
    likely: Placement | None = None
    odds: Mapping[str, float] = field(default_factory=dict)
    odds_runs: int = 0
    infeasible: Mapping[str, Feasibility] = field(default_factory=dict)
    waiting: Mapping[str, Feasibility] = field(default_factory=dict)
    unjudged: tuple[str, ...] = ()
    exhaustive: bool = True
