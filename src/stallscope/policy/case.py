"""One direction of one pair of classes, prepared so that any port can be asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from stallscope.model.traffic import Direction, NearMiss, Protocol, RuleRef
from stallscope.policy.ir import Action, Block, Clause, Match, Tier
from stallscope.policy.portset import Interval, describe, intervals
from stallscope.policy.view import View

EVERY_PORT: tuple[Interval, ...] = ((0, 65535),)
NEAREST = 5


class Selected(NamedTuple):
    """A block that selects the subject; `sure` is True or names the fact on which that depends."""

    block: Block
    sure: Match


class Selection(NamedTuple):
    """Every block that selects a subject in one direction, and the policies among them that isolate it."""

    chosen: tuple[Selected, ...]
    isolating: tuple[RuleRef, ...]


def select(chosen: Sequence[Selected]) -> Selection:
    """In a fixed order, so that the order of files changes nothing."""
    ordered = tuple(sorted(chosen, key=lambda s: (s.block.policy.ref, s.block.ref.spec)))
    return Selection(ordered, tuple(dict.fromkeys(s.block.ref for s in ordered if s.block.isolates)))


class Candidate(NamedTuple):
    """A clause whose peers match (or may match: `sure` names the fact), with the ports it covers."""

    clause: Clause
    tier: int
    sure: Match
    ports: tuple[Interval, ...]


@dataclass(slots=True, kw_only=True)
class Case:
    """Everything about one direction but the port: ready to be asked for any port of `protocol`."""

    direction: Direction
    subject: View
    peer: View
    destination: View
    protocol: Protocol
    tiers: Sequence[Tier]
    selection: Selection
    candidates: tuple[Candidate, ...]
    _nearest: tuple[NearMiss, ...] | None = field(default=None, init=False)

    @property
    def selected(self) -> tuple[Selected, ...]:
        return self.selection.chosen

    @property
    def port_sets(self) -> Iterator[tuple[Interval, ...]]:
        return (c.ports for c in self.candidates)

    @property
    def nearest(self) -> tuple[NearMiss, ...]:
        """The allow rules that failed most narrowly; worked out once, as denials of all ports share it."""
        if self._nearest is None:
            self._nearest = tuple(_near(self))
        return self._nearest


def prepare(
    direction: Direction,
    subject: View,
    peer: View,
    destination: View,
    protocol: Protocol,
    tiers: Sequence[Tier],
    selection: Selection,
) -> Case:
    """Match peers once; what remains depends on the port only."""
    found = []
    for choice in selection.chosen:
        for clause in choice.block.clauses:
            sure = _both(choice.sure, match_peers(clause, peer))
            if sure is False:
                continue
            ports = EVERY_PORT if clause.ports is None else intervals(clause.ports, protocol, destination.named_ports)
            if ports:
                found.append(Candidate(clause, choice.block.tier, sure, ports))
    found.sort(key=_rank)
    return Case(
        direction=direction,
        subject=subject,
        peer=peer,
        destination=destination,
        protocol=protocol,
        tiers=tiers,
        selection=selection,
        candidates=tuple(found),
    )


def _rank(candidate: Candidate) -> tuple[object, ...]:
    return (candidate.tier, candidate.clause.order, candidate.clause.action)


def _both(left: Match, right: Match) -> Match:
    if left is False or right is False:
        return False
    return right if left is True else left


def match_peers(clause: Clause, peer: View) -> Match:
    """Any of the clause's peers matches: True wins over unknown, unknown over False."""
    if clause.peers is None:
        return True
    unknown: Match = False
    for option in clause.peers:
        found = option.match(peer)
        if found is True:
            return True
        if found is not False:
            unknown = unknown or found
    return unknown


def _near(case: Case) -> Iterator[NearMiss]:
    """Most nearly matching first: a wrong port before a wrong peer, few failed labels before many."""
    ranked: dict[int, tuple[int, int, Clause]] = {}  # by rule: the clauses of one rule share its reference object
    for choice in case.selected:
        for clause in choice.block.clauses:
            if clause.action is Action.ALLOW:
                far = _peers_away(clause, case.peer)
                place = (far + 1 if far else 0) + (0 if _ports_fit(case, clause) else 4 if far else 1)
                best = ranked.get(id(clause.ref))
                if best is None or place < best[0]:
                    ranked[id(clause.ref)] = (place, far, clause)
    for _, far, clause in sorted(ranked.values(), key=lambda m: m[0])[:NEAREST]:
        yield NearMiss(rule=clause.ref, why=_why(case, clause, far))


def _ports_fit(case: Case, clause: Clause) -> bool:
    """Whether the clause opens any port of this protocol at this destination."""
    if clause.ports is None:
        return True
    for item in clause.ports:
        plain = item.protocol is case.protocol and not item.name
        if plain or item.interval(case.protocol, case.destination.named_ports) is not None:
            return True
    return False


def _peers_away(clause: Clause, peer: View) -> int:
    if clause.peers is None:
        return 0
    if len(clause.peers) == 1:
        return clause.peers[0].distance(peer)
    return min((p.distance(peer) for p in clause.peers), default=18)


def _why(case: Case, clause: Clause, far: int) -> str:
    if not far:
        return f"it admits this peer, but only on {describe(clause.ports or ())}"
    if not clause.peers:
        return "it names no peer, so it admits nobody"
    near = min(clause.peers, key=lambda p: p.distance(case.peer))
    ports = "" if clause.ports is None else f" (and it opens only {describe(clause.ports)})"
    return f"it does not admit this peer: {near.why_not(case.peer)}{ports}"
