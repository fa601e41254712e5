"""From moves on classes and kinds to named pods on named nodes."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence

from stallscope.placement.outcome import Placement
from stallscope.placement.problem import Content, Problem
from stallscope.placement.search import Move


def replay(problem: Problem, moves: Sequence[Move], names: Sequence[str]) -> Placement:
    """Name the pods (of a class: in creation order, waiting ones first come first served) and the nodes of `moves`."""
    fresh = {c.index: deque(c.members) for c in problem.classes}
    waiting: dict[int, deque[int]] = defaultdict(deque)
    pools: dict[tuple[int, Content], deque[int]] = defaultdict(deque)
    for sort in problem.kinds:
        pools[sort.index, problem.empty].extend(sort.nodes)
    nodes: dict[str, str | None] = dict.fromkeys(names)
    for move in moves:
        queue = waiting[move.chosen] if move.retry else fresh[move.chosen]
        pod = queue.popleft()
        if move.node is None:
            waiting[move.chosen].append(pod)
            continue
        kind, content = move.node
        node = pools[move.node].popleft()
        grown = (*content[: move.chosen], content[move.chosen] + 1, *content[move.chosen + 1 :])
        pools[kind, grown].append(node)
        nodes[names[pod]] = problem.cluster.nodes[node].name
    return Placement(nodes=nodes)


def crossings(problem: Problem, placement: Placement, names: Sequence[str]) -> int:
    """Neighbouring ranks (counted pods, in creation order, around the ring) that sit in different zones."""
    zones = []
    counted = {i for c in problem.classes if c.counted for i in c.members}
    for position, name in enumerate(names):
        node = placement.nodes.get(name)
        if position in counted and node is not None:
            zones.append(problem.cluster.by_name[node].labels.get(problem.settings.zone_key, ""))
    return sum(a != b for a, b in zip(zones, [*zones[1:], *zones[:1]], strict=True))


def zones_used(problem: Problem, placement: Placement, names: Sequence[str]) -> frozenset[str]:
    """Zones of the counted pods that are bound."""
    counted = {names[i] for c in problem.classes if c.counted for i in c.members}
    homes = {n for name, n in placement.nodes.items() if n is not None and name in counted}
    return frozenset(problem.cluster.by_name[n].labels.get(problem.settings.zone_key, "") for n in homes)
