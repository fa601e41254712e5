"""
AdminNetworkPolicy and BaselineAdminNetworkPolicy, policy.networking.k8s.io/v1alpha1 (network-policy-api v0.1.x, frozen).

Order: AdminNetworkPolicy by priority (0 first), NetworkPolicy, BaselineAdminNetworkPolicy (the one named ``default``);
ends as in reference/policy.md §3. Implemented by OVN-Kubernetes, Antrea, Kube-OVN, Calico 3.29 to 3.31; never by Cilium.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stallscope.model.kube import KubeObject
from stallscope.model.source import as_list, as_map, as_str
from stallscope.model.traffic import Protocol
from stallscope.policy.clusternetpol import priority_of
from stallscope.policy.ir import Action, Block
from stallscope.policy.kinds import BASELINE_ADMIN
from stallscope.policy.portset import TRANSPORT, PortItem
from stallscope.policy.tiered import TierReading, compile_tiered, plain_peer, plain_subject

ACTIONS = {"Allow": Action.ALLOW, "Deny": Action.DENY, "Pass": Action.PASS}


def compile_anp(policy: KubeObject, *, admin: int, baseline: int) -> list[Block]:
    """The blocks of one object. A baseline object not named ``default`` is refused by the API."""
    if policy.kind == BASELINE_ADMIN:
        return [] if policy.name != "default" else compile_tiered(policy, tier=baseline, priority=0.0, reading=PLAIN)
    return compile_tiered(policy, tier=admin, priority=priority_of(policy), reading=PLAIN)


def port_items(rule: Mapping[str, Any]) -> tuple[PortItem, ...] | None:
    """``ports``: portNumber, portRange or namedPort; the protocol defaults to TCP."""
    listed = as_list(rule.get("ports"))
    if not listed:
        return None
    return tuple(p for item in listed for p in _port(as_map(item)))


def _port(item: Mapping[str, Any]) -> tuple[PortItem, ...]:
    named = as_str(item.get("namedPort"))
    if named:
        return tuple(PortItem(p, name=named) for p in TRANSPORT)
    body = as_map(item.get("portNumber")) or as_map(item.get("portRange"))
    first, last = body.get("start", body.get("port")), body.get("end", body.get("port"))
    try:
        protocol = Protocol(as_str(body.get("protocol"), "TCP").upper())
    except ValueError:
        return ()
    if not isinstance(first, int) or not isinstance(last, int):
        return ()
    return (PortItem(protocol, first, last),)


PLAIN = TierReading(peer=plain_peer, subject=plain_subject, ports=port_items, actions=ACTIONS)
