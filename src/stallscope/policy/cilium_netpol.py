"""
NetworkPolicy v1 as the Cilium agent reads it: selectors over identity labels, ipBlock never against pods.

Source: cilium/cilium pkg/k8s/network_policy.go (ParseNetworkPolicy); reference/policy.md §1.2, §2.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stallscope.model.source import as_list
from stallscope.model.traffic import Direction
from stallscope.policy.cilium_context import CiliumContext
from stallscope.policy.cilium_selectors import SourcedSelector, Term, in_cluster, in_namespace, parse_terms
from stallscope.policy.identity import NAMESPACE, NAMESPACE_LABELS
from stallscope.policy.ir import Peer
from stallscope.policy.netpol import NetpolReading, pods_and_addresses
from stallscope.policy.peers import CidrPeer, SelectorPeer
from stallscope.policy.subjects import CiliumSubject


def cilium_reading(context: CiliumContext) -> NetpolReading:
    """How the agent configured by `context` reads NetworkPolicy peers and subjects."""

    def peer(item: Mapping[str, Any], namespace: str) -> Peer | None:
        if isinstance(item.get("ipBlock"), Mapping):
            plain = pods_and_addresses(item, namespace)
            return CidrPeer(plain.network, plain.excepts) if isinstance(plain, CidrPeer) else None
        terms = _terms(item, namespace)
        return None if terms is None else SelectorPeer(in_cluster(SourcedSelector(terms), context.peer_cluster))

    def subject(selector: Any, namespace: str) -> CiliumSubject:
        return CiliumSubject(in_namespace(selector, namespace, source="k8s"), namespace)

    return NetpolReading(peer, subject, tier=context.normal_tier, types=directions)


def directions(spec: Mapping[str, Any]) -> frozenset[Direction]:
    """
    The agent enforces a section that has rules whatever ``policyTypes`` says; for the others ``policyTypes`` decides, and
    ingress is meant unless only Egress is named.
    """
    named = as_list(spec.get("policyTypes"))
    ingress = as_list(spec.get("ingress")) or "Ingress" in named or "Egress" not in named
    egress = as_list(spec.get("egress")) or "Egress" in named
    return frozenset(d for d, wanted in ((Direction.INGRESS, ingress), (Direction.EGRESS, egress)) if wanted)


def _terms(item: Mapping[str, Any], namespace: str) -> tuple[Term, ...] | None:
    pods, namespaces = item.get("podSelector"), item.get("namespaceSelector")
    if isinstance(namespaces, Mapping):
        return (*namespace_terms(namespaces), *parse_terms(pods, source="k8s"))
    if isinstance(pods, Mapping):
        return in_namespace(pods, namespace, source="k8s").terms
    return None


def namespace_terms(selector: Mapping[str, Any]) -> tuple[Term, ...]:
    """A namespaceSelector: keys are namespace labels; an empty one means "has a namespace", so pods only."""
    chosen = parse_terms(selector, source="k8s", key_prefix=NAMESPACE_LABELS + ".")
    return chosen or SourcedSelector().plus("k8s", NAMESPACE, "Exists").terms
