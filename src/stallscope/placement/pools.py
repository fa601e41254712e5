"""
Room for a job counted per topology domain instead of per node: what the coarse search works on.

A *pool* is the room for one class of pods on all nodes of one place (same zone and topology domains). Where classes
compete for nodes the room is a range: `loss` of its slots may be taken by others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from stallscope.placement.interplay import Counted
from stallscope.placement.kinds import Kind
from stallscope.placement.problem import Problem


class Place(NamedTuple):
    """Nodes that lie in the same domains of every key that matters."""

    zone: str
    domains: Mapping[str, str]
    keyed: frozenset[str]


@dataclass(slots=True, kw_only=True)
class Pool:
    """
    Between `room - loss` and `room` pods of class `chosen` fit at `place`. `limit` is an upper bound on how many will
    ever be there for another reason (spreading); the pool can be full only when that is not below `room - loss`.
    """

    place: int
    chosen: int
    room: int
    loss: int = 0
    rivals: frozenset[int] = frozenset()
    limit: int = 0

    @property
    def may_fill(self) -> bool:
        return self.limit >= self.room - self.loss


@dataclass(slots=True, kw_only=True)
class Pools:
    """
    `of[c]` are the pools of class c. `bounded[c]`: its one spread constraint whose arithmetic holds for all it counts.
    `settled`: classes whose spread constraint has a minimum that cannot change, so that it became room.
    """

    problem: Problem
    places: list[Place]
    pools: list[Pool]
    of: list[tuple[int, ...]]
    bounded: dict[int, Counted] = field(default_factory=dict)
    settled: set[int] = field(default_factory=set)

    def taken_at_most(self, chosen: int) -> int | None:
        """Slots of the class that all rivals together can take; None when one rival may block a whole node."""
        problem = self.problem
        rivals = {r for i in self.of[chosen] for r in self.pools[i].rivals}
        if any(k.single is None and any(o in k.clash[chosen] for o in rivals) for k in problem.kinds):
            return None
        needs = problem.needs
        return sum(
            problem.classes[other].size
            * max(1, max((-(-f // o) for o, f in zip(needs[chosen], needs[other], strict=True) if o), default=0))
            for other in rivals
        )

    def least_bound(self, chosen: int) -> int:
        """Pods of a class that only looks for room that are bound in every outcome."""
        whole = sum(self.pools[i].room for i in self.of[chosen])
        taken = self.taken_at_most(chosen)
        lost = sum(self.pools[i].loss for i in self.of[chosen])
        lost = lost if taken is None else min(lost, taken)
        return max(0, min(self.problem.classes[chosen].size, whole - lost))

    def room_in(self, chosen: int, zones: frozenset[str]) -> int:
        """The most pods of the class that fit in these zones."""
        return sum(self.pools[i].room for i in self.of[chosen] if self.places[self.pools[i].place].zone in zones)


def make_pools(problem: Problem) -> Pools:
    index: dict[object, int] = {}
    places: list[Place] = []
    room: dict[tuple[int, int], int] = {}
    loss: dict[tuple[int, int], int] = {}
    rivals: dict[tuple[int, int], set[int]] = {}
    for kind in problem.kinds:
        key = (kind.zone, tuple(kind.domains.items()), kind.keyed)
        place = index.setdefault(key, len(places))
        if place == len(places):
            places.append(Place(zone=kind.zone, domains=kind.domains, keyed=kind.keyed))
        for chosen in range(len(problem.classes)):
            most = _most(problem, kind, chosen)
            if most:
                where = (place, chosen)
                room[where] = room.get(where, 0) + most * len(kind.nodes)
                for other in _rivals(problem, kind, chosen):
                    rivals.setdefault(where, set()).add(other)
                    taken = problem.classes[other].size * _takes(problem, kind, other, chosen, most)
                    loss[where] = loss.get(where, 0) + min(most * len(kind.nodes), taken)
    pools = [
        Pool(
            place=place,
            chosen=chosen,
            room=amount,
            loss=min(loss.get((place, chosen), 0), amount),
            rivals=frozenset(rivals.get((place, chosen), ())),
            limit=min(amount, problem.classes[chosen].size),
        )
        for (place, chosen), amount in sorted(room.items())
    ]
    of = [tuple(i for i, p in enumerate(pools) if p.chosen == c) for c in range(len(problem.classes))]
    found = Pools(problem=problem, places=places, pools=pools, of=of)
    _limit_by_spread(found)
    return found


def _most(problem: Problem, kind: Kind, chosen: int) -> int:
    if kind.single is not None:
        return int(kind.single == chosen)
    return problem.most(kind, problem.empty, chosen) if kind.allowed[chosen] else 0


def _rivals(problem: Problem, kind: Kind, chosen: int) -> list[int]:
    """Other classes that can take room from `chosen` on such a node."""
    if kind.single is not None:
        return []
    return [o for o in range(len(problem.classes)) if o != chosen and _most(problem, kind, o)]


def _takes(problem: Problem, kind: Kind, other: int, chosen: int, most: int) -> int:
    """Slots of `chosen` that one pod of `other` can take on one node, at most: floors lose no more than the ceiling."""
    if other in kind.clash[chosen]:
        return most
    taken = max((int(other in classes) for classes, _ in kind.caps[chosen]), default=0)
    for own, foreign in zip(problem.needs[chosen], problem.needs[other], strict=True):
        if own:
            taken = max(taken, -(-foreign // own))
    return min(taken, most)


def _limit_by_spread(found: Pools) -> None:
    """Spread constraints bound how many pods a domain can ever hold; with a fixed minimum they are plain room."""
    problem = found.problem
    for chosen, interplay in enumerate(problem.interplay):
        if len(interplay.spread) != 1 or interplay.spread[0].key in problem.per_node:
            continue
        counted = interplay.spread[0]
        lowest = _fixed_minimum(found, counted)
        if lowest is not None and _one_place_a_domain(found, counted):
            _settle(found, chosen, counted, lowest)
        elif lowest is None and _alike(problem, chosen, counted):
            found.bounded[chosen] = counted
            for position in found.of[chosen]:
                pool = found.pools[position]
                domain = found.places[pool.place].domains[counted.key]
                pool.limit = max(0, min(pool.limit, _ceiling(found, counted) - counted.base.get(domain, 0)))


def _one_place_a_domain(found: Pools, counted: Counted) -> bool:
    places: dict[str | None, set[int]] = {}
    for pool in found.pools:
        if pool.chosen in counted.classes:
            places.setdefault(found.places[pool.place].domains.get(counted.key), set()).add(pool.place)
    return all(len(p) == 1 for p in places.values())


def _settle(found: Pools, chosen: int, counted: Counted, lowest: int) -> None:
    """At most minimum + maxSkew counted pods before the next of this class; the other counted classes are rivals."""
    others = frozenset(counted.classes) - {chosen}
    for position in found.of[chosen]:
        pool = found.pools[position]
        place = found.places[pool.place]
        ceiling = lowest + counted.max_skew - counted.self_match + 1 - counted.base.get(place.domains[counted.key], 0)
        here = frozenset(p.chosen for p in found.pools if p.place == pool.place and p.chosen in others)
        if chosen not in counted.classes:
            return
        pool.rivals |= here
        pool.room = max(0, min(pool.room, ceiling))
        pool.loss = min(pool.room, pool.loss + sum(found.problem.classes[o].size for o in here))
        pool.limit = min(pool.limit, pool.room)
    found.settled.add(chosen)


def _alike(problem: Problem, chosen: int, counted: Counted) -> bool:
    """Every class the constraint counts carries the same constraint on the same nodes: its arithmetic bounds all of them."""

    def same(c: int, other: Counted) -> bool:
        return (
            (other.key, other.classes, other.self_match) == (counted.key, counted.classes, 1)
            and other.max_skew <= counted.max_skew
            and other.min_domains == counted.min_domains
            and all(k.eligible[c][other.index] == k.eligible[chosen][counted.index] for k in problem.kinds)
        )

    if counted.self_match != 1:
        return False
    return all(any(same(c, other) for other in problem.interplay[c].spread) for c in counted.classes)


def _fixed_minimum(found: Pools, counted: Counted) -> int | None:
    """The global minimum when it cannot change: too few domains, or an emptiest domain that no counted pod can enter."""
    if len(counted.base) < counted.min_domains or not counted.base:
        return 0
    lowest = min(counted.base.values())
    entered = {found.places[p.place].domains.get(counted.key) for p in found.pools if p.chosen in counted.classes and p.room}
    return lowest if any(v == lowest and d not in entered for d, v in counted.base.items()) else None


def _ceiling(found: Pools, counted: Counted) -> int:
    """
    The most counted pods a domain can end with: when a domain reaches x all Z - 1 others hold at least x - maxSkew, so
    Z x - (Z-1) maxSkew <= all counted pods.
    """
    domains = len(counted.base)
    total = sum(counted.base.values()) + sum(found.problem.classes[c].size for c in counted.classes)
    return (total + (domains - 1) * counted.max_skew) // domains
