"""
The compiled policies of one cluster, ready to answer. Endpoints that no policy can tell apart share one class: 1,024
ranks of a job are a handful of classes, and each pair of classes is judged once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from stallscope.model.kube import KubeObject
from stallscope.model.traffic import Direction, DirectionVerdict, Endpoint, Outcome, PeerEdge, PortRange, Protocol, Verdict
from stallscope.policy.case import Case, Selected, Selection, prepare, select
from stallscope.policy.evaluate import Attribution, decide, every_rule
from stallscope.policy.ir import Block, Tier
from stallscope.policy.portset import cut
from stallscope.policy.relevance import relevance
from stallscope.policy.view import View

Key = tuple[object, ...]


class Engine(NamedTuple):
    """
    What differs between engines.

    `view` makes a `View` (called once a class). `resolve` settles who the two ends are to each other (a host-network pod
    is a node to its peer), with several possibilities when a fact is missing. `exempt` answers a direction before any
    rule is asked (mode ``never``, an unmanaged end). `after` may soften the decision (Cilium's allow-localhost).
    `attribution` picks the rules to name. `pods_by_address`: it may match pods by address. `nodes`: whether two ends share
    a node matters; `missing` says so when nobody knows. `reads`: label keys that matter whatever the policies say.
    """

    view: Callable[[Endpoint], View]
    exempt: Callable[[Direction, View, View], DirectionVerdict | None]
    after: Callable[[Case, DirectionVerdict, int], DirectionVerdict]
    resolve: Callable[[Endpoint, Endpoint], Sequence[tuple[Endpoint, Endpoint]]]
    attribution: Attribution = every_rule
    pods_by_address: bool = False
    nodes: bool = False
    missing: str = ""
    reads: frozenset[str] = frozenset()


class Program:
    """Blocks, their index, and the answers given so far."""

    __slots__ = (
        "_cases",
        "_index",
        "_pairs",
        "_ranges",
        "_selected",
        "_views",
        "blocks",
        "engine",
        "relevance",
        "tiers",
    )

    def __init__(self, blocks: Iterable[Block], tiers: Sequence[Tier], engine: Engine) -> None:
        self.blocks = tuple(blocks)
        self.tiers = tuple(tiers)
        self.engine = engine
        self._index: dict[object, list[Block]] = {}
        self.relevance = relevance(
            self.blocks, pods_by_address=engine.pods_by_address, nodes=engine.nodes, always=engine.reads
        )
        self._views: dict[Key, View] = {}
        self._selected: dict[tuple[Direction, Key], Selection] = {}
        self._cases: dict[object, Case] = {}
        self._pairs: dict[object, Verdict] = {}
        self._ranges: dict[object, tuple[tuple[PortRange, Verdict], ...]] = {}
        for block in self.blocks:
            needs = block.subject.needs
            slot = (block.direction, block.subject.namespace, needs[0] if needs else None)
            self._index.setdefault(slot, []).append(block)

    def view(self, endpoint: Endpoint) -> View:
        """The endpoint's class as the engine sees it."""
        key = self.relevance.key(endpoint)
        found = self._views.get(key)
        if found is None:
            found = self._views[key] = replace(self.engine.view(endpoint), key=key)
        return found

    def selected(self, direction: Direction, view: View) -> Selection:
        """The blocks that select this end."""
        key = (direction, view.key)
        found = self._selected.get(key)
        if found is None:
            found = self._selected[key] = select(self._select(direction, view))
        return found

    def _select(self, direction: Direction, view: View) -> list[Selected]:
        chosen: list[Block] = []
        for namespace in dict.fromkeys(("", view.namespace)):
            chosen.extend(self._index.get((direction, namespace, None), ()))
            for pair in view.bare.items():
                chosen.extend(self._index.get((direction, namespace, pair), ()))
        return [Selected(b, sure) for b in chosen if (sure := b.subject.match(view)) is not False]

    def policies_of(self, view: View) -> tuple[KubeObject, ...]:
        """The policies that select this end in any direction."""
        return tuple(dict.fromkeys(s.block.policy for d in Direction for s in self.selected(d, view).chosen))

    def evaluate(self, edge: PeerEdge) -> Verdict:
        """The verdict of one edge."""
        key = (*self._pair_key(edge.source, edge.destination), edge.port, edge.protocol)
        found = self._pairs.get(key)
        if found is None:
            found = self._pairs[key] = self._judge(edge.source, edge.destination, edge.port, edge.protocol)
        return found

    def evaluate_range(
        self, source: Endpoint, destination: Endpoint, ports: PortRange
    ) -> tuple[tuple[PortRange, Verdict], ...]:
        """`ports` cut into stretches with one verdict each, in order; neighbours with equal deciding rules are one."""
        key = (*self._pair_key(source, destination), ports)
        found = self._ranges.get(key)
        if found is None:
            found = self._ranges[key] = self._judge_range(source, destination, ports)
        return found

    def _pair_key(self, source: Endpoint, destination: Endpoint) -> Key:
        """Classes of both ends, and how their nodes relate where that matters."""
        close: object = None
        if self.engine.nodes and (source.host_network or destination.host_network):
            close = source.node == destination.node if source.node and destination.node else None
        return (self.relevance.key(source), self.relevance.key(destination), close)

    def _judge_range(
        self, source: Endpoint, destination: Endpoint, ports: PortRange
    ) -> tuple[tuple[PortRange, Verdict], ...]:
        sets = [
            ports_of
            for left, right in self.engine.resolve(source, destination)
            for case in self._both(left, right, ports.protocol)
            for ports_of in case.port_sets
        ]
        result: list[tuple[PortRange, Verdict]] = []
        for first, last in cut(ports.first, ports.last, sets):
            verdict = self._judge(source, destination, first, ports.protocol)
            if result and _same(result[-1][1], verdict):
                result[-1] = (PortRange(result[-1][0].first, last, ports.protocol), _common(result[-1][1], verdict))
            else:
                result.append((PortRange(first, last, ports.protocol), verdict))
        return tuple(result)

    def _judge(self, source: Endpoint, destination: Endpoint, port: int, protocol: Protocol) -> Verdict:
        verdicts = [self._pair(a, b, port, protocol) for a, b in self.engine.resolve(source, destination)]
        first = verdicts[0]
        if all(v.outcome is first.outcome for v in verdicts):
            return first
        reason = f"not known: {self.engine.missing}"
        unknown = [DirectionVerdict(outcome=Outcome.UNJUDGED, direction=d, reason=reason) for d in Direction]
        return Verdict(outcome=Outcome.UNJUDGED, egress=unknown[0], ingress=unknown[1], reason=reason)

    def _pair(self, source: Endpoint, destination: Endpoint, port: int, protocol: Protocol) -> Verdict:
        out, into = self._both(source, destination, protocol)
        egress, ingress = self._direction(out, port), self._direction(into, port)
        outcome = combine(egress.outcome, ingress.outcome)
        verdict = Verdict(outcome=outcome, egress=egress, ingress=ingress)
        reason = verdict.deciding.reason if outcome in (Outcome.UNJUDGED, Outcome.PROXIED) else ""
        return Verdict(outcome=outcome, egress=egress, ingress=ingress, reason=reason) if reason else verdict

    def _both(self, source: Endpoint, destination: Endpoint, protocol: Protocol) -> tuple[Case, Case]:
        left, right = self.view(source), self.view(destination)
        return (
            self._case(Direction.EGRESS, left, right, right, protocol),
            self._case(Direction.INGRESS, right, left, right, protocol),
        )

    def _case(self, direction: Direction, subject: View, peer: View, destination: View, protocol: Protocol) -> Case:
        key = (direction, subject.key, peer.key, protocol)
        found = self._cases.get(key)
        if found is None:
            selected = self.selected(direction, subject)
            found = prepare(direction, subject, peer, destination, protocol, self.tiers, selected)
            self._cases[key] = found
        return found

    def _direction(self, case: Case, port: int) -> DirectionVerdict:
        early = self.engine.exempt(case.direction, case.subject, case.peer)
        return early if early is not None else self.engine.after(case, decide(case, port, self.engine.attribution), port)


def combine(egress: Outcome, ingress: Outcome) -> Outcome:
    """Both ends must allow; a denial at one end decides whatever is unknown at the other."""
    for outcome in (Outcome.DENIED, Outcome.UNJUDGED, Outcome.PROXIED):
        if outcome in (egress, ingress):
            return outcome
    return Outcome.ALLOWED


def _same(left: Verdict, right: Verdict) -> bool:
    return left.outcome is right.outcome and all(
        a.outcome is b.outcome and a.rules == b.rules and a.reason == b.reason
        for a, b in ((left.egress, right.egress), (left.ingress, right.ingress))
    )


def _common(left: Verdict, right: Verdict) -> Verdict:
    """One verdict for two stretches that are the `_same`: only rules that agree in both are said to agree."""
    sides = [
        (a, tuple(r for r in a.also if r in b.also)) for a, b in ((left.egress, right.egress), (left.ingress, right.ingress))
    ]
    if all(also == side.also for side, also in sides):
        return left
    egress, ingress = (replace(side, also=also) for side, also in sides)
    return replace(left, egress=egress, ingress=ingress)
