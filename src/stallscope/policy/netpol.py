"""
Kubernetes NetworkPolicy, networking.k8s.io/v1, as its API defines it (k8s.io/api/networking/v1 types.go): allow-only,
additive, isolating per direction. How an engine reads the peers differs: `stallscope.policy.generic` and Calico match
pods and addresses, Cilium matches identities; the caller passes how.

Not judged: what a NetworkPolicy means for host-network pods (undefined by the API) and protocols besides TCP, UDP, SCTP.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from stallscope.model.kube import KubeObject
from stallscope.model.labels import Selector, parse_selector
from stallscope.model.source import Location, as_list, as_map
from stallscope.model.traffic import Direction, Protocol, RuleRef
from stallscope.policy.ir import Action, Block, Clause, Peer, Subject
from stallscope.policy.peers import CidrPeer, PodPeer, parse_network
from stallscope.policy.portset import PortItem
from stallscope.policy.subjects import PodSubject

KIND = "NetworkPolicy"

_SECTIONS = ((Direction.INGRESS, "ingress", "from"), (Direction.EGRESS, "egress", "to"))

#: One item of ``from``/``to`` and the policy's namespace -> a peer, or None when it selects nobody.
PeerReader = Callable[[Mapping[str, Any], str], Peer | None]


def policy_types(spec: Mapping[str, Any]) -> frozenset[Direction]:
    """Absent ``policyTypes``: always Ingress, and Egress when there are egress rules (defaulting in the API server)."""
    named = [t for t in as_list(spec.get("policyTypes")) if isinstance(t, str)]
    if named:
        return frozenset(d for d in Direction if d.value.capitalize() in named)
    return frozenset(Direction) if as_list(spec.get("egress")) else frozenset({Direction.INGRESS})


@dataclass(frozen=True, slots=True)
class NetpolReading:
    """How an engine reads NetworkPolicy objects: peers, subject, directions, and the tier and order its rules get."""

    peer: PeerReader
    subject: Callable[[Any, str], Subject]
    tier: int = 0
    order: tuple[float | str, ...] = ()
    types: Callable[[Mapping[str, Any]], frozenset[Direction]] = policy_types


def pods_and_addresses(item: Mapping[str, Any], namespace: str) -> Peer | None:
    """A peer as the API documents it; ipBlock matches pod addresses too (reference/policy.md §2)."""
    block = item.get("ipBlock")
    if isinstance(block, Mapping):
        network = parse_network(block.get("cidr"))
        if network is None:
            return None
        excepts = [n for e in as_list(block.get("except")) if (n := parse_network(e)) is not None]
        return CidrPeer(network, tuple(excepts), pods=True)
    pods, namespaces = parse_selector(item.get("podSelector")), parse_selector(item.get("namespaceSelector"))
    if pods is None and namespaces is None:
        return None
    return PodPeer(pods or Selector(), namespaces, namespace)


def plain_subject(selector: Any, namespace: str) -> Subject:
    return PodSubject(parse_selector(selector) or Selector(), None, namespace)


PLAIN = NetpolReading(pods_and_addresses, plain_subject)


def compile_netpol(policy: KubeObject, reading: NetpolReading = PLAIN, tier: int | None = None) -> list[Block]:
    """The blocks of one NetworkPolicy (at most one a direction). `tier` overrides the reading's."""
    spec = as_map(policy.get("spec"))
    subject = reading.subject(spec.get("podSelector"), policy.namespace)
    types = reading.types(spec)
    return [
        Block(
            policy=policy,
            ref=RuleRef(policy=policy.ref, section=section, location=policy.at("spec", "podSelector")),
            direction=direction,
            subject=subject,
            tier=reading.tier if tier is None else tier,
            isolates=True,
            clauses=tuple(_clauses(policy, section, peers, reading)),
        )
        for direction, section, peers in _SECTIONS
        if direction in types
    ]


def _clauses(policy: KubeObject, section: str, key: str, reading: NetpolReading) -> list[Clause]:
    found = []
    for index, item in enumerate(as_list(policy.get("spec", section))):
        rule = as_map(item)
        listed = as_list(rule.get(key))
        peers = tuple(p for x in listed if (p := reading.peer(as_map(x), policy.namespace)) is not None)
        ports = as_list(rule.get("ports"))
        found.append(
            Clause(
                ref=RuleRef(policy=policy.ref, section=section, index=index, location=policy.at("spec", section, index)),
                action=Action.ALLOW,
                peers=peers if listed else None,
                ports=tuple(i for p in ports if (i := port_item(p)) is not None) if ports else None,
                order=reading.order,
            )
        )
    return found


def port_item(value: Any) -> PortItem | None:
    """A NetworkPolicyPort: protocol defaults to TCP, no port = all, endPort needs a numeric port not above it."""
    body = as_map(value)
    try:
        protocol = Protocol(str(body.get("protocol") or "TCP").upper())
    except ValueError:
        return None
    port, end = body.get("port"), body.get("endPort")
    if port is None:
        return PortItem(protocol)
    number = as_number(port)
    if number is None:
        return PortItem(protocol, name=str(port))
    last = as_number(end)
    return PortItem(protocol, number, last if last is not None else number, ranged=bool(last))


def as_number(value: Any) -> int | None:
    """An IntOrString that is a number (a text of digits counts: engines parse it so)."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    return int(value) if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 6 else None


def problem_of(policy: KubeObject) -> tuple[str, Location] | None:
    """Why the API server refuses this object (pkg/apis/networking/validation), and where; None when it is valid."""
    for section, key in (("ingress", "from"), ("egress", "to")):
        for index, item in enumerate(map(as_map, as_list(policy.get("spec", section)))):
            for place, port in enumerate(map(as_map, as_list(item.get("ports")))):
                if problem := _port_problem(port):
                    return problem, policy.at("spec", section, index, "ports", place)
            for place, peer in enumerate(map(as_map, as_list(item.get(key)))):
                if problem := _peer_problem(peer):
                    return problem, policy.at("spec", section, index, key, place)
    return None


def _port_problem(port: Mapping[str, Any]) -> str:
    end, number = as_number(port.get("endPort")), as_number(port.get("port"))
    if port.get("endPort") is None:
        return ""
    if number is None:
        return "the API server refuses endPort without a numeric port"
    if end is None or end < number:
        return f"the API server refuses endPort {port.get('endPort')} below port {number}"
    return ""


def _peer_problem(peer: Mapping[str, Any]) -> str:
    block = peer.get("ipBlock")
    if not isinstance(block, Mapping):
        return ""
    if peer.get("podSelector") is not None or peer.get("namespaceSelector") is not None:
        return "the API server refuses ipBlock together with a selector"
    network = parse_network(block.get("cidr"))
    if network is None:
        return f"the API server refuses ipBlock.cidr {block.get('cidr')}: not a CIDR"
    for item in as_list(block.get("except")):
        inner = parse_network(item)
        if inner is None or inner.version != network.version or inner.network_address not in network:
            return f"the API server refuses except {item}: not inside {block.get('cidr')}"
    return ""
