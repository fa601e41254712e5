"""
What can be said without a search: outcomes of pods that only look for room, in closed form, and safe bounds for the rest.

For pods without terms between them capacity only shrinks, so an outcome is a packing to which no waiting pod can be
added. Which zones it may use then follows from counting: a class with room outside a set of zones must fit into it whole
to stay inside it, and every zone of the set needs a pod of its own (Hall's theorem, P. Hall 1935).
"""

from __future__ import annotations

from itertools import combinations

from stallscope.placement.ends import End
from stallscope.placement.pools import Pools

#: Zones above which sets of zones are not listed.
MOST_ZONES = 10


def free_ends(pools: Pools) -> frozenset[End] | None:
    """
    Every way to end for a job whose pods only look for room; exact where classes do not compete for nodes, a superset
    where they do. None when there are too many zones to list their sets.
    """
    zones = zones_of_ranks(pools)
    if len(zones) > MOST_ZONES:
        return None
    low, high = _bound(pools)
    size = len(pools.problem.order)
    found = set()
    for count in range(len(zones) + 1):
        for chosen in combinations(zones, count):
            inside = frozenset(chosen)
            if _can_stay_inside(pools, inside) and _can_cover(pools, inside):
                found.add(End(inside, min(low, size), min(high, size)))
    return frozenset(found)


def safe_ends(pools: Pools) -> frozenset[End] | None:
    """Ends that include every real one, for any job: all sets of zones its ranks can enter, and bounds on what is bound."""
    zones = zones_of_ranks(pools)
    if len(zones) > MOST_ZONES:
        return None
    low, high = _bound(pools)
    ranks = sum(c.size for c in pools.problem.classes if c.counted)
    return frozenset(
        End(frozenset(chosen), low, high)
        for count in range(min(len(zones), ranks) + 1)
        for chosen in combinations(zones, count)
        if chosen or low == 0 or ranks < len(pools.problem.order)
    )


def zones_of_ranks(pools: Pools) -> list[str]:
    """Zones with room for a counted class."""
    counted = {c.index for c in pools.problem.classes if c.counted}
    return sorted({pools.places[p.place].zone for p in pools.pools if p.chosen in counted and p.room})


def _bound(pools: Pools) -> tuple[int, int]:
    """Fewest and most pods an outcome binds."""
    low = high = 0
    for chosen in pools.problem.classes:
        room = sum(pools.pools[i].room for i in pools.of[chosen.index])
        high += min(chosen.size, room)
        if pools.problem.interplay[chosen.index].free:
            low += pools.least_bound(chosen.index)
        elif _never_full(pools, chosen.index):
            low += chosen.size
    return low, high


def _never_full(pools: Pools, chosen: int) -> bool:
    """A spread class whose every counted domain keeps room: the emptiest domain always passes, so each pod is bound."""
    counted = pools.bounded.get(chosen)
    interplay = pools.problem.interplay[chosen]
    if counted is None or interplay.keys or interplay.blockers or len(interplay.spread) != 1:
        return False
    if counted.max_skew < 1 or len(counted.base) < counted.min_domains:
        return False
    roomy = {
        pools.places[pools.pools[i].place].domains[counted.key]
        for i in pools.of[chosen]
        if pools.pools[i].limit < pools.pools[i].room - pools.pools[i].loss or pools.pools[i].limit == 0
    }
    return set(counted.base) <= roomy


def _can_stay_inside(pools: Pools, zones: frozenset[str]) -> bool:
    """No counted class is pushed out of the zones: it fits there whole, or has no room elsewhere for certain."""
    every = frozenset(zones_of_ranks(pools))
    for chosen in pools.problem.classes:
        if chosen.counted and pools.room_in(chosen.index, zones) < chosen.size:
            outside = pools.room_in(chosen.index, every - zones)
            taken = pools.taken_at_most(chosen.index)
            if outside and taken is not None and outside > taken:
                return False
    return True


def _can_cover(pools: Pools, zones: frozenset[str]) -> bool:
    """Each zone gets a pod: a matching of zones to pods, classes being as many equal pods."""
    if not zones:
        return all(not pools.room_in(c.index, frozenset(zones_of_ranks(pools))) for c in pools.problem.classes if c.counted)
    ranks = [c.index for c in pools.problem.classes if c.counted]
    given: dict[str, int] = {}
    left = {c: pools.problem.classes[c].size for c in ranks}

    def place(zone: str, tried: set[str]) -> bool:
        tried.add(zone)
        for c in ranks:
            if pools.room_in(c, frozenset({zone})):
                if left[c]:
                    left[c] -= 1
                    given[zone] = c
                    return True
                for other in [z for z, owner in given.items() if owner == c and z not in tried]:
                    del given[other]
                    given[zone] = c
                    if place(other, tried):
                        return True
                    del given[zone]
                    given[other] = c
        return False

    return all(place(zone, set()) for zone in sorted(zones))
