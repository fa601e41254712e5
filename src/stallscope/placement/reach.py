"""Everything that can become of a problem, by whichever search can afford it, with concrete witnesses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from stallscope.placement.adversary import Strategy, fill_up, interleave, largest_first, most_harmful, play, smallest_first
from stallscope.placement.ends import End
from stallscope.placement.outcome import Placement
from stallscope.placement.problem import Problem
from stallscope.placement.search import Search, State, explore, waiting, zones_of
from stallscope.placement.witness import crossings, replay, zones_used

#: Cells the exact search may look at, and pools the coarse one may: about half a second each on one slow core.
EXACT_WORK = 60_000
COARSE_WORK = 120_000


class Reach(NamedTuple):
    """
    `ends` hold everything that can happen (a superset when only the coarse search could afford it). `witnesses` are
    concrete outcomes among them. `exhaustive` false: the searches were cut, more may happen.
    """

    size: int
    ends: frozenset[End]
    witnesses: tuple[Placement, ...]
    exhaustive: bool

    @property
    def may_start_whole(self) -> bool:
        return not self.exhaustive or any(e.high >= self.size for e in self.ends)

    @property
    def must_start_whole(self) -> bool:
        return self.exhaustive and all(e.low >= self.size for e in self.ends)


def reach(problem: Problem, names: Sequence[str], *, exact: int = EXACT_WORK, coarse: int = COARSE_WORK) -> Reach:
    """Exact where the states are few, else proofs (closed form, coarse search, bounds) plus adversarial runs."""
    size = len(problem.order)
    search = explore(problem, exact)
    if search.complete:
        ends = frozenset(_end(problem, f, size) for f in search.finals)
        return Reach(size=size, ends=ends, witnesses=_from_search(problem, search, names), exhaustive=True)
    proved = _proved(problem, coarse)
    played = _from_runs(problem, names, (interleave, smallest_first, most_harmful, largest_first, fill_up))
    seen = frozenset(_seen(problem, p, names) for p in played)
    return Reach(size=size, ends=(proved or frozenset()) | seen, witnesses=played, exhaustive=proved is not None)


def _proved(problem: Problem, work: int) -> frozenset[End] | None:
    """A superset of what can happen, by the sharpest means that ends in time; None when there are too many zones."""
    # here, as the exact search is enough for most jobs
    from stallscope.placement.bounds import free_ends, safe_ends
    from stallscope.placement.coarse import explore_coarsely
    from stallscope.placement.pools import make_pools

    pools = make_pools(problem)
    if all(i.free for i in problem.interplay):
        return free_ends(pools)
    rough = explore_coarsely(pools, work // max(len(pools.pools), 1))
    return frozenset(rough.finals) if rough.complete else safe_ends(pools)


def _end(problem: Problem, state: State, size: int) -> End:
    bound = size - waiting(state)
    return End(zones_of(problem, state), bound, bound)


def _seen(problem: Problem, placement: Placement, names: Sequence[str]) -> End:
    bound = len(names) - len(placement.pending)
    return End(zones_used(problem, placement, names), bound, bound)


def _from_search(problem: Problem, search: Search, names: Sequence[str]) -> tuple[Placement, ...]:
    """One placement per distinct end, and the adversary's ring order."""
    chosen: dict[End, State] = {}
    for final in search.finals:
        chosen.setdefault(_end(problem, final, len(names)), final)
    found = [replay(problem, search.path(f), names) for f in chosen.values()]
    return (*found, *_from_runs(problem, names, (interleave,)))


def _from_runs(problem: Problem, names: Sequence[str], strategies: Iterable[Strategy]) -> tuple[Placement, ...]:
    return tuple(replay(problem, play(problem, s)[0], names) for s in strategies)


def worst_of(problem: Problem, placements: Iterable[Placement], names: Sequence[str]) -> Placement | None:
    """Most zones, then most ring crossings, then fewest waiting."""
    return _best(placements, lambda p: (len(zones_used(problem, p, names)), crossings(problem, p, names), -len(p.pending)))


def locked_of(placements: Iterable[Placement], names: Sequence[str]) -> Placement | None:
    """An outcome that leaves pods waiting: one with some bound if there is one, with most waiting."""
    return _best((p for p in placements if p.pending), lambda p: (len(p.pending) < len(names), len(p.pending)))


def _best(placements: Iterable[Placement], worth: Callable[[Placement], tuple[int, ...]]) -> Placement | None:
    return max(placements, key=worth, default=None)
