"""What a map shows, as plain data; made from a judgement, or from measurements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from stallscope.collective.edges import ring
from stallscope.judge.result import FlowJudgement, JobJudgement, Witness
from stallscope.model.topology import Topology
from stallscope.model.traffic import FlowKind, Outcome
from stallscope.model.workload import Pod, TrainingJob

PENDING = "Pending"
NO_ZONE = "no zone label"


class EdgeKind(StrEnum):
    """How an edge is drawn; worst first."""

    DENIED = "denied"
    UNJUDGED = "unjudged"
    CROSS_ZONE = "cross-zone"
    LOCAL = "in zone"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One pod: `label` is short (its rank or role initial), `title` the full sentence for screen readers."""

    pod: str
    label: str
    title: str
    coordinator: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """One node with the pods of the job on it, in rank order."""

    node: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One zone. `idle_nodes` counts its nodes without pods of the job: they are not drawn one by one."""

    zone: str
    boxes: tuple[Box, ...]
    idle_nodes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """An edge between two pods. `title` is the sentence a reader gets for it."""

    source: str
    destination: str
    kind: EdgeKind
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """One picture: columns left to right, edges drawn over them, a title and a one-line caption."""

    title: str
    caption: str
    columns: tuple[Column, ...]
    edges: tuple[Edge, ...]

    def count(self, kind: EdgeKind) -> int:
        return sum(1 for e in self.edges if e.kind is kind)


def scene(judged: JobJudgement, topology: Topology, *, title: str, zones: Sequence[str] = ()) -> Scene | None:
    """
    The picture of `judged` under its witness; None when nothing was placed. `zones` fixes the columns, so that two
    pictures side by side line up.
    """
    if judged.witness is None:
        return None
    edges = (*_ring_edges(judged), *_denied_edges(judged))
    columns = _columns(judged.job, judged.witness, topology, zones)
    return Scene(title=title, caption=_caption(edges), columns=columns, edges=edges)


def _columns(job: TrainingJob, witness: Witness, topology: Topology, zones: Sequence[str]) -> tuple[Column, ...]:
    on_node: dict[str, list[Pod]] = {}
    for pod in job.pods:
        on_node.setdefault(witness.nodes.get(pod.name) or PENDING, []).append(pod)
    by_zone: dict[str, list[str]] = {z: [] for z in zones or topology.zones}
    idle: dict[str, int] = {}
    for node in topology.nodes:
        zone = node.zone or NO_ZONE
        if node.name in on_node:
            by_zone.setdefault(zone, []).append(node.name)
        else:
            idle[zone] = idle.get(zone, 0) + 1
    if PENDING in on_node:
        by_zone[PENDING] = [PENDING]
    roles = {role.name: role.kind.value for role in job.roles}
    return tuple(
        Column(
            zone=zone,
            boxes=tuple(Box(node=name, cells=_cells(on_node[name], roles)) for name in names),
            idle_nodes=idle.get(zone, 0),
        )
        for zone, names in by_zone.items()
        if names or idle.get(zone)
    )


def _cells(pods: Sequence[Pod], roles: Mapping[str, str]) -> tuple[Cell, ...]:
    ordered = sorted(pods, key=lambda p: (p.rank is None, p.rank or 0, p.name))
    return tuple(
        Cell(
            pod=p.name,
            label=str(p.rank) if p.rank is not None else p.role[:1].upper(),
            title=f"{p.name}, {p.role}" + (f", rank {p.rank}" if p.rank is not None else ", no rank"),
            coordinator=roles.get(p.role) == "coordinator",
        )
        for p in ordered
    )


def _ring_edges(judged: JobJudgement) -> tuple[Edge, ...]:
    """Ring neighbours in rank order: the edges an all-reduce uses. A single pair is drawn once."""
    witness = judged.witness
    ranked = sorted((p for p in judged.job.pods if p.rank is not None), key=lambda p: p.rank or 0)
    if witness is None:
        return ()
    placed = [p for p in ranked if witness.nodes.get(p.name)]
    found = []
    for a, b in ring(len(placed))[: 1 if len(placed) == 2 else None]:
        left, right = placed[a], placed[b]
        zones = witness.zone_of(left.name), witness.zone_of(right.name)
        crosses = bool(zones[0] and zones[1] and zones[0] != zones[1])
        kind = EdgeKind.CROSS_ZONE if crosses else EdgeKind.LOCAL
        where = f"{zones[0]} to {zones[1]}" if crosses else f"inside {zones[0] or 'one zone'}"
        title = f"ring: {left.name} to {right.name}, {where}"
        found.append(Edge(source=left.name, destination=right.name, kind=kind, title=title))
    return tuple(found)


def _denied_edges(judged: JobJudgement) -> tuple[Edge, ...]:
    pods = {p.name for p in judged.job.pods}
    chosen: dict[tuple[str, str], Edge] = {}
    for flow in judged.with_outcome(Outcome.DENIED, Outcome.UNJUDGED):
        pair = (flow.source, flow.destination)
        if flow.flow.kind in (FlowKind.COLLECTIVE, FlowKind.RENDEZVOUS, FlowKind.LAUNCHER) and pods.issuperset(pair):
            chosen.setdefault(pair, _verdict_edge(flow))
    return tuple(chosen.values())


def _verdict_edge(flow: FlowJudgement) -> Edge:
    denied = flow.verdict.outcome is Outcome.DENIED
    more = flow.pairs - 1
    alike = f" (and {more} pair{'' if more == 1 else 's'} alike)" if more else ""
    title = f"{flow.verdict.outcome}: {flow.source} to {flow.destination} on {flow.port}{alike}"
    kind = EdgeKind.DENIED if denied else EdgeKind.UNJUDGED
    return Edge(source=flow.source, destination=flow.destination, kind=kind, title=title)


def _caption(edges: Sequence[Edge]) -> str:
    counts = {kind: sum(1 for e in edges if e.kind is kind) for kind in EdgeKind}
    ring_size = counts[EdgeKind.CROSS_ZONE] + counts[EdgeKind.LOCAL]
    parts = [f"{counts[EdgeKind.CROSS_ZONE]} of {ring_size} ring edges cross zones"]
    if counts[EdgeKind.DENIED]:
        parts.append(f"{counts[EdgeKind.DENIED]} denied")
    if counts[EdgeKind.UNJUDGED]:
        parts.append(f"{counts[EdgeKind.UNJUDGED]} unjudged")
    return ", ".join(parts)
