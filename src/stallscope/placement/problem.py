"""
A whole job against a cluster, reduced to what can matter: classes of pods that are alike, kinds of nodes that are alike,
and the inter-pod terms that act between the job's own pods.

Two nodes are of one *kind* when no pod of the job can tell them apart: the same classes pass the node-level filters, the
same sets of the job's pods fit, and they lie in the same topology domains. Everything that depends on pods already
bound is folded into the kinds (bound pods never leave during the judgement).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from stallscope.placement.amounts import PODS
from stallscope.placement.filters.interpod import InterPodState, interpod_state, matches_all
from stallscope.placement.filters.node import refuse_node
from stallscope.placement.filters.ports import ports_conflict
from stallscope.placement.filters.resources import is_judged
from stallscope.placement.filters.spread import SpreadState, count_matching, is_eligible, spread_state
from stallscope.placement.filters.volumes import VolumeState, refuse_volumes, volume_state
from stallscope.placement.podspec import PodSpec
from stallscope.placement.settings import Settings, spread_of
from stallscope.placement.state import Cluster, NodeState
from stallscope.placement.terms import SpreadConstraint

Content = tuple[int, ...]
#: Largest table of fillings that is compared to find nodes of one kind; above it raw free amounts are compared.
TABLE_LIMIT = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class PodClass:
    """Pods that are alike. `members` are positions in creation order; `counted` ones decide the zone set (ranks)."""

    index: int
    spec: PodSpec
    members: tuple[int, ...]
    counted: bool = True
    spread: tuple[SpreadConstraint, ...] = ()


@dataclass(frozen=True, slots=True)
class Blocker:
    """A topology key and the classes whose pods keep a class out of their domain (anti-affinity, either way)."""

    key: str
    classes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Counted:
    """A hard spread constraint of a class: the classes it counts, bound pods per domain, and its numbers."""

    key: str
    classes: tuple[int, ...]
    base: Mapping[str, int]
    max_skew: int
    min_domains: int
    self_match: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Interplay:
    """The dynamic terms of one class. `attract` are classes that satisfy all its affinity terms."""

    keys: tuple[str, ...] = ()
    attract: tuple[int, ...] = ()
    attracted_base: frozenset[tuple[str, str]] = frozenset()
    self_ok: bool = False
    blockers: tuple[Blocker, ...] = ()
    spread: tuple[Counted, ...] = ()

    @property
    def free(self) -> bool:
        """No other pod of the job changes where this class may go, resources and ports apart."""
        return not self.keys and not self.blockers and not self.spread

    @property
    def may_recover(self) -> bool:
        """A pod of this class that found no node may find one later, when others were bound."""
        return bool(self.keys or self.spread)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """
    Nodes that are alike. `allowed[c]`: class c passes the node-level filters. `domains`: values of the shared topology
    keys. `eligible[c][j]`: counted by spread constraint j of class c. `own`: bound pods counted on each node by per-node
    constraints. `free` in `Problem.resources` order.
    """

    index: int
    zone: str
    allowed: tuple[bool, ...]
    domains: Mapping[str, str]
    keyed: frozenset[str]
    eligible: tuple[tuple[bool, ...], ...]
    own: tuple[tuple[int, ...], ...]
    near: tuple[bool, ...]
    free: tuple[int, ...]
    nodes: tuple[int, ...] = ()


@dataclass(slots=True, kw_only=True)
class Problem:
    """Everything the searches need. `order` is the class of each pod in creation order."""

    classes: tuple[PodClass, ...]
    order: tuple[int, ...]
    interplay: tuple[Interplay, ...]
    kinds: tuple[Kind, ...]
    resources: tuple[str, ...]
    needs: tuple[tuple[int, ...], ...]
    clash: tuple[tuple[bool, ...], ...]
    per_node: frozenset[str]
    cluster: Cluster
    settings: Settings
    unjudged: tuple[str, ...] = ()
    empty: Content = field(default=())

    def fits(self, kind: Kind, content: Content, chosen: int) -> bool:
        """Whether one more pod of class `chosen` fits on a node of `kind` that already took `content` of the job."""
        if not kind.allowed[chosen]:
            return False
        needs = self.needs
        for position, free in enumerate(kind.free):
            wanted = needs[chosen][position]
            if wanted:
                for other, count in enumerate(content):
                    if count:
                        wanted += count * needs[other][position]
                if wanted > free:
                    return False
        return not any(count and self.clash[chosen][other] for other, count in enumerate(content))


def build_problem(
    specs: Sequence[PodSpec], cluster: Cluster, settings: Settings, counted: Sequence[bool] | None = None
) -> Problem:
    """Group pods and nodes. `counted[i]` false = pod i is no rank and does not count for zone sets."""
    classes, order = _classes(specs, cluster, settings, counted or [True] * len(specs))
    resources = _resources(classes, cluster)
    needs = tuple(tuple(1 if r == PODS else c.spec.requests.get(r, 0) for r in resources) for c in classes)
    clash = tuple(tuple(ports_conflict(a.spec.ports, b.spec.ports) for b in classes) for a in classes)
    prepared = [_Prepared.of(c, cluster, settings) for c in classes]
    per_node = _per_node_keys(classes, cluster, settings.zone_key)
    problem = Problem(
        classes=classes,
        order=order,
        interplay=tuple(_interplay(c, classes, p, cluster) for c, p in zip(classes, prepared, strict=True)),
        kinds=(),
        resources=resources,
        needs=needs,
        clash=clash,
        per_node=per_node,
        cluster=cluster,
        settings=settings,
        unjudged=tuple(
            dict.fromkeys(n for c, p in zip(classes, prepared, strict=True) for n in (*c.spec.unjudged, *p.unjudged))
        ),
        empty=(0,) * len(classes),
    )
    problem.kinds = _kinds(problem, prepared)
    return problem


def _classes(
    specs: Sequence[PodSpec], cluster: Cluster, settings: Settings, counted: Sequence[bool]
) -> tuple[tuple[PodClass, ...], tuple[int, ...]]:
    keys = _label_keys(specs, cluster, settings)
    found: dict[Any, int] = {}
    members: list[list[int]] = []
    first: list[PodSpec] = []
    order = []
    for position, spec in enumerate(specs):
        index = found.setdefault((_class_key(spec, keys), counted[position]), len(found))
        if index == len(members):
            members.append([])
            first.append(spec)
        members[index].append(position)
        order.append(index)
    classes = tuple(
        PodClass(index=i, spec=s, members=tuple(members[i]), counted=counted[members[i][0]], spread=spread_of(s, settings))
        for i, s in enumerate(first)
    )
    return classes, tuple(order)


def _label_keys(specs: Sequence[PodSpec], cluster: Cluster, settings: Settings) -> frozenset[str]:
    """Label keys any selector in play looks at: only these can tell two pods apart."""
    keys: set[str] = set()
    for spec in specs:
        for term in (*spec.affinity, *spec.anti_affinity, *(w.term for w in spec.preferred)):
            keys |= {r.key for r in term.selector.requirements} if term.selector else set()
        for constraint in spec.spread:
            keys |= {r.key for r in constraint.selector.requirements} if constraint.selector else set()
    for _, bound in cluster.affine:
        for term in bound.anti_affinity:
            keys |= {r.key for r in term.selector.requirements} if term.selector else set()
    for owner in settings.owners:
        keys |= set(owner.selector)
    return frozenset(keys)


def _class_key(spec: PodSpec, keys: frozenset[str]) -> Any:
    labels = tuple(sorted((k, v) for k, v in spec.labels.items() if k in keys))
    return (
        spec.namespace,
        labels,
        tuple(sorted(spec.requests.items())),
        spec.scoring,
        spec.tolerations,
        spec.node_name,
        spec.nodes,
        spec.preferred_nodes,
        spec.ports,
        spec.spread,
        spec.own_spread,
        spec.affinity,
        spec.anti_affinity,
        spec.preferred,
        spec.gates,
        spec.claims,
    )


def _resources(classes: Sequence[PodClass], cluster: Cluster) -> tuple[str, ...]:
    names = sorted({r for c in classes for r in c.spec.requests} | {PODS})
    return tuple(r for r in names if is_judged(r, cluster.unstated))


@dataclass(frozen=True, slots=True)
class _Prepared:
    """The filters' own PreFilter results for one class, against bound pods only."""

    spread: SpreadState
    interpod: InterPodState
    volumes: VolumeState
    pinned: frozenset[str] | None

    @staticmethod
    def of(chosen: PodClass, cluster: Cluster, settings: Settings) -> _Prepared:
        return _Prepared(
            spread_state(chosen.spec, chosen.spread, cluster.nodes, comparisons=settings.comparisons),
            interpod_state(chosen.spec, cluster),
            volume_state(chosen.spec, settings),
            chosen.spec.nodes.pinned_names(),
        )

    @property
    def unjudged(self) -> tuple[str, ...]:
        return tuple(self.volumes.unjudged)


