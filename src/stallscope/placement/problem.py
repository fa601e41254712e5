"""
A whole job against a cluster, reduced to what can matter: classes of pods that are alike, kinds of nodes that are alike,
and the terms that act between the job's own pods.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from stallscope.placement.amounts import PODS
from stallscope.placement.classes import PodClass, group_pods
from stallscope.placement.filters.resources import is_judged
from stallscope.placement.filters.spread import count_matching, is_eligible
from stallscope.placement.interplay import Blocker, Counted, Interplay, compile_interplay
from stallscope.placement.kinds import Content, Kind, build_kinds, passes
from stallscope.placement.podspec import PodSpec
from stallscope.placement.settings import Settings
from stallscope.placement.state import Cluster, NodeState

__all__ = ["Content", "Kind", "Problem", "build_problem"]


@dataclass(slots=True, kw_only=True)
class Problem:
    """
    Everything the searches need. `order` is the class of each pod in creation order. `per_node` are topology keys by
    which every node is a domain of its own. `node_blockers` (anti-affinity) and `capped` (spread with a minimum that
    cannot change) are per-node terms already turned into room on a node. `single` are the nodes one by one.
    """

    classes: tuple[PodClass, ...]
    order: tuple[int, ...]
    cluster: Cluster
    settings: Settings
    resources: tuple[str, ...]
    needs: tuple[tuple[int, ...], ...]
    empty: Content
    interplay: tuple[Interplay, ...] = ()
    per_node: frozenset[str] = frozenset()
    node_blockers: tuple[tuple[Blocker, ...], ...] = ()
    capped: Mapping[int, tuple[tuple[Counted, int], ...]] = field(default_factory=dict)
    kinds: tuple[Kind, ...] = ()
    single: tuple[Kind, ...] = ()

    @property
    def keys(self) -> frozenset[str]:
        """Topology keys that dynamic terms look at."""
        found = {k for i in self.interplay for k in i.keys}
        found |= {b.key for i in self.interplay for b in i.blockers}
        found |= {b.key for blockers in self.node_blockers for b in blockers}
        return frozenset(found | {s.key for i in self.interplay for s in i.spread})

    @property
    def unjudged(self) -> tuple[str, ...]:
        names = [n for c in self.classes for n in c.spec.unjudged]
        names += [n for i in self.interplay for n in i.volumes.unjudged]
        return tuple(dict.fromkeys(names))

    def fits(self, kind: Kind, content: Content, chosen: int) -> bool:
        """Whether one more pod of class `chosen` fits on a node of `kind` that already took `content` of the job."""
        if not kind.allowed[chosen]:
            return False
        if kind.single is not None:
            return content[chosen] == 0
        if not self._has_resources(kind, content, chosen):
            return False
        if any(content[o] for o in kind.clash[chosen]):
            return False
        return all(sum(content[o] for o in classes) <= limit for classes, limit in kind.caps[chosen])

    def _has_resources(self, kind: Kind, content: Content, chosen: int) -> bool:
        own = self.needs[chosen]
        for position, free in enumerate(kind.free):
            wanted = own[position]
            if wanted:
                for other, count in enumerate(content):
                    if count:
                        wanted += count * self.needs[other][position]
                if wanted > free:
                    return False
        return True

    def most(self, kind: Kind, content: Content, chosen: int, limit: int | None = None) -> int:
        """How many more pods of class `chosen` fit on a node with `content`, at most `limit` (default: the class's size)."""
        limit = self.classes[chosen].size if limit is None else limit
        if any(content[o] for o in kind.clash[chosen]):
            return 0
        if chosen in kind.clash[chosen]:
            limit = min(limit, 1)
        for classes, cap in kind.caps[chosen]:
            left = cap + 1 - sum(content[o] for o in classes)
            limit = min(limit, left if chosen in classes else (limit if left > 0 else 0))
        for position, free in enumerate(kind.free):
            own = self.needs[chosen][position]
            if own:
                used = sum(count * self.needs[other][position] for other, count in enumerate(content) if count)
                limit = min(limit, (free - used) // own)
        return max(limit, 0)

    def possible(self, kind: Kind, content: Content) -> bool:
        """Whether this filling fits, in whatever order."""
        placed = list(self.empty)
        for chosen, count in enumerate(content):
            for _ in range(count):
                if not self.fits(kind, tuple(placed), chosen):
                    return False
                placed[chosen] += 1
        return True


def build_problem(
    specs: Sequence[PodSpec],
    cluster: Cluster,
    settings: Settings,
    *,
    counted: Sequence[bool] | None = None,
    tags: Sequence[Hashable] | None = None,
    extra_keys: frozenset[str] = frozenset(),
) -> Problem:
    """
    Group pods and nodes. `counted[i]` false = pod i is no rank and does not count for zone sets; `tags` keep pods apart
    that the scheduler could not tell apart; `extra_keys` are topology keys to tell nodes apart by, besides the job's.
    """
    every = [True] * len(specs)
    classes, order = group_pods(specs, cluster, settings, tags or every, counted or every)
    names = sorted({r for c in classes for r in c.spec.requests} | {PODS})
    resources = tuple(r for r in names if is_judged(r, cluster.unstated))
    problem = Problem(
        classes=classes,
        order=order,
        cluster=cluster,
        settings=settings,
        resources=resources,
        needs=tuple(tuple(1 if r == PODS else c.spec.requests.get(r, 0) for r in resources) for c in classes),
        empty=(0,) * len(classes),
        interplay=compile_interplay(classes, cluster, settings),
    )
    problem.per_node = _per_node_keys(problem)
    _turn_into_room(problem)
    problem.kinds, problem.single = build_kinds(problem, extra_keys)
    return problem


def _per_node_keys(problem: Problem) -> frozenset[str]:
    """Topology keys whose values are all different (hostname); the zone key never, its values are wanted by name."""
    unique = set()
    for key in problem.keys - {problem.settings.zone_key}:
        values = [n.labels[key] for n in problem.cluster.nodes if key in n.labels]
        if len(values) == len(set(values)):
            unique.add(key)
    return frozenset(unique)


def _turn_into_room(problem: Problem) -> None:
    """Per-node anti-affinity, and per-node spread whose minimum is fixed, are limits of a node like any resource."""
    blockers, capped, rest = [], {}, []
    for chosen, found in enumerate(problem.interplay):
        local = tuple(b for b in found.blockers if b.key in problem.per_node)
        fixed = [(s, _fixed_minimum(problem, chosen, s)) for s in found.spread if s.key in problem.per_node]
        known = tuple((s, lowest) for s, lowest in fixed if lowest is not None)
        gone = {s.index for s, _ in known}
        blockers.append(local)
        if known:
            capped[chosen] = known
        rest.append(
            replace(
                found,
                blockers=tuple(b for b in found.blockers if b.key not in problem.per_node),
                spread=tuple(s for s in found.spread if s.index not in gone),
            )
        )
    problem.node_blockers, problem.capped, problem.interplay = tuple(blockers), capped, tuple(rest)


def _fixed_minimum(problem: Problem, chosen: int, counted: Counted) -> int | None:
    """The constraint's global minimum when no placement of the job can change it, else None."""
    if len(counted.base) < counted.min_domains or not counted.base:
        return 0
    lowest = min(counted.base.values())
    at_lowest = sum(v == lowest for v in counted.base.values())
    if sum(problem.classes[c].size for c in counted.classes) < at_lowest:
        return lowest
    return lowest if any(_stays(problem, chosen, counted, n, lowest) for n in problem.cluster.nodes) else None


def _stays(problem: Problem, chosen: int, counted: Counted, state: NodeState, lowest: int) -> bool:
    """Whether this node is at the minimum and can take no pod that the constraint counts, for good."""
    spec, constraint = problem.classes[chosen].spec, problem.classes[chosen].hard[counted.index]
    if not all(c.topology_key in state.labels for c in problem.classes[chosen].hard):
        return False
    if not is_eligible(constraint, spec, state.node, comparisons=problem.settings.comparisons):
        return False
    if count_matching(constraint, spec.namespace, state) != lowest:
        return False
    return all(
        any(need > _free(state, r) for need, r in zip(problem.needs[c], problem.resources, strict=True))
        or not passes(problem, c, state.node)
        for c in counted.classes
    )


def _free(state: NodeState, resource: str) -> int:
    return state.total.get(PODS, 0) - len(state.pods) if resource == PODS else state.free(resource)
