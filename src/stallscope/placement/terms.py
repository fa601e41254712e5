"""
The parts of a pod spec that constrain placement, parsed once into frozen values.

Sources: core/v1 types; component-helpers nodeaffinity (nodeSelector AND ORed terms); kube-scheduler AffinityTerm and
topologySpreadConstraint; pod registry strategy (matchLabelKeys/mismatchLabelKeys merged into selectors at creation).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from stallscope.model.labels import Requirement, Selector, parse_requirement, parse_selector
from stallscope.model.source import as_list, as_map, as_str

_INTEGER = re.compile(r"[+-]?\d+\Z", re.ASCII)


class NodeTerm(NamedTuple):
    """One nodeSelectorTerm: expressions on labels and on fields (only ``metadata.name`` exists), all of which must hold."""

    labels: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        """An empty term matches nothing (nodeaffinity.go isEmptyNodeSelectorTerm)."""
        if not self.labels and not self.fields:
            return False
        fields = {"metadata.name": name}
        return all(node_requirement_holds(r, labels) for r in self.labels) and all(r.matches(fields) for r in self.fields)

    def pinned_names(self) -> frozenset[str] | None:
        """Node names the term is limited to by ``metadata.name In``, or None when it is not (NodeAffinity.PreFilter)."""
        pinned: frozenset[str] | None = None
        for r in self.fields:
            if r.key == "metadata.name" and r.operator == "In":
                pinned = frozenset(r.values) if pinned is None else pinned & frozenset(r.values)
        return pinned


def node_requirement_holds(requirement: Requirement, labels: Mapping[str, str]) -> bool:
    """`Requirement.matches` with Go's integers for Gt and Lt (no spaces, no underscores, 64 bits)."""
    if requirement.operator not in ("Gt", "Lt"):
        return requirement.matches(labels)
    left, right = labels.get(requirement.key), requirement.values[0] if len(requirement.values) == 1 else None
    if left is None or right is None or not _INTEGER.match(left) or not _INTEGER.match(right):
        return False
    if max(abs(int(left)), abs(int(right))) >= 2**63:
        return False
    return int(left) > int(right) if requirement.operator == "Gt" else int(left) < int(right)


class RequiredNodes(NamedTuple):
    """nodeSelector AND required node affinity. `terms` is None without affinity; its terms are ORed."""

    selector: tuple[tuple[str, str], ...] = ()
    terms: tuple[NodeTerm, ...] | None = None

    @property
    def empty(self) -> bool:
        return not self.selector and self.terms is None

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        if any(labels.get(k) != v for k, v in self.selector):
            return False
        return self.terms is None or any(t.matches(labels, name) for t in self.terms)

    def pinned_names(self) -> frozenset[str] | None:
        """The nodes NodeAffinity.PreFilter narrows the search to; None = all nodes; empty = the terms contradict."""
        if not self.terms:
            return None
        names: frozenset[str] = frozenset()
        for term in self.terms:
            pinned = term.pinned_names()
            if pinned is None:
                return None
            names |= pinned
        return names


class AffinityTerm(NamedTuple):
    """
    A required (anti-)affinity term. `selector` None matches no pod. `namespaces` already holds the pod's own namespace
    where the term names none; `namespace_selector` None selects no further namespace, an empty one all of them.
    """

    topology_key: str
    selector: Selector | None
    namespaces: frozenset[str]
    namespace_selector: Selector | None = None

    def matches(self, namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str]) -> bool:
        """As a term of a pod that is already bound, of which the scheduler looks the namespace's labels up."""
        if self.selector is None:
            return False
        chosen = self.namespace_selector
        inside = namespace in self.namespaces or (chosen is not None and chosen.matches(namespace_labels))
        return inside and self.selector.matches(labels)

    def draws(self, namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str]) -> bool:
        """
        As a term of the pod that is being scheduled. Since 1.34 such a term's namespaceSelector is also tried on *no*
        labels, so one that only excludes (NotIn, DoesNotExist) sees the pods of every namespace (kubernetes#141526,
        open: interpodaffinity/plugin.go mergeAffinityTermNamespacesIfNotEmpty changes a copy).
        """
        chosen = self.namespace_selector
        if self.selector is not None and chosen is not None and chosen.matches({}):
            return self.selector.matches(labels)
        return self.matches(namespace, labels, namespace_labels)


class SpreadConstraint(NamedTuple):
    """
    A topologySpreadConstraint. `selector` None (absent) counts and matches no pod; an empty one counts none but the pod
    matches itself, so it never binds for maxSkew >= 1 (common.go countPodsMatchSelector, filtering.go).
    """

    topology_key: str
    max_skew: int
    selector: Selector | None
    min_domains: int = 1
    honor_affinity: bool = True
    honor_taints: bool = False
    hard: bool = True

    def counts(self, labels: Mapping[str, str]) -> bool:
        """Whether a bound pod with these labels (same namespace, not terminating) is counted."""
        return self.selector is not None and not self.selector.empty and self.selector.matches(labels)

    def matches_itself(self, labels: Mapping[str, str]) -> bool:
        return self.selector is not None and self.selector.matches(labels)