def _per_node_keys(classes: Sequence[PodClass], cluster: Cluster, zone_key: str) -> frozenset[str]:
    """Topology keys whose values are all different (hostname): each node is a domain of its own."""
    keys = {t.topology_key for c in classes for t in (*c.spec.affinity, *c.spec.anti_affinity)}
    keys |= {s.topology_key for c in classes for s in c.spread if s.hard}
    unique = set()
    for key in keys - {zone_key}:
        values = [n.labels[key] for n in cluster.nodes if key in n.labels]
        if len(values) == len(set(values)):
            unique.add(key)
    return frozenset(unique)


def _interplay(chosen: PodClass, classes: Sequence[PodClass], prepared: _Prepared, cluster: Cluster) -> Interplay:
    spec = chosen.spec
    return Interplay(
        keys=tuple(dict.fromkeys(t.topology_key for t in spec.affinity)),
        attract=tuple(o.index for o in classes if matches_all(spec.affinity, o.spec, cluster)),
        attracted_base=frozenset(prepared.interpod.affinity),
        self_ok=matches_all(spec.affinity, spec, cluster),
        blockers=_blockers(chosen, classes, cluster),
        spread=tuple(
            Counted(
                key=c.topology_key,
                classes=tuple(o.index for o in classes if o.spec.namespace == spec.namespace and c.counts(o.spec.labels)),
                base=prepared.spread.counts[j],
                max_skew=c.max_skew,
                min_domains=c.min_domains,
                self_match=prepared.spread.self_match[j],
            )
            for j, c in enumerate(prepared.spread.constraints)
        ),
    )


