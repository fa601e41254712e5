"""
CiliumNetworkPolicy and CiliumClusterwideNetworkPolicy, cilium.io/v2, as the agent reads them.

Source: cilium/cilium pkg/policy/api, pkg/k8s/apis/cilium.io/utils/utils.go (ParseToCiliumRule),
pkg/policy/utils/parserules.go (RulesToPolicyEntries); reference/policy.md §1. What the agent refuses is in
`stallscope.policy.cilium_reject`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from stallscope.model.kube import KubeObject
from stallscope.model.source import Route, as_list, as_map, as_str
from stallscope.model.traffic import Direction, Protocol, RuleRef
from stallscope.policy.cilium_context import CiliumContext
from stallscope.policy.cilium_reject_ports import active_rules, port_number, port_text
from stallscope.policy.cilium_selectors import SourcedSelector, in_cluster, in_namespace, parse_terms, peer_selector
from stallscope.policy.ir import Action, Block, Clause, Peer
from stallscope.policy.peers import CidrPeer, EntityPeer, FactPeer, SelectorPeer, parse_network
from stallscope.policy.portset import LAST_PORT, TRANSPORT, PortItem
from stallscope.policy.subjects import CiliumSubject

NAMESPACED = "CiliumNetworkPolicy"
CLUSTERWIDE = "CiliumClusterwideNetworkPolicy"

_SECTIONS = (
    (Direction.INGRESS, Action.ALLOW, "ingress"),
    (Direction.INGRESS, Action.DENY, "ingressDeny"),
    (Direction.EGRESS, Action.ALLOW, "egress"),
    (Direction.EGRESS, Action.DENY, "egressDeny"),
)
#: L3 fields whose empty list selects nobody; an empty list of the others is as good as none (mergeEndpointSelectors).
L3_FIELDS = ("Endpoints", "CIDR", "CIDRSet", "Entities", "Nodes")
LOOSE_FIELDS = ("Groups", "Services", "FQDNs")


def specs_of(policy: KubeObject) -> list[tuple[int, Route, Mapping[str, Any]]]:
    """Every rule of the object: (number, route, body). ``spec`` is 0; ``specs`` count from 0 without it, else from 1."""
    found: list[tuple[int, Route, Mapping[str, Any]]] = []
    single = policy.get("spec")
    if isinstance(single, Mapping):
        found.append((0, ("spec",), single))
    for index, item in enumerate(as_list(policy.get("specs"))):
        found.append((len(found), ("specs", index), as_map(item)))
    return found


def compile_cilium(policy: KubeObject, context: CiliumContext) -> list[Block]:
    """The blocks of one CNP or CCNP that the agent accepts."""
    blocks: list[Block] = []
    for number, route, spec in specs_of(policy):
        blocks.extend(_compile_spec(policy, number, route, spec, context))
    return blocks


def _compile_spec(
    policy: KubeObject, number: int, route: Route, spec: Mapping[str, Any], context: CiliumContext
) -> Iterator[Block]:
    namespace = policy.namespace if policy.kind == NAMESPACED else ""
    subject = _subject(spec, namespace)
    init = any((t.source, t.need.key) == ("reserved", "init") for t in parse_terms(spec.get("endpointSelector")))
    for direction in (Direction.INGRESS, Direction.EGRESS):
        clauses: list[Clause] = []
        for way, action, section in _SECTIONS:
            if way is not direction:
                continue
            for index, item in enumerate(as_list(spec.get(section))):
                ref = RuleRef(
                    policy=policy.ref, section=section, index=index, spec=number, location=policy.at(*route, section, index)
                )
                peers = _peers(as_map(item), direction, namespace, context, init)
                clauses.extend(_clauses(ref, action, as_map(item), peers, context))
        listed = as_list(spec.get(direction.value)) or as_list(spec.get(f"{direction.value}Deny"))
        if listed:
            selector = "nodeSelector" if subject.host else "endpointSelector"
            yield Block(
                policy=policy,
                ref=RuleRef(policy=policy.ref, section=direction.value, spec=number, location=policy.at(*route, selector)),
                direction=direction,
                subject=subject,
                tier=context.normal_tier,
                isolates=_isolates(spec, direction, context),
                clauses=tuple(clauses),
            )


def _isolates(spec: Mapping[str, Any], direction: Direction, context: CiliumContext) -> bool:
    """Default deny: yes for a direction with rules, unless ``enableDefaultDeny`` says otherwise."""
    if not context.non_default_deny:
        return True
    return as_map(spec.get("enableDefaultDeny")).get(direction.value) is not False


def _subject(spec: Mapping[str, Any], namespace: str) -> CiliumSubject:
    if isinstance(spec.get("nodeSelector"), Mapping):
        return CiliumSubject(SourcedSelector(parse_terms(spec.get("nodeSelector"))), host=True)
    if namespace:
        return CiliumSubject(in_namespace(spec.get("endpointSelector"), namespace), namespace)
    return CiliumSubject(SourcedSelector(parse_terms(spec.get("endpointSelector"))))


def _peers(
    rule: Mapping[str, Any], direction: Direction, namespace: str, context: CiliumContext, init: bool
) -> tuple[Peer, ...] | None:
    """None: no L3 part; ``()``: nobody (parserules.go mergeEndpointSelectors)."""
    prefix = "from" if direction is Direction.INGRESS else "to"
    loose = LOOSE_FIELDS[:1] if direction is Direction.INGRESS else LOOSE_FIELDS
    present = {f: rule[prefix + f] for f in L3_FIELDS if isinstance(rule.get(prefix + f), list | tuple)}
    present.update((f, value) for f in loose if (value := as_list(rule.get(prefix + f))))
    if not present:
        return None
    if any(not value for value in present.values()):
        return ()
    found: list[Peer] = []
    for kind, value in present.items():
        found.extend(_read(kind, value, namespace, context, init))
    return tuple(found)


def _read(kind: str, value: Iterable[Any], namespace: str, context: CiliumContext, init: bool) -> Iterator[Peer]:
    for item in value:
        match kind:
            case "Endpoints":
                yield SelectorPeer(peer_selector(item, namespace=namespace, cluster=context.peer_cluster, init=init))
            case "Nodes":
                nodes = SourcedSelector(parse_terms(item)).plus("reserved", "remote-node", "Exists")
                yield SelectorPeer(in_cluster(nodes, context.peer_cluster))
            case "Entities":
                yield EntityPeer(as_str(item), context.cluster)
            case "CIDR":
                network = parse_network(item, bare_address=True)
                if network is not None:
                    yield CidrPeer(network)
            case "CIDRSet":
                yield from _cidr_rule(as_map(item), context)
            case "Services":
                yield from context.service_peers(as_map(item))
            case "FQDNs":
                yield context.fqdn_peer(as_map(item))
            case "Groups":
                yield FactPeer("which addresses toGroups/fromGroups resolves to")


def _cidr_rule(item: Mapping[str, Any], context: CiliumContext) -> Iterator[Peer]:
    excepts = tuple(n for e in as_list(item.get("except")) if (n := parse_network(e)) is not None)
    network = parse_network(item.get("cidr"))
    if network is not None:
        yield CidrPeer(network, excepts)
    else:
        yield from context.group_peers(item, excepts)


def _clauses(
    ref: RuleRef, action: Action, rule: Mapping[str, Any], peers: tuple[Peer, ...] | None, context: CiliumContext
) -> Iterator[Clause]:
    """One clause per port rule, since each may have its own L7 part; no L3 and no ports = matches nothing."""
    auth = as_str(as_map(rule.get("authentication")).get("mode")) if action is Action.ALLOW else ""
    port_rules, icmps = as_list(rule.get("toPorts")), as_list(rule.get("icmps"))
    if not port_rules and not icmps:
        yield Clause(ref=ref, action=action, peers=() if peers is None else peers, auth=auth)
        return
    for item in map(as_map, port_rules):
        ports = tuple(p for x in as_list(item.get("ports")) for p in port_items(as_map(x)))
        proxied, rank, only = proxy_reason(item, context) if action is Action.ALLOW else NO_PROXY
        if proxied and only is not None and any(p.protocol is not only for p in ports):
            rest = tuple(p for p in ports if p.protocol is not only)
            yield Clause(ref=ref, action=action, peers=peers, ports=rest, auth=auth)
            ports = tuple(p for p in ports if p.protocol is only)
        yield Clause(ref=ref, action=action, peers=peers, ports=ports, proxied=proxied, proxy_rank=rank, auth=auth)
    types = tuple(i for x in icmps for f in as_list(as_map(x).get("fields")) if (i := icmp_item(as_map(f))) is not None)
    if icmps:
        yield Clause(ref=ref, action=action, peers=peers, ports=types)


def port_items(item: Mapping[str, Any]) -> tuple[PortItem, ...]:
    """
    A PortProtocol. No protocol (or ANY) = TCP, UDP and SCTP; port 0 = all, with an endPort what is up to that; endPort
    below port = that port only; anything but a plain number is a *named* port, also ``0x50`` (pkg/iana IsSvcName;
    pkg/policy/portrange.go PortRangeToMaskedPorts).
    """
    name = as_str(item.get("protocol")).upper() or "ANY"
    text = port_text(item.get("port"))
    protocols = TRANSPORT if name == "ANY" else tuple(p for p in Protocol if p.value == name)
    number = port_number(text) if text else 0
    if number is None:
        return tuple(PortItem(p, name=text.lower()) for p in protocols)
    end = item.get("endPort")
    last = min(end, LAST_PORT) if isinstance(end, int) and not isinstance(end, bool) else 0
    if number == 0 and last <= 0:
        return tuple(PortItem(p) for p in protocols)
    return tuple(PortItem(p, number, max(number, last), ranged=last != 0) for p in protocols)


#: Names the API accepts for ICMPv4 types (pkg/policy/api/icmp.go); IPv6 names differ and are looked up by number only.
_ICMP_NAMES = {
    "EchoReply": 0, "DestinationUnreachable": 3, "Redirect": 5, "Echo": 8, "EchoRequest": 8, "RouterAdvertisement": 9,
    "RouterSelection": 10, "TimeExceeded": 11, "ParameterProblem": 12, "Timestamp": 13, "TimestampReply": 14, "Photuris": 40,
    "ExtendedEchoRequest": 42, "ExtendedEchoReply": 43,
}  # fmt: skip


def icmp_item(field: Mapping[str, Any]) -> PortItem | None:
    """
    An ICMP field by number or name; edges are IPv4, so IPv6 fields (another protocol) match none of them. Type 0 becomes
    port 0, which the agent takes for every type (pkg/policy/l4.go createL4Filter).
    """
    if field.get("family") == "IPv6":
        return None
    kind = field.get("type")
    if isinstance(kind, str):
        kind = int(kind) if kind.isascii() and kind.isdigit() else _ICMP_NAMES.get(kind)
    if not isinstance(kind, int) or isinstance(kind, bool):
        return None
    return PortItem(Protocol.ICMP, kind, kind) if kind else PortItem(Protocol.ICMP)


#: Listener priorities by parser: the smaller wins where rules disagree (pkg/policy/l4.go defaultPriority).
_PARSERS = (
    ("http", "http rules: Envoy parses the traffic", 101),
    ("kafka", "kafka rules: Envoy parses the traffic", 106),
    ("l7proto", "l7proto rules: a proxy parses the traffic", 111),
    ("dns", "dns rules: the DNS proxy answers", 121),
)


#: A port rule that is not proxied: reason, rank, the only protocol it is proxied for (None: all).
NO_PROXY: tuple[str, int, Protocol | None] = ("", 0, None)


def proxy_reason(item: Mapping[str, Any], context: CiliumContext) -> tuple[str, int, Protocol | None]:
    """
    Why the agent redirects what this port rule admits, the proxy's rank, and the only protocol concerned; empty L7 lists
    are plain L4 rules, but ``l7proto`` counts by itself (pkg/policy/l4.go createL4Filter).
    """
    listener, rules = as_map(item.get("listener")), as_map(item.get("rules"))
    if listener:
        wanted = listener.get("priority")
        return "an Envoy listener takes the traffic", wanted if isinstance(wanted, int) and wanted else 126, None
    active = active_rules(item, context.options)
    if context.options.version < (1, 20) and as_str(rules.get("l7proto")):
        active["l7proto"] = rules["l7proto"]
    for key, text, rank in _PARSERS:
        if key in active:
            return text, rank, None if key == "dns" else Protocol.TCP
    if as_list(item.get("serverNames")):
        return "serverNames: Envoy inspects the TLS handshake", 116, None
    if as_map(item.get("terminatingTLS")) or as_map(item.get("originatingTLS")):
        return "Envoy terminates TLS", 116, None
    return NO_PROXY
