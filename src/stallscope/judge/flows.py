"""
Every flow of a job against the policies.

Pods that neither a policy nor the mesh can tell apart are one class (`Network.key`), so the work grows with classes, not
with pairs of ranks. One pod of each class speaks for it in the report.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import NamedTuple

from stallscope.judge.network import Member, Network
from stallscope.judge.outside import OutsideEnd
from stallscope.judge.result import FlowJudgement
from stallscope.model.topology import ZONE
from stallscope.model.traffic import (
    Direction,
    DirectionVerdict,
    Endpoint,
    Flow,
    Outcome,
    Outside,
    PortRange,
    Verdict,
)

#: Worst first: what a report should show when ports of one range differ.
WORST_FIRST = (Outcome.DENIED, Outcome.UNJUDGED, Outcome.PROXIED, Outcome.ALLOWED)


class _Class(NamedTuple):
    members: tuple[Member, ...]

    @property
    def first(self) -> Member:
        return self.members[0]


#: What the other end of a flow is that does not end at a pod of the job.
OutsideLookup = Callable[[Outside, Flow], OutsideEnd]


def judge_flows(
    flows: Sequence[Flow], pods: Sequence[Member], network: Network, outside: OutsideLookup
) -> tuple[FlowJudgement, ...]:
    """One judgement per flow, pair of classes and needed port range, worst outcomes first within a flow."""
    classes = _classes(pods, network)
    return tuple(j for flow in flows for j in _judge_flow(flow, classes, network, outside))


def zone_of(endpoint: Endpoint) -> str:
    """The zone an endpoint was placed in, from its own or its node's labels; empty when not placed."""
    return dict(endpoint.labels).get(ZONE) or dict(endpoint.node_labels).get(ZONE, "")


def _classes(pods: Sequence[Member], network: Network) -> Mapping[str, tuple[_Class, ...]]:
    grouped: dict[str, dict[Hashable, list[Member]]] = {}
    for pod in pods:
        key = (network.key(pod), zone_of(pod.endpoint))
        grouped.setdefault(pod.role, {}).setdefault(key, []).append(pod)
    return {role: tuple(_Class(tuple(members)) for members in groups.values()) for role, groups in grouped.items()}


def _judge_flow(
    flow: Flow, classes: Mapping[str, tuple[_Class, ...]], network: Network, outside: OutsideLookup
) -> list[FlowJudgement]:
    found: list[FlowJudgement] = []
    others = {end: outside(Outside(end), flow) for end in (flow.source, flow.destination) if end in set(Outside)}
    missing = [end.why for end in others.values() if end.endpoint is None]
    if missing:
        return [_unknown(flow, missing[0], classes)] if flow.required else []
    sources = tuple(_ends(flow.source, None, classes, others))
    destinations = tuple(_ends(flow.destination, flow.destination_index, classes, others))
    for source in sources:
        for destination in destinations:
            pair = _pair(source, destination)
            if pair is None:
                continue
            for ports in flow.ports:
                found.append(judge_pair(flow, *pair, ports, network))
    return sorted(found, key=lambda j: WORST_FIRST.index(j.verdict.outcome))


def _ends(
    name: str, index: int | None, classes: Mapping[str, tuple[_Class, ...]], others: Mapping[str, OutsideEnd]
) -> Iterator[_Class]:
    known = others.get(name)
    if known is not None:
        if known.endpoint is not None:
            yield _Class((Member(role=name, index=0, endpoint=known.endpoint, annotations=known.annotations),))
        return
    for group in classes.get(name, ()):
        members = group.members if index is None else tuple(m for m in group.members if m.index == index)
        if members:
            yield _Class(members)


def _pair(source: _Class, destination: _Class) -> tuple[Member, Member, int] | None:
    """A representative pair of distinct pods and how many ordered pairs it stands for."""
    same = {m.endpoint.name for m in source.members} & {m.endpoint.name for m in destination.members}
    count = len(source.members) * len(destination.members) - len(same)
    if count <= 0:
        return None
    first = source.first
    other = next((m for m in destination.members if m.endpoint.name != first.endpoint.name), None)
    if other is None:
        first, other = source.members[1], destination.first
    return first, other, count


def judge_pair(
    flow: Flow, source: Member, destination: Member, pairs: int, ports: PortRange, network: Network
) -> FlowJudgement:
    """The worst verdict over `ports` between two members; `pairs` is how many pairs it stands for."""
    segments = network.stretches(flow, source, destination, ports)
    worst, verdict = min(segments, key=lambda s: WORST_FIRST.index(s[1].outcome))
    return FlowJudgement(
        flow=flow,
        source=source.endpoint.name,
        destination=destination.endpoint.name,
        source_role=source.role,
        destination_role=destination.role,
        port=worst,
        verdict=verdict,
        zones=(zone_of(source.endpoint), zone_of(destination.endpoint)),
        pairs=pairs,
    )


def _unknown(flow: Flow, fact: str, classes: Mapping[str, tuple[_Class, ...]]) -> FlowJudgement:
    egress, ingress = (
        DirectionVerdict(outcome=Outcome.UNJUDGED, direction=d, reason=fact) for d in (Direction.EGRESS, Direction.INGRESS)
    )
    names = [classes[end][0].first.endpoint.name if end in classes else end for end in (flow.source, flow.destination)]
    return FlowJudgement(
        flow=flow,
        source=names[0],
        destination=names[1],
        source_role=flow.source,
        destination_role=flow.destination,
        port=flow.ports[0],
        verdict=Verdict(outcome=Outcome.UNJUDGED, egress=egress, ingress=ingress, reason=fact),
    )