def _blockers(chosen: PodClass, classes: Sequence[PodClass], cluster: Cluster) -> tuple[Blocker, ...]:
    found: dict[str, set[int]] = {}
    for other in classes:
        for mine, theirs in ((chosen.spec, other.spec), (other.spec, chosen.spec)):
            labels = cluster.labels_of_namespace(theirs.namespace)
            for term in mine.anti_affinity:
                if term.matches(theirs.namespace, theirs.labels, labels):
                    found.setdefault(term.topology_key, set()).add(other.index)
    return tuple(Blocker(key, tuple(sorted(indexes))) for key, indexes in sorted(found.items()))


def _kinds(problem: Problem, prepared: Sequence[_Prepared]) -> tuple[Kind, ...]:
    shared = _shared_keys(problem)
    found: dict[Any, Kind] = {}
    nodes: dict[Any, list[int]] = {}
    for state in problem.cluster.nodes:
        kind = _kind_of(problem, prepared, state, shared)
        key = _kind_key(problem, kind)
        if key not in found:
            found[key] = kind
            nodes[key] = []
        nodes[key].append(state.index)
    return tuple(_numbered(kind, i, tuple(nodes[key])) for i, (key, kind) in enumerate(found.items()))


def _numbered(kind: Kind, index: int, nodes: tuple[int, ...]) -> Kind:
    return Kind(
        index=index,
        zone=kind.zone,
        allowed=kind.allowed,
        domains=kind.domains,
        keyed=kind.keyed,
        eligible=kind.eligible,
        own=kind.own,
        near=kind.near,
        free=kind.free,
        nodes=nodes,
    )


def _shared_keys(problem: Problem) -> frozenset[str]:
    keys = {k for i in problem.interplay for k in i.keys}
    keys |= {b.key for i in problem.interplay for b in i.blockers}
    keys |= {s.key for i in problem.interplay for s in i.spread}
    return frozenset(keys)


def _kind_of(problem: Problem, prepared: Sequence[_Prepared], state: NodeState, keys: frozenset[str]) -> Kind:
    labels = state.labels
    allowed = tuple(_allowed(c, p, problem, state) for c, p in zip(problem.classes, prepared, strict=True))
    counted = any(i.spread for i in problem.interplay)
    return Kind(
        index=-1,
        zone=labels.get(problem.settings.zone_key, ""),
        allowed=allowed,
        domains={k: labels[k] for k in sorted(keys - problem.per_node) if k in labels},
        keyed=frozenset(k for k in keys if k in labels),
        eligible=tuple(_eligible(c, problem, state) for c in problem.classes) if counted else ((),) * len(problem.classes),
        own=tuple(_own(c, problem, state) for c in problem.classes) if counted else ((),) * len(problem.classes),
        near=tuple(_near(i, problem, state) for i in problem.interplay),
        free=tuple(state.total.get(PODS, 0) - len(state.pods) if r == PODS else state.free(r) for r in problem.resources),
    )


