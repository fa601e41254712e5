"""
InterPodAffinity. Source: kube-scheduler 1.36 plugin interpodaffinity/filtering.go; API server merges
matchLabelKeys/mismatchLabelKeys at creation (done while parsing, see `terms`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from stallscope.model.topology import Node
from stallscope.placement.filters.base import Refusal
from stallscope.placement.podspec import BoundSpec, PodSpec
from stallscope.placement.state import Cluster
from stallscope.placement.terms import AffinityTerm

NO_AFFINITY = Refusal("InterPodAffinity", ("node(s) didn't match pod affinity rules",))
ANTI_AFFINITY = Refusal("InterPodAffinity", ("node(s) didn't match pod anti-affinity rules",), resolvable=True)
EXISTING = Refusal("InterPodAffinity", ("node(s) didn't satisfy existing pods anti-affinity rules",), resolvable=True)

Pair = tuple[str, str]


@dataclass(slots=True)
class InterPodState:
    """PreFilter's result: topology pairs (key, value) that hold pods matching each kind of term."""

    pod: PodSpec
    first: bool = False
    affinity: set[Pair] = field(default_factory=set)
    anti_affinity: set[Pair] = field(default_factory=set)
    existing: set[Pair] = field(default_factory=set)


def matches_all(terms: Sequence[AffinityTerm], pod: PodSpec | BoundSpec, cluster: Cluster) -> bool:
    """Whether a pod matches every term (podMatchesAllAffinityTerms); without terms it does not."""
    labels = cluster.labels_of_namespace(pod.namespace)
    return bool(terms) and all(t.draws(pod.namespace, pod.labels, labels) for t in terms)


def interpod_state(pod: PodSpec, cluster: Cluster) -> InterPodState:
    prepared = InterPodState(pod)
    own = cluster.labels_of_namespace(pod.namespace)
    for state, bound in cluster.affine:
        for term in bound.anti_affinity:
            value = state.labels.get(term.topology_key)
            if value is not None and term.matches(pod.namespace, pod.labels, own):
                prepared.existing.add((term.topology_key, value))
    if pod.affinity or pod.anti_affinity:
        _count_incoming(prepared, pod, cluster)
    prepared.first = not prepared.affinity and matches_all(pod.affinity, pod, cluster)
    return prepared


def _count_incoming(prepared: InterPodState, pod: PodSpec, cluster: Cluster) -> None:
    for state in cluster.nodes:
        for bound in state.pods:
            if matches_all(pod.affinity, bound, cluster):
                prepared.affinity |= {
                    (t.topology_key, v) for t in pod.affinity if (v := state.labels.get(t.topology_key)) is not None
                }
            labels = cluster.labels_of_namespace(bound.namespace)
            for term in pod.anti_affinity:
                value = state.labels.get(term.topology_key)
                if value is not None and term.draws(bound.namespace, bound.labels, labels):
                    prepared.anti_affinity.add((term.topology_key, value))


def refuse_interpod(prepared: InterPodState, node: Node) -> Refusal | None:
    if not _affinity_holds(prepared, node):
        return NO_AFFINITY
    for term in prepared.pod.anti_affinity:
        value = node.labels.get(term.topology_key)
        if value is not None and (term.topology_key, value) in prepared.anti_affinity:
            return ANTI_AFFINITY
    if any(node.labels.get(key) == value for key, value in prepared.existing):
        return EXISTING
    return None


def _affinity_holds(prepared: InterPodState, node: Node) -> bool:
    """
    All keys on the node, and a matching pod in each of its domains; or nobody in the cluster matches and the pod
    matches its own terms (the first pod of a self-affine group may go anywhere).
    """
    together = True
    for term in prepared.pod.affinity:
        value = node.labels.get(term.topology_key)
        if value is None:
            return False
        together = together and (term.topology_key, value) in prepared.affinity
    return together or prepared.first
