"""
PodTopologySpread. Source: kube-scheduler 1.36 plugin podtopologyspread (filtering.go, common.go); KEP-895, KEP-3022
(minDomains), KEP-3094 (node inclusion policies), KEP-3243 (matchLabelKeys).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from stallscope.model.topology import Node
from stallscope.placement.filters.base import Refusal
from stallscope.placement.podspec import PodSpec
from stallscope.placement.state import NodeState
from stallscope.placement.terms import SpreadConstraint
from stallscope.placement.tolerations import untolerated

MISSING_KEY = Refusal(
    "PodTopologySpread", ("node(s) didn't match pod topology spread constraints (missing required label)",)
)
SKEWED = Refusal("PodTopologySpread", ("node(s) didn't match pod topology spread constraints",), resolvable=True)


@dataclass(slots=True)
class SpreadState:
    """PreFilter's result: per hard constraint, the matching pods of each eligible domain."""

    constraints: Sequence[SpreadConstraint]
    counts: list[dict[str, int]]
    self_match: list[int]

    def minimum(self, index: int) -> int:
        """The global minimum; 0 while fewer domains exist than minDomains asks for."""
        counts, constraint = self.counts[index], self.constraints[index]
        return min(counts.values()) if counts and len(counts) >= constraint.min_domains else 0


def is_eligible(constraint: SpreadConstraint, pod: PodSpec, node: Node, *, comparisons: bool = False) -> bool:
    """Whether the node's domain is counted (matchNodeInclusionPolicies). Resources never matter."""
    if constraint.honor_affinity and not pod.nodes.matches(node.labels, node.name):
        return False
    return not constraint.honor_taints or untolerated(node.taints, pod.tolerations, comparisons=comparisons) is None


def spread_state(
    pod: PodSpec, constraints: Sequence[SpreadConstraint], nodes: Iterable[NodeState], *, comparisons: bool = False
) -> SpreadState:
    """Count matching pods per domain, over nodes that carry the keys of *all* hard constraints."""
    hard = [c for c in constraints if c.hard]
    counts: list[dict[str, int]] = [{} for _ in hard]
    keys = [c.topology_key for c in hard]
    for state in nodes if hard else ():
        if not all(k in state.labels for k in keys):
            continue
        for index, constraint in enumerate(hard):
            if is_eligible(constraint, pod, state.node, comparisons=comparisons):
                domain = state.labels[constraint.topology_key]
                counts[index][domain] = counts[index].get(domain, 0) + count_matching(constraint, pod.namespace, state)
    return SpreadState(hard, counts, [int(c.matches_itself(pod.labels)) for c in hard])


def count_matching(constraint: SpreadConstraint, namespace: str, state: NodeState) -> int:
    """Pods on the node that the constraint counts: same namespace, not terminating, selected."""
    return sum(p.namespace == namespace and not p.terminating and constraint.counts(p.labels) for p in state.pods)


def refuse_spread(prepared: SpreadState, node: Node) -> Refusal | None:
    for index, constraint in enumerate(prepared.constraints):
        domain = node.labels.get(constraint.topology_key)
        if domain is None:
            return MISSING_KEY
        skew = prepared.counts[index].get(domain, 0) + prepared.self_match[index] - prepared.minimum(index)
        if skew > constraint.max_skew:
            return SKEWED
    return None
