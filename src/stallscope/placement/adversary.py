"""
Single runs in which an adversary picks among the feasible nodes: concrete witnesses where the search over all states was
cut, and ring orders worse than the first one found.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from stallscope.placement.moves import Cells, after, feasible_cells, first_cells
from stallscope.placement.problem import Problem
from stallscope.placement.search import Move


@dataclass(slots=True)
class Memory:
    """What a strategy may look at: zone of the last counted pod, pods placed per zone, room per zone at the start."""

    last: str | None = None
    placed: dict[str, int] = field(default_factory=dict)
    room: dict[str, int] = field(default_factory=dict)


#: ``strategy(problem, cells, feasible positions, class, memory) -> position``
Strategy = Callable[[Problem, Cells, Sequence[int], int, Memory], int]


def play(problem: Problem, strategy: Strategy) -> tuple[list[Move], int]:
    """One run: the moves, and how many pods still wait at its end."""
    cells = first_cells(problem)
    memory = Memory(room=_room(problem))
    moves: list[Move] = []
    waiting: dict[int, int] = {}

    def attempt(chosen: int, *, retry: bool) -> bool:
        nonlocal cells
        feasible = feasible_cells(problem, cells, chosen)
        if not feasible:
            return False
        position = strategy(problem, cells, feasible, chosen, memory)
        kind, content, _ = cells[position]
        moves.append(Move(chosen, (kind, content), retry=retry))
        cells = after(cells, position, chosen)
        zone = problem.kinds[kind].zone
        memory.placed[zone] = memory.placed.get(zone, 0) + 1
        memory.last = zone if problem.classes[chosen].counted else memory.last
        return True

    hopeless: set[int] = set()
    for chosen in problem.order:
        if chosen in hopeless or not attempt(chosen, retry=False):
            moves.append(Move(chosen, None))
            waiting[chosen] = waiting.get(chosen, 0) + 1
            if not problem.interplay[chosen].may_recover:
                hopeless.add(chosen)
    moved = True
    while moved:
        moved = False
        for chosen in [c for c, count in waiting.items() if count and problem.interplay[c].may_recover]:
            while waiting[chosen] and attempt(chosen, retry=True):
                waiting[chosen] -= 1
                moved = True
    return moves, sum(waiting.values())


def _room(problem: Problem) -> dict[str, int]:
    """Slots per zone, the roomiest class counted: a size to compare zones by."""
    best: dict[str, int] = {}
    for chosen in problem.classes:
        sums: dict[str, int] = {}
        for kind in problem.kinds:
            if kind.allowed[chosen.index]:
                one = 1 if kind.single is not None else problem.most(kind, problem.empty, chosen.index)
                sums[kind.zone] = sums.get(kind.zone, 0) + one * len(kind.nodes)
        for zone, count in sums.items():
            best[zone] = max(best.get(zone, 0), count)
    return best


def interleave(problem: Problem, cells: Cells, feasible: Sequence[int], _chosen: int, memory: Memory) -> int:
    """Never the zone of the rank before if it can be helped, and the emptiest of the others: the ring crosses most."""

    def worth(position: int) -> tuple[bool, int, int]:
        zone = problem.kinds[cells[position][0]].zone
        return (zone == memory.last, memory.placed.get(zone, 0), position)

    return min(feasible, key=worth)


def smallest_first(problem: Problem, cells: Cells, feasible: Sequence[int], chosen: int, memory: Memory) -> int:
    """The zone with the least room: what locks a self-affine job into a zone too small for it."""
    return min(
        feasible, key=lambda i: (memory.room.get(problem.kinds[cells[i][0]].zone, 0), _harm(problem, cells, i, chosen), i)
    )


def most_harmful(problem: Problem, cells: Cells, feasible: Sequence[int], chosen: int, _memory: Memory) -> int:
    """The node where the pod takes most room from pods of other classes."""
    return min(feasible, key=lambda i: (_harm(problem, cells, i, chosen), i))


def largest_first(problem: Problem, cells: Cells, feasible: Sequence[int], chosen: int, memory: Memory) -> int:
    """The zone with most room, on nodes where it does least harm: a run that is likely to start whole."""
    return min(
        feasible,
        key=lambda i: (-memory.room.get(problem.kinds[cells[i][0]].zone, 0), -_harm(problem, cells, i, chosen), i),
    )


def fill_up(problem: Problem, cells: Cells, feasible: Sequence[int], chosen: int, memory: Memory) -> int:
    """Stay in the zone of the rank before as long as it has room."""

    def worth(position: int) -> tuple[bool, int, int]:
        zone = problem.kinds[cells[position][0]].zone
        return (zone != memory.last, -memory.room.get(zone, 0), -_harm(problem, cells, position, chosen))

    return min(feasible, key=worth)


def _harm(problem: Problem, cells: Cells, position: int, chosen: int) -> int:
    """Minus the slots other classes lose on the node."""
    kind, content = problem.kinds[cells[position][0]], cells[position][1]
    if kind.single is not None:
        return 0
    grown = (*content[:chosen], content[chosen] + 1, *content[chosen + 1 :])
    others = [c for c, ok in enumerate(kind.allowed) if ok and c != chosen]
    return sum(problem.most(kind, grown, c) - problem.most(kind, content, c) for c in others)
