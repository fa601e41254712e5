"""
One step of the scheduler on a `Problem`: where may the next pod of a class go, given what the job already placed.

A state of the cluster is a tuple of cells ``(kind, content, count)``: so many nodes of that kind hold that content.
"""

from __future__ import annotations

from collections.abc import Sequence

from stallscope.placement.interplay import Counted, Interplay
from stallscope.placement.problem import Content, Kind, Problem

Cell = tuple[int, Content, int]
Cells = tuple[Cell, ...]


def first_cells(problem: Problem) -> Cells:
    """No pod of the job placed yet. Nodes that can take none and are counted by nobody are left out."""
    return tuple(
        (k.index, problem.empty, len(k.nodes)) for k in problem.kinds if any(k.allowed) or any(map(any, k.eligible))
    )


def grow(content: Content, chosen: int) -> Content:
    return (*content[:chosen], content[chosen] + 1, *content[chosen + 1 :])


def after(cells: Cells, position: int, chosen: int) -> Cells:
    """The cells when one node of cell `position` takes a pod of class `chosen`."""
    kind, content, count = cells[position]
    grown = grow(content, chosen)
    result = []
    merged = False
    for index, cell in enumerate(cells):
        if index == position:
            if count > 1:
                result.append((kind, content, count - 1))
        elif cell[0] == kind and cell[1] == grown:
            result.append((kind, grown, cell[2] + 1))
            merged = True
        else:
            result.append(cell)
    if not merged:
        result.append((kind, grown, 1))
        result.sort()
    return tuple(result)


def feasible_cells(problem: Problem, cells: Cells, chosen: int) -> list[int]:
    """Positions of the cells with a feasible node for one more pod of class `chosen`."""
    kinds = problem.kinds
    return narrow(
        problem, cells, chosen, [i for i, (k, content, _) in enumerate(cells) if problem.fits(kinds[k], content, chosen)]
    )


def narrow(problem: Problem, cells: Sequence[Cell], chosen: int, fitting: list[int]) -> list[int]:
    """Those of the cells with room that the terms between the job's pods admit."""
    interplay = problem.interplay[chosen]
    if not fitting or interplay.free:
        return fitting
    if interplay.blockers:
        fitting = _unblocked(problem, cells, interplay, fitting)
    if interplay.keys and fitting:
        fitting = _attracted(problem, cells, interplay, chosen, fitting)
    for counted in interplay.spread:
        if fitting:
            fitting = _level(problem, cells, counted, chosen, fitting)
    return fitting


def holds(content: Content, classes: tuple[int, ...]) -> int:
    return sum(content[c] for c in classes)


def _unblocked(problem: Problem, cells: Sequence[Cell], interplay: Interplay, fitting: list[int]) -> list[int]:
    """InterPodAffinity, anti-affinity both ways: no domain that holds a pod of a blocking class."""
    for blocker in interplay.blockers:
        taken = {
            problem.kinds[k].domains[blocker.key]
            for k, content, _ in cells
            if holds(content, blocker.classes) and blocker.key in problem.kinds[k].domains
        }
        if taken:
            fitting = [i for i in fitting if problem.kinds[cells[i][0]].domains.get(blocker.key) not in taken]
    return fitting


def _attracted(problem: Problem, cells: Sequence[Cell], interplay: Interplay, chosen: int, fitting: list[int]) -> list[int]:
    """InterPodAffinity, affinity: a matching pod in the node's domain of every key, or nobody matches anywhere."""
    pairs = set(interplay.attracted_base)
    dynamic = False
    for k, content, _ in cells:
        if holds(content, interplay.attract):
            kind = problem.kinds[k]
            pairs |= {(key, kind.domains[key]) for key in interplay.keys if key in kind.domains}
            dynamic = dynamic or any(key in kind.keyed for key in interplay.keys)
    if not pairs and not dynamic:
        return fitting if interplay.self_ok else []
    return [i for i in fitting if _near_enough(problem, cells[i], interplay, chosen, pairs)]


def _near_enough(problem: Problem, cell: Cell, interplay: Interplay, chosen: int, pairs: set[tuple[str, str]]) -> bool:
    kind = problem.kinds[cell[0]]
    local = kind.near[chosen] or holds(cell[1], interplay.attract) > 0
    for key in interplay.keys:
        if key in problem.per_node:
            if not local:
                return False
        elif (key, kind.domains[key]) not in pairs:
            return False
    return True


def _level(problem: Problem, cells: Sequence[Cell], counted: Counted, chosen: int, fitting: list[int]) -> list[int]:
    """PodTopologySpread: matching pods in the domain + itself - the emptiest domain <= maxSkew."""
    if counted.key in problem.per_node:
        return _level_nodes(problem, cells, counted, chosen, fitting)
    counts = dict(counted.base)
    for k, content, count in cells:
        kind = problem.kinds[k]
        if kind.eligible[chosen][counted.index]:
            more = holds(content, counted.classes)
            if more:
                counts[kind.domains[counted.key]] += count * more
    lowest = min(counts.values()) if counts and len(counts) >= counted.min_domains else 0
    ceiling = counted.max_skew + lowest - counted.self_match
    return [i for i in fitting if counts.get(problem.kinds[cells[i][0]].domains[counted.key], 0) <= ceiling]


def _level_nodes(problem: Problem, cells: Sequence[Cell], counted: Counted, chosen: int, fitting: list[int]) -> list[int]:
    """The same where every node is a domain."""

    def matching(kind: Kind, content: Content) -> int:
        if not kind.eligible[chosen][counted.index]:
            return 0
        return kind.own[chosen][counted.index] + holds(content, counted.classes)

    eligible = [(problem.kinds[k], content) for k, content, _ in cells if problem.kinds[k].eligible[chosen][counted.index]]
    enough = len(counted.base) >= counted.min_domains
    lowest = min((matching(k, c) for k, c in eligible), default=0) if enough else 0
    ceiling = counted.max_skew + lowest - counted.self_match
    return [i for i in fitting if matching(problem.kinds[cells[i][0]], cells[i][1]) <= ceiling]
