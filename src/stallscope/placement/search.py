"""
Every state kube-scheduler can reach with a job, by exhaustive search over states that differ in something that matters.

The process: pods are taken in creation order; a pod with a feasible node is bound to any of them, one without waits; a
waiting pod is tried again whenever something changed, before or after pods not yet seen. It ends when all were seen and
no waiting pod has a feasible node. Every feasible choice is followed: the scheduler's scores make some of them likely,
none impossible for certain (queue, backoff and ties are not in the manifests).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from stallscope.placement.moves import Cells, after, feasible_cells, first_cells
from stallscope.placement.problem import Content, Problem

#: ``(next position in creation order, waiting pods per class, cells)``
State = tuple[int, tuple[int, ...], Cells]


class Move(NamedTuple):
    """One attempt: `chosen` class, and the kind and content of the node it got (None: it waits)."""

    chosen: int
    node: tuple[int, Content] | None
    retry: bool = False


@dataclass(slots=True, kw_only=True)
class Search:
    """Result: every final state, how each was reached (`came`), and whether all of them were seen."""

    problem: Problem
    finals: list[State] = field(default_factory=list)
    came: dict[State, tuple[State, Move]] = field(default_factory=dict)
    states: int = 0
    complete: bool = True

    def path(self, state: State) -> list[Move]:
        """The moves that lead to `state`."""
        moves = []
        while state in self.came:
            state, move = self.came[state]
            moves.append(move)
        return moves[::-1]


def zones_of(problem: Problem, state: State) -> frozenset[str]:
    """Zones that hold a counted pod; the empty string stands for nodes without a zone label."""
    counted = [c.index for c in problem.classes if c.counted]
    return frozenset(problem.kinds[k].zone for k, content, _ in state[2] if any(content[c] for c in counted))


def waiting(state: State) -> int:
    return sum(state[1])


def explore(problem: Problem, budget: int) -> Search:
    """Search every reachable state, until `budget` cells were looked at (states x cells a state)."""
    search = Search(problem=problem)
    start: State = (0, problem.empty, first_cells(problem))
    seen = {start}
    stack = [start]
    work = 0
    while stack:
        state = stack.pop()
        search.states += 1
        work += len(state[2]) + 1
        if work > budget:
            search.complete = False
            break
        final = True
        for following, move in successors(problem, state):
            final = False
            if following not in seen:
                seen.add(following)
                search.came[following] = (state, move)
                stack.append(following)
        if final:
            search.finals.append(state)
    return search


def successors(problem: Problem, state: State) -> Iterator[tuple[State, Move]]:
    """Every next state: the next new pod, or any waiting pod that can run now."""
    position, pending, cells = state
    places: dict[int, list[int]] = {}
    if position < len(problem.order):
        chosen = problem.order[position]
        places[chosen] = feasible_cells(problem, cells, chosen)
        for cell in places[chosen]:
            yield (position + 1, pending, after(cells, cell, chosen)), Move(chosen, cells[cell][:2])
        if not places[chosen]:
            yield (position + 1, _changed(pending, chosen, 1), cells), Move(chosen, None)
    for chosen, count in enumerate(pending):
        if count and problem.interplay[chosen].may_recover:
            if chosen not in places:
                places[chosen] = feasible_cells(problem, cells, chosen)
            for cell in places[chosen]:
                yield (
                    (position, _changed(pending, chosen, -1), after(cells, cell, chosen)),
                    Move(chosen, cells[cell][:2], retry=True),
                )


def _changed(pending: tuple[int, ...], chosen: int, by: int) -> tuple[int, ...]:
    return (*pending[:chosen], pending[chosen] + by, *pending[chosen + 1 :])
