"""
What ClusterNetworkPolicy (v1alpha2) and Admin-/BaselineAdminNetworkPolicy (v1alpha1) have in common: a subject, ordered
rules with actions, peers by namespaces, pods, nodes, networks or domain names. The field names differ and are passed in.

Source: sigs.k8s.io/network-policy-api apis/v1alpha1, apis/v1alpha2; cilium/cilium pkg/k8s/cluster_network_policy.go;
reference/policy.md §3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from stallscope.model.kube import KubeObject
from stallscope.model.labels import Selector, parse_selector
from stallscope.model.source import as_list, as_map, as_str
from stallscope.model.traffic import Direction, RuleRef
from stallscope.policy.ir import Action, Block, Clause, Peer, Subject
from stallscope.policy.peers import CidrPeer, FactPeer, NodePeer, PodPeer, parse_network
from stallscope.policy.portset import PortItem
from stallscope.policy.subjects import PodSubject

#: One peer item -> its peers; None when no known field identifies it (then accept matches nothing, deny and pass deny all).
PeerReader = Callable[[Mapping[str, Any], Direction], tuple[Peer, ...] | None]

_SECTIONS = ((Direction.INGRESS, "ingress", "from"), (Direction.EGRESS, "egress", "to"))


@dataclass(frozen=True, slots=True, kw_only=True)
class TierReading:
    """How an engine reads these objects; `implied`: what it admits along with a peer (Cilium: DNS for domain names)."""

    peer: PeerReader
    subject: Callable[[Mapping[str, Any]], Subject | None]
    ports: Callable[[Mapping[str, Any]], tuple[PortItem, ...] | None]
    actions: Mapping[str, Action]
    implied: Callable[[Mapping[str, Any], Clause], tuple[Clause, ...]] = lambda _peer, _clause: ()


def compile_tiered(policy: KubeObject, *, tier: int, priority: float, reading: TierReading) -> list[Block]:
    """The blocks of one object: they never isolate, what no rule decides falls to the next tier."""
    subject = reading.subject(as_map(policy.get("spec", "subject")))
    if subject is None:
        return []
    return [
        Block(
            policy=policy,
            ref=RuleRef(policy=policy.ref, section=section, location=policy.at("spec", "subject")),
            direction=direction,
            subject=subject,
            tier=tier,
            isolates=False,
            clauses=tuple(_clauses(policy, direction, section, key, priority, reading)),
        )
        for direction, section, key in _SECTIONS
        if as_list(policy.get("spec", section))
    ]


def _clauses(
    policy: KubeObject, direction: Direction, section: str, key: str, priority: float, reading: TierReading
) -> Iterator[Clause]:
    for index, item in enumerate(as_list(policy.get("spec", section))):
        rule = as_map(item)
        action = reading.actions.get(as_str(rule.get("action")))
        if action is None:
            continue
        ref = RuleRef(policy=policy.ref, section=section, index=index, location=policy.at("spec", section, index))
        order = (priority, float(index))
        ports = reading.ports(rule)
        listed = as_list(rule.get(key))
        if not listed:
            yield Clause(ref=ref, action=action, ports=ports, order=order)
        for body in map(as_map, listed):
            peers = reading.peer(body, direction)
            if peers is not None:
                clause = Clause(ref=ref, action=action, peers=peers, ports=ports, order=order)
                yield clause
                yield from reading.implied(body, clause)
            elif action is not Action.ALLOW:  # fail closed: an unknown peer of Deny or Pass denies everybody
                yield Clause(ref=ref, action=Action.DENY, ports=ports, order=order)


def plain_subject(body: Mapping[str, Any]) -> Subject | None:
    """Pods of the selected namespaces, or selected pods; host-network pods never are subjects."""
    if isinstance(body.get("namespaces"), Mapping):
        return PodSubject(Selector(), parse_selector(body["namespaces"]), host_network=False)
    pods = body.get("pods")
    if isinstance(pods, Mapping):
        namespaces = parse_selector(pods.get("namespaceSelector")) or Selector()
        return PodSubject(parse_selector(pods.get("podSelector")) or Selector(), namespaces, host_network=False)
    return None


def plain_peer(body: Mapping[str, Any], direction: Direction) -> tuple[Peer, ...] | None:
    """A peer as the API specifies it: ``networks`` match pods too, host-network pods only as nodes or networks."""
    if isinstance(body.get("namespaces"), Mapping):
        return (PodPeer(Selector(), parse_selector(body["namespaces"]), host_network=False),)
    pods = body.get("pods")
    if isinstance(pods, Mapping):
        namespaces = parse_selector(pods.get("namespaceSelector")) or Selector()
        return (PodPeer(parse_selector(pods.get("podSelector")) or Selector(), namespaces, host_network=False),)
    if direction is Direction.INGRESS:
        return None
    if isinstance(body.get("nodes"), Mapping):
        return (NodePeer(parse_selector(body["nodes"]) or Selector()),)
    if as_list(body.get("networks")):
        return tuple(CidrPeer(n, pods=True) for x in as_list(body["networks"]) if (n := parse_network(x)) is not None)
    if as_list(body.get("domainNames")):
        return (FactPeer(f"which addresses {', '.join(map(str, as_list(body['domainNames'])))} resolve to"),)
    return None
