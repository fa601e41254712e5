"""
Nodes that are alike: no pod of the job can tell them apart.

Two nodes are of one *kind* when the same classes pass the node-level filters, the same fillings with the job's pods fit,
and they lie in the same topology domains. Where the classes do not compete for a node and no per-node term is in play,
a node with room for m pods is the same as m nodes with room for one, and is split so.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING

from stallscope.model.topology import Node
from stallscope.placement.amounts import PODS
from stallscope.placement.filters.node import refuse_node
from stallscope.placement.filters.ports import ports_conflict
from stallscope.placement.filters.spread import count_matching, is_eligible
from stallscope.placement.filters.volumes import refuse_volumes
from stallscope.placement.state import NodeState

if TYPE_CHECKING:
    from stallscope.placement.problem import Problem

Content = tuple[int, ...]
#: ``(classes counted, how many of them may already be there)``
Cap = tuple[tuple[int, ...], int]
#: Largest table of fillings that is compared to find nodes of one kind; above it raw free amounts are compared.
TABLE_LIMIT = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """
    `allowed[c]`: class c passes the node-level filters. `domains`: values of the shared topology keys. `keyed`: which
    keys the node carries. `eligible[c][i]`: counted by hard spread constraint i of class c. `own[c][i]`: bound pods on
    the node itself that a per-node constraint counts. `near[c]`: bound pods satisfy the per-node affinity of class c.
    `clash[c]`: classes that cannot share the node with class c. `caps[c]`: see `Cap`. `free` in `Problem.resources`
    order. `single`: a split node's only slot is for this class. `nodes` are indexes into the cluster (repeated when
    split).
    """

    index: int = -1
    zone: str
    allowed: tuple[bool, ...]
    domains: Mapping[str, str]
    keyed: frozenset[str]
    eligible: tuple[tuple[bool, ...], ...]
    own: tuple[tuple[int, ...], ...]
    near: tuple[bool, ...]
    clash: tuple[tuple[int, ...], ...]
    caps: tuple[tuple[Cap, ...], ...]
    free: tuple[int, ...]
    single: int | None = None
    nodes: tuple[int, ...] = ()


def build_kinds(problem: Problem, extra_keys: frozenset[str] = frozenset()) -> tuple[tuple[Kind, ...], tuple[Kind, ...]]:
    """
    The kinds of the cluster's nodes for this job, and each node on its own (`index` and `nodes` unset). `extra_keys` are
    topology keys to tell apart besides the job's.
    """
    found: dict[Hashable, Kind] = {}
    nodes: dict[Hashable, list[int]] = {}
    maker = _Maker(problem, extra_keys)
    single = []
    for state in problem.cluster.nodes:
        raw = maker.kind_of(state)
        single.append(raw)
        for key, only, times in maker.keyed(raw):
            if key not in found:
                found[key] = raw if only is None else replace(raw, single=only, allowed=_only(only, len(raw.allowed)))
                nodes[key] = []
            nodes[key].extend([state.index] * times)
    kinds = tuple(replace(kind, index=i, nodes=tuple(nodes[key])) for i, (key, kind) in enumerate(found.items()))
    return kinds, tuple(single)


class _Maker:
    """Kind of a node, with what repeats from node to node remembered."""

    def __init__(self, problem: Problem, extra_keys: frozenset[str]) -> None:
        self.problem = problem
        self.keys = problem.keys | extra_keys
        self.shared = self.keys - (problem.per_node - extra_keys)
        self.splits = not any(_per_node(problem, i) for i in range(len(problem.classes)))
        self.passed: dict[Hashable, tuple[bool, ...]] = {}
        self.capacity: dict[Hashable, Hashable] = {}
        self.clashes: dict[frozenset[str], tuple[tuple[int, ...], ...]] = {}
        self.named = _named_nodes(problem)
        self.looked_at = _looked_at(problem)

    def kind_of(self, state: NodeState) -> Kind:
        problem, labels = self.problem, state.labels
        keyed = frozenset(k for k in self.keys if k in labels)
        many = any(c.hard for c in problem.classes)
        blank: tuple[tuple[()], ...] = ((),) * len(problem.classes)
        return Kind(
            zone=labels.get(problem.settings.zone_key, ""),
            allowed=self._allowed(state),
            domains={k: labels[k] for k in sorted(keyed & self.shared)},
            keyed=keyed,
            eligible=tuple(_eligible(problem, c, state) for c in range(len(problem.classes))) if many else blank,
            own=tuple(_own(problem, c, state) for c in range(len(problem.classes))) if many else blank,
            near=tuple(_near(problem, c, state) for c in range(len(problem.classes))),
            clash=self._clash(keyed),
            caps=tuple(_caps(problem, c, state) for c in range(len(problem.classes))) if problem.capped else blank,
            free=tuple(
                state.total.get(PODS, 0) - len(state.pods) if r == PODS else state.free(r) for r in problem.resources
            ),
        )

    def _allowed(self, state: NodeState) -> tuple[bool, ...]:
        """Node-level filters once per distinct (labels looked at, taints, name where named); ports and pods apart."""
        node = state.node
        labels = tuple((k, v) for k in self.looked_at if (v := node.labels.get(k)) is not None)
        name = node.name if node.name in self.named else ""
        key = (labels, node.taints, node.unschedulable, name)
        if key not in self.passed:
            self.passed[key] = tuple(passes(self.problem, c, node) for c in range(len(self.problem.classes)))
        passed = self.passed[key]
        if not any(passed):
            return passed
        return tuple(p and _ports_free(self.problem, c, state) for c, p in enumerate(passed))

    def _clash(self, keyed: frozenset[str]) -> tuple[tuple[int, ...], ...]:
        if keyed not in self.clashes:
            self.clashes[keyed] = tuple(
                tuple(o for o in range(len(self.problem.classes)) if _cannot_share(self.problem, c, o, keyed))
                for c in range(len(self.problem.classes))
            )
        return self.clashes[keyed]

    def keyed(self, kind: Kind) -> list[tuple[Hashable, int | None, int]]:
        """``(key equal for nodes that are alike, class of a split node's slot or None, how many)``."""
        place = (kind.zone, tuple(kind.domains.items()), kind.keyed, kind.eligible, kind.own, kind.near)
        memo = (kind.allowed, kind.free, kind.clash, kind.caps)
        if memo not in self.capacity:
            self.capacity[memo] = _slots(self.problem, kind) if self.splits else None
            if self.capacity[memo] is None:
                self.capacity[memo] = _capacity_key(self.problem, kind)
        room = self.capacity[memo]
        if isinstance(room, _Slots):
            return [((place, c, True), c, count) for c, count in enumerate(room.counts) if count] or [
                ((place, kind.allowed), None, 1)
            ]
        return [((place, kind.allowed, kind.clash, kind.caps, room), None, 1)]


@dataclass(frozen=True, slots=True)
class _Slots:
    """Room per class on a node where the classes do not compete."""

    counts: tuple[int, ...]


def _only(chosen: int, size: int) -> tuple[bool, ...]:
    return tuple(c == chosen for c in range(size))


def _slots(problem: Problem, kind: Kind) -> _Slots | None:
    """Independent slots, or None when pods of one class can take room from another's."""
    most = tuple(problem.most(kind, problem.empty, c) if kind.allowed[c] else 0 for c in range(len(problem.classes)))
    present = [c for c, count in enumerate(most) if count]
    for c in present:
        others = (*most[:c], 0, *most[c + 1 :])
        if problem.most(kind, others, c) < most[c]:
            return None
    return _Slots(most)


def _capacity_key(problem: Problem, kind: Kind) -> Hashable:
    """Equal for two nodes only when the same fillings fit on both (raw amounts when the table would be long)."""
    alone = {c: problem.most(kind, problem.empty, c) for c, ok in enumerate(kind.allowed) if ok}
    classes = sorted((c for c in alone if alone[c]), key=lambda c: (alone[c], c))
    if not classes:
        return ()
    size = 1
    for c in classes[:-1]:
        size *= alone[c] + 1
    if size > TABLE_LIMIT:
        return ("free", kind.free)
    table = []
    for counts in product(*(range(alone[c] + 1) for c in classes[:-1])):
        content = list(problem.empty)
        for c, count in zip(classes, counts, strict=False):
            content[c] = count
        fits = problem.possible(kind, tuple(content))
        table.append(problem.most(kind, tuple(content), classes[-1]) if fits else -1)
    return (tuple(classes), tuple(alone[c] for c in classes), tuple(table))


def _per_node(problem: Problem, chosen: int) -> bool:
    """Whether a dynamic term of the class looks at single nodes (clashes and caps excepted: they are room)."""
    interplay = problem.interplay[chosen]
    return any(k in problem.per_node for k in (*interplay.keys, *(s.key for s in interplay.spread)))


def _named_nodes(problem: Problem) -> frozenset[str]:
    names: set[str] = set()
    for chosen in problem.classes:
        names |= {chosen.spec.node_name} if chosen.spec.node_name else set()
        for term in chosen.spec.nodes.terms or ():
            names |= {v for r in term.fields for v in r.values}
    volumes = (t for i in problem.interplay for terms in (*i.volumes.terms, *i.volumes.provisioned) for t in terms)
    return frozenset(names | {v for t in volumes for r in t.fields for v in r.values})


def _looked_at(problem: Problem) -> tuple[str, ...]:
    """Label keys the node-level filters read."""
    keys: set[str] = set()
    for chosen, interplay in zip(problem.classes, problem.interplay, strict=True):
        nodes = chosen.spec.nodes
        keys |= {k for k, _ in nodes.selector}
        keys |= {r.key for t in nodes.terms or () for r in t.labels}
        keys |= {c.topology_key for c in chosen.hard} | {t.topology_key for t in chosen.spec.affinity}
        keys |= {k for k, _ in interplay.fixed_blocks}
        keys |= {
            r.key for terms in (*interplay.volumes.terms, *interplay.volumes.provisioned) for t in terms for r in t.labels
        }
        if interplay.volumes.zones:
            keys |= {k for k, _ in interplay.volumes.zones} | {problem.settings.zone_key}
            keys |= {"topology.kubernetes.io/zone", "topology.kubernetes.io/region"}
    return tuple(sorted(keys))


def passes(problem: Problem, chosen: int, node: Node) -> bool:
    """Every filter that reads the node and bound pods elsewhere, resources and ports apart."""
    spec, interplay = problem.classes[chosen].spec, problem.interplay[chosen]
    labels = node.labels
    pinned = spec.nodes.pinned_names()
    if spec.gates or (pinned is not None and node.name not in pinned):
        return False
    if refuse_node(spec, node, comparisons=problem.settings.comparisons) is not None:
        return False
    if refuse_volumes(interplay.volumes, node) is not None:
        return False
    needed = {c.topology_key for c in problem.classes[chosen].hard} | {t.topology_key for t in spec.affinity}
    if any(k not in labels for k in needed):
        return False
    if any(labels.get(k) == v for k, v in interplay.fixed_blocks):
        return False
    if any((k, labels[k]) not in interplay.attracted_base for k in interplay.fixed_keys):
        return False
    return all(c.admits(labels[c.key]) for c in interplay.fixed_spread)


def _ports_free(problem: Problem, chosen: int, state: NodeState) -> bool:
    wanted = problem.classes[chosen].spec.ports
    return not wanted or not ports_conflict(wanted, (p for b in state.pods for p in b.ports))


def _cannot_share(problem: Problem, chosen: int, other: int, keyed: frozenset[str]) -> bool:
    """Host ports, or anti-affinity on a key by which each node is a domain of its own."""
    if ports_conflict(problem.classes[chosen].spec.ports, problem.classes[other].spec.ports):
        return True
    return any(b.key in keyed and other in b.classes for b in problem.node_blockers[chosen])


def _eligible(problem: Problem, chosen: int, state: NodeState) -> tuple[bool, ...]:
    hard = problem.classes[chosen].hard
    if not all(c.topology_key in state.labels for c in hard):
        return (False,) * len(hard)
    spec = problem.classes[chosen].spec
    return tuple(is_eligible(c, spec, state.node, comparisons=problem.settings.comparisons) for c in hard)


def _own(problem: Problem, chosen: int, state: NodeState) -> tuple[int, ...]:
    """Only per-node constraints count here; domains shared by nodes are in `Counted.base`."""
    namespace = problem.classes[chosen].spec.namespace
    return tuple(
        count_matching(c, namespace, state) if c.topology_key in problem.per_node else 0
        for c in problem.classes[chosen].hard
    )


def _near(problem: Problem, chosen: int, state: NodeState) -> bool:
    interplay = problem.interplay[chosen]
    local = (k for k in interplay.keys if k in problem.per_node)
    return all((k, state.labels.get(k)) in interplay.attracted_base for k in local)


def _caps(problem: Problem, chosen: int, state: NodeState) -> tuple[Cap, ...]:
    """Per-node spread constraints whose minimum cannot change: at most so many counted pods before the next."""
    caps = []
    for counted, lowest in problem.capped.get(chosen, ()):
        ceiling = counted.max_skew + lowest - counted.self_match
        eligible = _eligible(problem, chosen, state)[counted.index]
        here = _own(problem, chosen, state)[counted.index] if eligible else 0
        if eligible or ceiling < 0:
            caps.append((counted.classes, ceiling - here))
    return tuple(caps)
