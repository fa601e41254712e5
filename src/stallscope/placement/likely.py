"""
One run of the scheduler with its scores, for a given order of nodes that breaks ties.

A model: feasibility is exact, scores are those of `scoring`, all nodes are scored (kube-scheduler samples clusters of 100
nodes and more), waiting pods are tried again when all were seen. Label what comes of it as likely, not as certain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

from stallscope.model.topology import HOSTNAME
from stallscope.placement.amounts import CPU, MEMORY
from stallscope.placement.moves import Cell, grow, holds, narrow
from stallscope.placement.outcome import Placement
from stallscope.placement.problem import Content
from stallscope.placement.scoring import (
    NODE_AFFINITY_WEIGHT,
    POD_AFFINITY_WEIGHT,
    SPREAD_WEIGHT,
    TAINT_WEIGHT,
    normal,
    normal_affinity,
    normal_spread,
    resource_score,
    spread_share,
)
from stallscope.placement.stage import Soft, Stage

Key = tuple[int, Content]


@dataclass(slots=True)
class _Run:
    stage: Stage
    ranks: Sequence[int]
    content: list[Content] = field(default_factory=list)
    extra: dict[int, list[int]] = field(default_factory=dict)
    counts: dict[Key, int] = field(default_factory=dict)
    heaps: dict[tuple[Key, int], list[tuple[int, int, int]]] = field(default_factory=dict)
    room: dict[tuple[Key, int], int] = field(default_factory=dict)
    fitting: list[set[int]] = field(default_factory=list)

    def start(self) -> None:
        """Every node empty of the job, scores taken from the stage."""
        stage, empty = self.stage, self.stage.problem.empty
        self.content = [empty] * len(stage.place_of)
        for place in stage.place_of:
            self.counts[place, empty] = self.counts.get((place, empty), 0) + 1
        for chosen, scores in enumerate(stage.scores):
            fits = [node for node, score in enumerate(scores) if score is not None]
            self.fitting.append(set(fits))
            for node in fits:
                where = ((stage.place_of[node], empty), chosen)
                self.heaps.setdefault(where, []).append((-(scores[node] or 0), self.ranks[node], node))
        for where, heap in self.heaps.items():
            self.room[where] = len(heap)
            heapify(heap)

    def _enter(self, node: int) -> None:
        """Put a node into the cell its content makes it belong to, with its score for every class that fits."""
        problem = self.stage.problem
        key = (self.stage.place_of[node], self.content[node])
        self.counts[key] = self.counts.get(key, 0) + 1
        extra = self.extra[node]
        for chosen in problem.classes:
            if problem.fits(problem.single[node], self.content[node], chosen.index):
                score = resource_score(chosen.spec, problem.cluster.nodes[node], extra)
                heappush(self.heaps.setdefault((key, chosen.index), []), (-score, self.ranks[node], node))
                self.room[key, chosen.index] = self.room.get((key, chosen.index), 0) + 1
                self.fitting[chosen.index].add(node)

    def _leave(self, node: int) -> None:
        key = (self.stage.place_of[node], self.content[node])
        self.counts[key] -= 1
        if not self.counts[key]:
            del self.counts[key]
        for chosen, nodes in enumerate(self.fitting):
            if node in nodes:
                nodes.discard(node)
                self.room[key, chosen] -= 1

    def _top(self, key: Key, chosen: int) -> tuple[int, int, int] | None:
        heap = self.heaps.get((key, chosen))
        while heap:
            node = heap[0][2]
            if self.content[node] == key[1] and node in self.fitting[chosen]:
                return heap[0]
            heappop(heap)
        return None

    def bind(self, chosen: int) -> int | None:
        """Bind one pod of class `chosen` to the best node; None when no node is feasible."""
        cells: list[Cell] = [(place, content, count) for (place, content), count in self.counts.items()]
        tops = [self._top((place, content), chosen) for place, content, _ in cells]
        fitting = narrow(self.stage.problem, cells, chosen, [i for i, t in enumerate(tops) if t is not None])
        if not fitting:
            return None
        extra = self._domain_scores(chosen, cells, fitting)
        best = min((t[0] - more, t[1], t[2]) for i, more in zip(fitting, extra, strict=True) if (t := tops[i]) is not None)
        self._take(best[2], chosen)
        return best[2]

    def _take(self, node: int, chosen: int) -> None:
        self._leave(node)
        spec = self.stage.problem.classes[chosen].spec
        used = self.extra.setdefault(node, [0, 0, 0, 0])
        for i, more in enumerate((spec.requests.get(CPU, 0), spec.requests.get(MEMORY, 0), *spec.scoring)):
            used[i] += more
        self.content[node] = grow(self.content[node], chosen)
        self._enter(node)

    def _domain_scores(self, chosen: int, cells: Sequence[Cell], fitting: Sequence[int]) -> list[int]:
        """What the other plugins add to each feasible cell, already weighted."""
        stage = self.stage
        total = [0] * len(fitting)
        likes = [stage.liking[cells[i][0]][chosen] for i in fitting]
        if stage.problem.classes[chosen].spec.preferred_nodes:
            total = _plus(total, normal([a for a, _ in likes]), NODE_AFFINITY_WEIGHT)
        if any(b for _, b in likes):
            total = _plus(total, normal([b for _, b in likes], reverse=True), TAINT_WEIGHT)
        if stage.soft[chosen]:
            total = _plus(total, normal_spread(self._spread(chosen, cells, fitting)), SPREAD_WEIGHT)
        if stage.pull_base[chosen] or any(stage.pull[chosen]):
            total = _plus(total, normal_affinity(self._pulled(chosen, cells, fitting)), POD_AFFINITY_WEIGHT)
        return total

    def _spread(self, chosen: int, cells: Sequence[Cell], fitting: Sequence[int]) -> list[float]:
        raw = [0.0] * len(fitting)
        for soft in self.stage.soft[chosen]:
            key = soft.constraint.topology_key
            if key == HOSTNAME or key in self.stage.problem.per_node:
                domains = sum(self.room.get((cells[i][:2], chosen), 0) for i in fitting)
                counts = [holds(cells[i][1], soft.classes) for i in fitting]
            else:
                held = self._held(key, soft, cells)
                seen = [self.stage.values[cells[i][0]].get(key) for i in fitting]
                domains = len(set(seen))
                counts = [held.get(v, 0) if v is not None else 0 for v in seen]
            raw = [r + spread_share(c, soft.constraint, domains) for r, c in zip(raw, counts, strict=True)]
        return raw

    def _held(self, key: str, soft: Soft, cells: Sequence[Cell]) -> dict[str, int]:
        held = dict(soft.base)
        for place, content, count in cells:
            value = self.stage.values[place].get(key)
            more = holds(content, soft.classes)
            if more and value is not None:
                held[value] = held.get(value, 0) + count * more
        return held

    def _pulled(self, chosen: int, cells: Sequence[Cell], fitting: Sequence[int]) -> list[float]:
        pairs = dict(self.stage.pull_base[chosen])
        row = self.stage.pull[chosen]
        for place, content, count in cells:
            for other, placed in enumerate(content):
                for key, weight in row[other] if placed else ():
                    value = self.stage.values[place].get(key)
                    if value is not None:
                        pairs[key, value] = pairs.get((key, value), 0) + weight * placed * count
        keys = {k for k, _ in pairs}
        local = [(o, w) for o, weights in enumerate(row) for k, w in weights if k in self.stage.problem.per_node]
        raw = []
        for i in fitting:
            values = self.stage.values[cells[i][0]]
            score = sum(pairs.get((k, values[k]), 0) for k in keys if k in values)
            raw.append(float(score + sum(w * cells[i][1][o] for o, w in local)))
        return raw


def _plus(total: list[int], more: Sequence[int], weight: int) -> list[int]:
    return [t + weight * m for t, m in zip(total, more, strict=True)]


def run_once(stage: Stage, ranks: Sequence[int], names: Sequence[str]) -> Placement:
    """Pods in creation order, then waiting ones until none can be bound."""
    problem = stage.problem
    run = _Run(stage, ranks)
    run.start()
    homes: dict[int, int] = {}
    waiting = []
    for position, chosen in enumerate(problem.order):
        node = run.bind(chosen)
        if node is None:
            waiting.append(position)
        else:
            homes[position] = node
    moved = True
    while moved and waiting:
        moved = False
        hopeless: set[int] = set()
        for position in list(waiting):
            chosen = problem.order[position]
            if chosen in hopeless or not problem.interplay[chosen].may_recover:
                continue
            node = run.bind(chosen)
            if node is None:
                hopeless.add(chosen)
            else:
                homes[position] = node
                waiting.remove(position)
                moved = True
    nodes = problem.cluster.nodes
    return Placement(nodes={n: nodes[homes[i]].name if i in homes else None for i, n in enumerate(names)})
