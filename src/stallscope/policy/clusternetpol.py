"""
ClusterNetworkPolicy, policy.networking.k8s.io/v1alpha2 (network-policy-api v0.2): tiers Admin and Baseline around
NetworkPolicy.

Source: NPEP-285 and the API types; Cilium's reading: cilium/cilium pkg/k8s/cluster_network_policy.go (1.20 development
tree), which differs: ``networks`` never match pods there. reference/policy.md §3.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stallscope.model.kube import KubeObject
from stallscope.model.source import Location, as_list, as_map, as_str
from stallscope.model.traffic import Direction, Protocol
from stallscope.policy.cilium_context import CiliumContext
from stallscope.policy.cilium_netpol import namespace_terms
from stallscope.policy.cilium_selectors import SourcedSelector, in_cluster, parse_terms
from stallscope.policy.ir import Action, Block, Clause, Peer, Subject
from stallscope.policy.peers import CidrPeer, SelectorPeer, parse_network
from stallscope.policy.portset import TRANSPORT, PortItem
from stallscope.policy.subjects import CiliumSubject
from stallscope.policy.tiered import TierReading, compile_tiered, plain_peer, plain_subject

ACTIONS = {"Accept": Action.ALLOW, "Deny": Action.DENY, "Pass": Action.PASS}


def compile_kcnp(policy: KubeObject, *, admin: int, baseline: int, context: CiliumContext | None = None) -> list[Block]:
    """The blocks of one object; with a `context`, as Cilium reads it."""
    tier = baseline if policy.get("spec", "tier") == "Baseline" else admin
    reading = PLAIN if context is None else cilium_reading(context)
    return compile_tiered(policy, tier=tier, priority=priority_of(policy), reading=reading)


def priority_of(policy: KubeObject) -> float:
    """0 to 1000, lower first; the API refuses anything else, so an ill-typed one counts as last."""
    value = policy.get("spec", "priority", default=0)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 1000.0


def port_items(rule: Mapping[str, Any]) -> tuple[PortItem, ...] | None:
    """``protocols``: each item is one of tcp, udp, sctp (with an optional destinationPort) or destinationNamedPort."""
    listed = as_list(rule.get("protocols"))
    if not listed:
        return None
    return tuple(p for item in listed for p in _protocol(as_map(item)))


def _protocol(item: Mapping[str, Any]) -> tuple[PortItem, ...]:
    for name, protocol in (("tcp", Protocol.TCP), ("udp", Protocol.UDP), ("sctp", Protocol.SCTP)):
        if isinstance(item.get(name), Mapping):
            port = as_map(as_map(item[name]).get("destinationPort"))
            span = as_map(port.get("range"))
            first, last = span.get("start", port.get("number")), span.get("end", port.get("number"))
            if isinstance(first, int) and isinstance(last, int):
                return (PortItem(protocol, first, last, ranged=bool(span)),)
            return (PortItem(protocol),)
    named = as_str(item.get("destinationNamedPort"))
    return tuple(PortItem(p, name=named) for p in TRANSPORT) if named else ()


PLAIN = TierReading(peer=plain_peer, subject=plain_subject, ports=port_items, actions=ACTIONS)


def cilium_reading(context: CiliumContext) -> TierReading:
    """Selectors over identities; networks are addresses outside; nodes need the node-label flag."""

    def peer(body: Mapping[str, Any], direction: Direction) -> tuple[Peer, ...] | None:
        if isinstance(body.get("pods"), Mapping):
            return (SelectorPeer(in_cluster(SourcedSelector(_pod_terms(body["pods"])), context.peer_cluster)),)
        if isinstance(body.get("namespaces"), Mapping):
            return (SelectorPeer(SourcedSelector(namespace_terms(body["namespaces"]))),)
        if direction is Direction.INGRESS:
            return None
        if isinstance(body.get("nodes"), Mapping):
            nodes = SourcedSelector(parse_terms(body["nodes"], source="node")).plus("reserved", "remote-node", "Exists")
            return (SelectorPeer(in_cluster(nodes, context.peer_cluster)),)
        if as_list(body.get("networks")):
            return tuple(CidrPeer(n) for x in as_list(body["networks"]) if (n := parse_network(x)) is not None)
        if as_list(body.get("domainNames")):
            return tuple(context.fqdn_peer(_domain(as_str(x))) for x in as_list(body["domainNames"]))
        return None

    return TierReading(peer=peer, subject=cilium_subject, ports=port_items, actions=ACTIONS, implied=_dns)


def _domain(name: str) -> dict[str, str]:
    """A leading ``*`` covers several labels here, so the agent doubles it (kcnpParseFQDNSelectors)."""
    if not name.startswith("*"):
        return {"matchName": name}
    return {"matchPattern": name if name.startswith("**") else f"*{name}"}


def _pod_terms(pods: Mapping[str, Any]) -> tuple[Any, ...]:
    return (*namespace_terms(as_map(pods.get("namespaceSelector"))), *parse_terms(pods.get("podSelector"), source="k8s"))


def cilium_subject(body: Mapping[str, Any]) -> Subject | None:
    if isinstance(body.get("namespaces"), Mapping):
        return CiliumSubject(SourcedSelector(namespace_terms(body["namespaces"])))
    if isinstance(body.get("pods"), Mapping):
        return CiliumSubject(SourcedSelector(_pod_terms(body["pods"])))
    return None


def _dns(body: Mapping[str, Any], clause: Clause) -> tuple[Clause, ...]:
    """A domain name rule also admits, through the DNS proxy, what it takes to resolve the name."""
    if not as_list(body.get("domainNames")):
        return ()
    resolver = SelectorPeer(SourcedSelector(parse_terms({"matchLabels": {"k8s-app": "kube-dns"}})))
    ports = tuple(PortItem(p, name=n) for n in ("dns", "dns-tcp") for p in TRANSPORT)
    reason = "dns rules: the DNS proxy answers"
    return (
        Clause(
            ref=clause.ref,
            action=Action.ALLOW,
            peers=(resolver,),
            ports=ports,
            order=clause.order,
            proxied=reason,
            proxy_rank=121,
        ),
    )


def refusal(policy: KubeObject, context: CiliumContext) -> tuple[str, Location] | None:
    """Why the agent drops this object, and where; None when it accepts it."""
    for index, item in enumerate(as_list(policy.get("spec", "egress"))):
        for place, body in enumerate(map(as_map, as_list(as_map(item).get("to")))):
            where = policy.at("spec", "egress", index, "to", place)
            if isinstance(body.get("nodes"), Mapping) and not context.options.node_selectors:
                return "egress.to.nodes is not supported since node selector labels are disabled", where
            if as_list(body.get("domainNames")) and as_map(item).get("action") != "Accept":
                return "egress.to.domainNames is only supported for egress.action=Accept", where
            if as_list(body.get("domainNames")) and not context.options.l7_proxy:
                return "egress.to.domainNames is not supported since L7 proxy is disabled", where
    return None
