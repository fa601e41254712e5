"""
Step time, exposed communication, idle share and cross-zone bytes of one placement: the alpha-beta model (Hockney 1994;
Thakur et al. 2005). Everything here is modelled; a report must print the inputs beside the result.

Ring all-reduce of S bytes over N nodes moves 2(N-1)/N x S over each ring edge in 2(N-1) steps, so it takes
``2(N-1) x (alpha + S/N / B)`` with the slowest edge's alpha and B. A tree moves S up and down each edge, pipelined:
``2 x depth x alpha + 2 x S/2 / B`` per tree of a double binary tree. FSDP/ZeRO-3 moves 3(N-1)/N x S (two all-gathers and
a reduce-scatter).
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from math import ceil, log2
from typing import NamedTuple

from stallscope.collective.edges import crossings, double_binary_tree, ring
from stallscope.collective.links import Link, LinkClass, LinkProfile


class Algorithm(StrEnum):
    RING = "ring"
    TREE = "tree"


class Spot(NamedTuple):
    """Where one rank's node is: `node` name and `zone` ("" unknown)."""

    node: str
    zone: str


class StepModel(NamedTuple):
    """
    Inputs of the model. `gradient_bytes` reduced per step (S), `compute_seconds` a step without communication,
    `overlap` the share of communication hidden behind compute (0..1), `passes` 2 for all-reduce (DDP), 3 for FSDP.
    """

    gradient_bytes: float
    compute_seconds: float
    overlap: float = 0.0
    passes: int = 2
    algorithm: Algorithm = Algorithm.RING
    source: str = ""


class StepCost(NamedTuple):
    """Modelled figures of one placement. Times in seconds, bytes a step; `slowest` is the class of the limiting edge."""

    step_seconds: float
    communication_seconds: float
    exposed_seconds: float
    idle_share: float
    cross_zone_edges: int
    cross_zone_bytes: float
    slowest: LinkClass

    @property
    def busy_share(self) -> float:
        return 1.0 - self.idle_share

    def cross_zone_bytes_per_hour(self) -> float:
        return self.cross_zone_bytes / self.step_seconds * 3600 if self.step_seconds else 0.0


def classify(a: Spot, b: Spot) -> LinkClass:
    """The link class between two spots; an unknown zone counts as the same zone, so nothing is overstated."""
    if a.node and a.node == b.node:
        return LinkClass.NODE
    return LinkClass.CROSS_ZONE if a.zone and b.zone and a.zone != b.zone else LinkClass.ZONE


def step_cost(spots: Sequence[Spot], model: StepModel, profile: LinkProfile) -> StepCost:
    """
    Model one step of a job whose nodes, in rank order, are `spots`. Ranks that share a node count once: their gradients
    are reduced inside the node first (hierarchical), which is fast enough beside the network to be added as one NODE pass.
    """
    stops = _distinct_nodes(spots)
    count = len(stops)
    zones = [s.zone for s in stops]
    local = 2 * model.gradient_bytes / profile.node.bandwidth if len(spots) > count else 0.0
    if count < 2:
        return _total(model, local, 0, 0.0, LinkClass.NODE)
    if model.algorithm is Algorithm.TREE:
        wire, edges, moved, slowest = _tree(stops, model, profile)
    else:
        wire, edges, moved, slowest = _ring(stops, model, profile)
    crossing = crossings(edges, zones)
    return _total(model, local + wire, crossing, crossing * moved, slowest)


def _distinct_nodes(spots: Sequence[Spot]) -> list[Spot]:
    seen: dict[str, Spot] = {}
    for index, spot in enumerate(spots):
        seen.setdefault(spot.node or f"?{index}", spot)
    return list(seen.values())


def _slowest(stops: Sequence[Spot], edges: Sequence[tuple[int, int]], profile: LinkProfile) -> tuple[LinkClass, Link]:
    kinds = {classify(stops[a], stops[b]) for a, b in edges}
    kind = min(kinds, key=lambda k: profile.link(k).bandwidth)
    alpha = max(profile.link(k).latency for k in kinds)
    return kind, Link(bandwidth=profile.link(kind).bandwidth, latency=alpha)


def _ring(
    stops: Sequence[Spot], model: StepModel, profile: LinkProfile
) -> tuple[float, Sequence[tuple[int, int]], float, LinkClass]:
    count = len(stops)
    edges = ring(count)
    kind, link = _slowest(stops, edges, profile)
    steps = model.passes * (count - 1)
    moved = steps / count * model.gradient_bytes
    return steps * link.latency + moved / link.bandwidth, edges, moved, kind


def _tree(
    stops: Sequence[Spot], model: StepModel, profile: LinkProfile
) -> tuple[float, Sequence[tuple[int, int]], float, LinkClass]:
    first, second = double_binary_tree(len(stops))
    edges = (*first, *second)
    kind, link = _slowest(stops, edges, profile)
    depth = max(1, ceil(log2(len(stops))))
    moved = model.passes * model.gradient_bytes / 2
    return model.passes * depth * link.latency + moved / link.bandwidth, edges, moved, kind


def _total(model: StepModel, communication: float, crossing: int, moved: float, slowest: LinkClass) -> StepCost:
    exposed = communication * (1.0 - model.overlap)
    step = model.compute_seconds + exposed
    return StepCost(
        step_seconds=step,
        communication_seconds=communication,
        exposed_seconds=exposed,
        idle_share=exposed / step if step else 0.0,
        cross_zone_edges=crossing,
        cross_zone_bytes=moved,
        slowest=slowest,
    )