class Weighted(NamedTuple):
    """A preferred term and its weight (1..100; negative for anti-affinity)."""

    weight: int
    term: AffinityTerm


class WeightedNodes(NamedTuple):
    weight: int
    term: NodeTerm


def parse_node_term(value: Any) -> NodeTerm:
    body = as_map(value)
    labels = tuple(parse_requirement(e) for e in as_list(body.get("matchExpressions")))
    fields = tuple(parse_requirement(e) for e in as_list(body.get("matchFields")))
    return NodeTerm(labels, fields)


def parse_required_nodes(spec: Mapping[str, Any]) -> RequiredNodes:
    selector = tuple(sorted((str(k), str(v)) for k, v in as_map(spec.get("nodeSelector")).items()))
    required = as_map(as_map(spec.get("affinity")).get("nodeAffinity")).get("requiredDuringSchedulingIgnoredDuringExecution")
    if not isinstance(required, Mapping):
        return RequiredNodes(selector)
    return RequiredNodes(selector, tuple(parse_node_term(t) for t in as_list(required.get("nodeSelectorTerms"))))


def parse_preferred_nodes(spec: Mapping[str, Any]) -> tuple[WeightedNodes, ...]:
    affinity = as_map(as_map(spec.get("affinity")).get("nodeAffinity"))
    items = map(as_map, as_list(affinity.get("preferredDuringSchedulingIgnoredDuringExecution")))
    return tuple(WeightedNodes(as_int(i.get("weight"), 0), parse_node_term(i.get("preference"))) for i in items)


def as_int(value: Any, default: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def merged_selector(body: Mapping[str, Any], labels: Mapping[str, str], *, mismatch: bool = True) -> Selector | None:
    """
    The term's labelSelector after the API server merged matchLabelKeys (In) and mismatchLabelKeys (NotIn) of labels the
    pod has (KEP-3633, GA 1.33; topology spread: KEP-3243 selector merge, 1.34). An absent selector stays absent.
    """
    selector = parse_selector(body.get("labelSelector"))
    if selector is None:
        return None
    extra = [Requirement(k, "In", (labels[k],)) for k in map(as_str, as_list(body.get("matchLabelKeys"))) if k in labels]
    if mismatch:
        keys = map(as_str, as_list(body.get("mismatchLabelKeys")))
        extra += [Requirement(k, "NotIn", (labels[k],)) for k in keys if k in labels]
    return Selector(selector.requirements + tuple(extra))


def parse_affinity_term(value: Any, namespace: str, labels: Mapping[str, str]) -> AffinityTerm:
    body = as_map(value)
    names = frozenset(map(as_str, as_list(body.get("namespaces"))))
    chosen = parse_selector(body.get("namespaceSelector"))
    if not names and chosen is None:
        names = frozenset({namespace})
    return AffinityTerm(as_str(body.get("topologyKey")), merged_selector(body, labels), names, chosen)


def parse_required_terms(
    spec: Mapping[str, Any], which: str, namespace: str, labels: Mapping[str, str]
) -> tuple[AffinityTerm, ...]:
    """Required terms of ``podAffinity`` or ``podAntiAffinity`` (`which`)."""
    affinity = as_map(as_map(spec.get("affinity")).get(which))
    items = as_list(affinity.get("requiredDuringSchedulingIgnoredDuringExecution"))
    return tuple(parse_affinity_term(i, namespace, labels) for i in items)


def parse_preferred_terms(
    spec: Mapping[str, Any], which: str, namespace: str, labels: Mapping[str, str]
) -> tuple[Weighted, ...]:
    affinity = as_map(as_map(spec.get("affinity")).get(which))
    items = map(as_map, as_list(affinity.get("preferredDuringSchedulingIgnoredDuringExecution")))
    sign = -1 if which == "podAntiAffinity" else 1
    return tuple(
        Weighted(sign * as_int(i.get("weight"), 0), parse_affinity_term(i.get("podAffinityTerm"), namespace, labels))
        for i in items
    )


def parse_spread(value: Any, labels: Mapping[str, str]) -> SpreadConstraint:
    body = as_map(value)
    return SpreadConstraint(
        topology_key=as_str(body.get("topologyKey")),
        max_skew=as_int(body.get("maxSkew"), 1),
        selector=merged_selector(body, labels, mismatch=False),
        min_domains=as_int(body.get("minDomains"), 1),
        honor_affinity=body.get("nodeAffinityPolicy", "Honor") != "Ignore",
        honor_taints=body.get("nodeTaintsPolicy", "Ignore") == "Honor",
        hard=body.get("whenUnsatisfiable") != "ScheduleAnyway",
    )
