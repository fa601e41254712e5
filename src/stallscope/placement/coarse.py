"""
The search when states are too many: per place and class only "none", "some" or "full" is remembered.

Every step the scheduler can make has a step here, so what is unreachable here is unreachable ("cannot split" and "must
start whole" are proofs). The converse does not hold: what is reachable here may need a filling that does not exist; a
witness decides that. Counts are reconciled at the end: the bound pods of each class must add up.

This is an abstract interpretation (Cousot and Cousot, POPL 1977) of `search.successors`; the domain per pool is
{0}, [1, room-1], [room-loss, room].
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby

from stallscope.placement.ends import End
from stallscope.placement.interplay import Counted
from stallscope.placement.pools import Pools

EMPTY, SOME, FULL = 0, 1, 2
Levels = tuple[int, ...]
#: ``(run of alike pods in creation order, classes with waiting pods, level per pool)``
Rough = tuple[int, tuple[bool, ...], Levels]


@dataclass(slots=True, kw_only=True)
class Coarse:
    finals: set[End] = field(default_factory=set)
    states: int = 0
    complete: bool = True


def explore_coarsely(pools: Pools, budget: int) -> Coarse:
    """Every abstract state, at most `budget` of them."""
    problem = pools.problem
    walk = _Walk(pools)
    result = Coarse()
    start: Rough = (0, (False,) * len(problem.classes), (EMPTY,) * len(walk.pools.pools))
    seen = {start}
    stack = [start]
    while stack:
        state = stack.pop()
        result.states += 1
        if result.states > budget:
            result.complete = False
            break
        for following in walk.successors(state):
            if following not in seen:
                seen.add(following)
                stack.append(following)
        if state[0] == len(walk.runs):
            final = walk.final(state)
            if final is not None:
                result.finals.add(final)
    return result


class _Walk:
    """The abstract transition relation of one problem."""

    def __init__(self, pools: Pools) -> None:
        self.pools = pools
        self.problem = pools.problem
        self.runs = [(c, len(list(group))) for c, group in groupby(self.problem.order)]
        self.sizes = [c.size for c in self.problem.classes]

    def successors(self, state: Rough) -> Iterator[Rough]:
        run, waiting, levels = state
        if run < len(self.runs):
            chosen, count = self.runs[run]
            ends = (run + 1,) if count == 1 else (run, run + 1)
            may, sure = self.places_for(chosen, levels)
            for following in self._placed(may, levels):
                yield from ((end, waiting, following) for end in ends)
            if not sure:
                now = (*waiting[:chosen], True, *waiting[chosen + 1 :])
                yield from ((end, now, levels) for end in ends)
        for chosen, some in enumerate(waiting):
            if some and self.problem.interplay[chosen].may_recover:
                may, _ = self.places_for(chosen, levels)
                gone = (*waiting[:chosen], False, *waiting[chosen + 1 :])
                for following in self._placed(may, levels):
                    yield (run, waiting, following)
                    yield (run, gone, following)

    def _placed(self, may: list[int], levels: Levels) -> Iterator[Levels]:
        for position in may:
            pool = self.pools.pools[position]
            if pool.room > 1 or pool.loss:
                yield (*levels[:position], SOME, *levels[position + 1 :])
            if pool.may_fill:
                yield (*levels[:position], FULL, *levels[position + 1 :])

    def places_for(self, chosen: int, levels: Levels) -> tuple[list[int], bool]:
        """Pools that may take the next pod, and whether one certainly can."""
        interplay = self.problem.interplay[chosen]
        may = [i for i in self._open_to(chosen, levels) if levels[i] != FULL and self.pools.pools[i].room]
        certain = [i for i in may if not self._contested(i, levels)]
        if any(k in self.problem.per_node for k in interplay.keys):
            return may, False
        if not interplay.spread or chosen in self.pools.settled:
            return may, bool(certain)
        may = [i for i in may if self.pools.pools[i].limit > 0]
        return may, self._sure_despite_spread(chosen, certain, levels)

    def _contested(self, position: int, levels: Levels) -> bool:
        """Others may have taken the room that is left."""
        pool = self.pools.pools[position]
        if not pool.loss:
            return False
        rivals = (i for i, p in enumerate(self.pools.pools) if p.place == pool.place and p.chosen in pool.rivals)
        return any(levels[i] != EMPTY for i in rivals)

    def _apart(self, chosen: int, open_: list[int], levels: Levels) -> list[int]:
        for blocker in self.problem.interplay[chosen].blockers:
            taken = self._domains_with(blocker.classes, blocker.key, levels)
            open_ = [i for i in open_ if self._domain(i, blocker.key) not in taken]
        return open_

    def _together(self, chosen: int, open_: list[int], levels: Levels) -> list[int]:
        interplay = self.problem.interplay[chosen]
        if not interplay.keys:
            return open_
        pairs = set(interplay.attracted_base)
        dynamic = False
        for key in interplay.keys:
            for i, pool in enumerate(self.pools.pools):
                if levels[i] != EMPTY and pool.chosen in interplay.attract:
                    dynamic = dynamic or key in self.pools.places[pool.place].keyed
                    if key in self.pools.places[pool.place].domains:
                        pairs.add((key, self.pools.places[pool.place].domains[key]))
        if not pairs and not dynamic:
            return open_ if interplay.self_ok else []
        shared = [k for k in interplay.keys if k not in self.problem.per_node]
        return [i for i in open_ if all((k, self._domain(i, k)) in pairs for k in shared)]

    def _domain(self, position: int, key: str) -> str | None:
        return self.pools.places[self.pools.pools[position].place].domains.get(key)

    def _domains_with(self, classes: tuple[int, ...], key: str, levels: Levels) -> set[str]:
        found = set()
        for i, pool in enumerate(self.pools.pools):
            domain = self._domain(i, key)
            if levels[i] != EMPTY and pool.chosen in classes and domain is not None:
                found.add(domain)
        return found

    def _sure_despite_spread(self, chosen: int, certain: list[int], levels: Levels) -> bool:
        """
        The emptiest domain always passes (maxSkew >= 1). One of the domains with room is it when every counted domain
        has room, or when a domain with room still holds what it held at first, the minimum.
        """
        interplay = self.problem.interplay[chosen]
        if len(interplay.spread) != 1 or interplay.keys or interplay.blockers:
            return False
        counted = interplay.spread[0]
        if counted.key in self.problem.per_node or counted.max_skew < 1 or len(counted.base) < counted.min_domains:
            return False
        roomy = {self._domain(i, counted.key) for i in certain}
        if set(counted.base) <= roomy:
            return True
        touched = self._domains_with(counted.classes, counted.key, levels)
        lowest = min(counted.base.values(), default=0)
        return any(v == lowest and d in roomy and d not in touched for d, v in counted.base.items())

    def final(self, state: Rough) -> End | None:
        """The end this state stands for, None when the counts of no real run add up to it."""
        _, waiting, levels = state
        for chosen, some in enumerate(waiting):
            if some and self.problem.interplay[chosen].may_recover and self.places_for(chosen, levels)[1]:
                return None
        ranges = self._ranges(levels)
        if ranges is None:
            return None
        low = high = 0
        for chosen, some in enumerate(waiting):
            least, most = self._total(chosen, ranges, levels, waits=some)
            wanted = self.sizes[chosen] - some
            if least > wanted or least > most or (not some and most < wanted):
                return None
            low, high = low + (least if some else wanted), high + min(most, wanted)
        return End(self._zones(levels), low, high)

    def _ranges(self, levels: Levels) -> list[tuple[int, int]] | None:
        ranges = []
        for level, pool in zip(levels, self.pools.pools, strict=True):
            if level == EMPTY:
                ranges.append((0, 0))
            elif level == FULL:
                ranges.append((max(1, pool.room - pool.loss), min(pool.room, pool.limit)))
            else:
                ranges.append((1, min(pool.room - (0 if pool.loss else 1), pool.limit)))
        for counted in self.pools.bounded.values():
            if not self._level_enough(counted, ranges):
                return None
        return ranges if all(low <= high for low, high in ranges) else None

    def _level_enough(self, counted: Counted, ranges: list[tuple[int, int]]) -> bool:
        """No domain can end above the emptiest one by more than maxSkew; narrows `ranges` where one pool is a domain."""
        if len(counted.base) < counted.min_domains:
            return True
        high, low = dict(counted.base), dict(counted.base)
        inside: dict[str, list[int]] = {d: [] for d in counted.base}
        for i, pool in enumerate(self.pools.pools):
            domain = self._domain(i, counted.key)
            if pool.chosen in counted.classes and domain in high:
                low[domain], high[domain] = low[domain] + ranges[i][0], high[domain] + ranges[i][1]
                inside[domain].append(i)
        ceiling = min(high.values(), default=0) + counted.max_skew
        for domain, positions in inside.items():
            if positions and low[domain] > max(ceiling, counted.base[domain]):
                return False
            if len(positions) == 1:
                least, most = ranges[positions[0]]
                ranges[positions[0]] = (least, min(most, max(ceiling - counted.base[domain], 0)))
        return True

    def _total(self, chosen: int, ranges: list[tuple[int, int]], levels: Levels, *, waits: bool) -> tuple[int, int]:
        """
        How many pods of a class are bound. A class that waits found every pool it may use taken, by itself or by rivals,
        and rivals can take only so much in all.
        """
        closed = set(self._open_to(chosen, levels)) if waits and not self._uncertain(chosen) else set()
        least = most = whole = 0
        for i in self.pools.of[chosen]:
            pool = self.pools.pools[i]
            low, high = ranges[i]
            if levels[i] == FULL or i in closed:
                whole += pool.room
                low = max(low, pool.room - (pool.loss if self._contested(i, levels) else 0))
            else:
                whole += low
            if low > high:
                return 1, 0
            least, most = least + low, most + high
        taken = self.pools.taken_at_most(chosen)
        return max(least, whole - taken if taken is not None else least), most

    def _uncertain(self, chosen: int) -> bool:
        """Whether more than room and domains decides where the class may go."""
        interplay = self.problem.interplay[chosen]
        if interplay.spread and chosen not in self.pools.settled:
            return True
        return any(k in self.problem.per_node for k in interplay.keys)

    def _open_to(self, chosen: int, levels: Levels) -> list[int]:
        """Pools whose domains admit the class, room aside."""
        return self._together(chosen, self._apart(chosen, list(self.pools.of[chosen]), levels), levels)

    def _zones(self, levels: Levels) -> frozenset[str]:
        counted = {c.index for c in self.problem.classes if c.counted}
        return frozenset(
            self.pools.places[p.place].zone
            for level, p in zip(levels, self.pools.pools, strict=True)
            if level != EMPTY and p.chosen in counted
        )