def _allowed(chosen: PodClass, prepared: _Prepared, problem: Problem, state: NodeState) -> bool:
    spec, node = chosen.spec, state.node
    if spec.gates or (prepared.pinned is not None and node.name not in prepared.pinned):
        return False
    if refuse_node(spec, node, comparisons=problem.settings.comparisons) is not None:
        return False
    if spec.ports and ports_conflict(spec.ports, (p for b in state.pods for p in b.ports)):
        return False
    if refuse_volumes(prepared.volumes, node) is not None:
        return False
    needed = {s.topology_key for s in chosen.spread if s.hard} | {t.topology_key for t in spec.affinity}
    if any(k not in node.labels for k in needed):
        return False
    taken = prepared.interpod.existing
    if any(node.labels.get(k) == v for k, v in taken):
        return False
    return not any(node.labels.get(k) == v for k, v in prepared.interpod.anti_affinity)


def _eligible(chosen: PodClass, problem: Problem, state: NodeState) -> tuple[bool, ...]:
    hard = [c for c in chosen.spread if c.hard]
    if not all(c.topology_key in state.labels for c in hard):
        return (False,) * len(hard)
    return tuple(is_eligible(c, chosen.spec, state.node, comparisons=problem.settings.comparisons) for c in hard)


def _own(chosen: PodClass, problem: Problem, state: NodeState) -> tuple[int, ...]:
    """Bound pods on this very node that per-node spread constraints count (zone-like ones are in `Counted.base`)."""
    hard = [c for c in chosen.spread if c.hard]
    return tuple(count_matching(c, chosen.spec.namespace, state) if c.topology_key in problem.per_node else 0 for c in hard)


def _near(interplay: Interplay, problem: Problem, state: NodeState) -> bool:
    """Whether bound pods satisfy the class's per-node affinity keys on this very node."""
    return all((k, state.labels.get(k)) in interplay.attracted_base for k in interplay.keys if k in problem.per_node)


def _kind_key(problem: Problem, kind: Kind) -> Any:
    return (
        kind.zone,
        kind.allowed,
        tuple(kind.domains.items()),
        kind.keyed,
        kind.eligible,
        kind.own,
        kind.near,
        _capacity_key(problem, kind),
    )


def _capacity_key(problem: Problem, kind: Kind) -> Any:
    """Equal for two nodes exactly when the same sets of the job's pods fit on both (raw amounts when that is long)."""
    classes = [c for c in range(len(problem.classes)) if kind.allowed[c]]
    alone = {c: _most(problem, kind, problem.empty, c) for c in classes}
    classes = sorted((c for c in classes if alone[c]), key=lambda c: (alone[c], c))
    if not classes:
        return ()
    size = 1
    for c in classes[:-1]:
        size *= alone[c] + 1
    if size > TABLE_LIMIT:
        return ("free", kind.free)
    last = classes[-1]
    table = []
    for counts in product(*(range(alone[c] + 1) for c in classes[:-1])):
        content = list(problem.empty)
        for c, count in zip(classes, counts, strict=False):
            content[c] = count
        table.append(_most(problem, kind, tuple(content), last) if _possible(problem, kind, tuple(content)) else -1)
    return (tuple(classes), tuple(alone[c] for c in classes), tuple(table))


def _possible(problem: Problem, kind: Kind, content: Content) -> bool:
    """Whether this filling itself fits."""
    placed = list(problem.empty)
    for c, count in enumerate(content):
        for _ in range(count):
            if not problem.fits(kind, tuple(placed), c):
                return False
            placed[c] += 1
    return True


def _most(problem: Problem, kind: Kind, content: Content, chosen: int) -> int:
    """How many more pods of class `chosen` fit on a node with `content`, at most as many as the class has."""
    limit = len(problem.classes[chosen].members)
    if any(count and problem.clash[chosen][other] for other, count in enumerate(content)):
        return 0
    if problem.clash[chosen][chosen]:
        limit = min(limit, 1)
    for position, free in enumerate(kind.free):
        own = problem.needs[chosen][position]
        if own:
            left = free - sum(count * problem.needs[other][position] for other, count in enumerate(content) if count)
            limit = min(limit, left // own)
    return max(limit, 0)
