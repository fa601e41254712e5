"""
What the Cilium agent refuses although the API server took it: such an object is absent, and so is the isolation it meant.

The checks and their order are those of cilium/cilium pkg/policy/api/rule_validation.go (Rule.Validate) and
pkg/k8s/apis/cilium.io/v2/cnp_types.go (Parse), 1.19; reference/policy.md §1.3.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from ipaddress import ip_interface
from typing import Any

from stallscope.model.kube import KubeObject
from stallscope.model.source import Location, Route, as_list, as_map, as_str
from stallscope.policy.cilium_reject_l7 import fqdn_error
from stallscope.policy.cilium_reject_ports import l7_members, port_problems
from stallscope.policy.cilium_reject_selectors import selector_error
from stallscope.policy.go_netip import address_error, prefix_error, quoted
from stallscope.policy.options import CiliumOptions
from stallscope.policy.peers import ENTITIES, parse_network

NODES_FLAG = 'FromNodes/ToNodes rules can only be applied when the "enable-node-selector-labels" flag is set'

#: Problem = what the agent says, and where below the rule.
Problem = tuple[str, Route]

_INGRESS = ("fromEndpoints", "fromCIDR", "fromCIDRSet", "fromEntities", "fromNodes", "fromGroups")
_EGRESS = ("toCIDR", "toCIDRSet", "toEndpoints", "toEntities", "toServices", "toGroups", "toNodes", "toFQDNs")
_SECTIONS = ("ingress", "ingressDeny", "egress", "egressDeny")


def rejection(policy: KubeObject, options: CiliumOptions) -> tuple[str, Location] | None:
    """Why the agent drops this object (all its specs), and the place; None when it accepts it."""
    stated = _stated(policy)
    single, several = policy.get("spec"), as_list(policy.get("specs"))
    if not isinstance(single, Mapping) and not isinstance(policy.get("specs"), list):
        return f"Invalid {policy.kind} spec(s): empty policy", policy.at("metadata")
    rules: list[tuple[str, Route, Any]] = [("spec", ("spec",), single)] if isinstance(single, Mapping) else []
    rules += [("specs", ("specs", i), item) for i, item in enumerate(several)]
    for word, route, body in rules:
        for message, below in _rule(as_map(body), options):
            return f"Invalid {policy.kind} {word}: {message}", policy.at(*route, *below)
        if policy.kind == "CiliumNetworkPolicy" and isinstance(as_map(body).get("nodeSelector"), Mapping):
            return f"Invalid {policy.kind} spec: rule cannot have NodeSelector", policy.at(*route, "nodeSelector")
    return stated


def _stated(policy: KubeObject) -> tuple[str, Location] | None:
    """What a snapshot says the agent said: ``status.conditions[Valid]=False``."""
    for index, item in enumerate(as_list(policy.get("status", "conditions"))):
        condition = as_map(item)
        if condition.get("type") == "Valid" and condition.get("status") == "False":
            reason = as_str(condition.get("message")) or "status.conditions says the policy is not valid"
            return reason, policy.at("status", "conditions", index)
    return None


def _rule(rule: Mapping[str, Any], options: CiliumOptions) -> Iterator[Problem]:
    if not any(as_list(rule.get(s)) for s in _SECTIONS):
        yield "rule must have at least one of Ingress, IngressDeny, Egress, EgressDeny", ()
    pods, nodes = rule.get("endpointSelector"), rule.get("nodeSelector")
    host = isinstance(nodes, Mapping)
    if not isinstance(pods, Mapping) and not host:
        yield "rule must have one of EndpointSelector or NodeSelector", ()
    if isinstance(pods, Mapping) and host:
        yield "rule cannot have both EndpointSelector and NodeSelector", ("nodeSelector",)
    for name in ("endpointSelector", "nodeSelector"):
        if problem := selector_error(rule.get(name)):
            yield problem, (name,)
    for section in _SECTIONS:
        for index, item in enumerate(as_list(rule.get(section))):
            for message, below in _item(as_map(item), section, host, options):
                yield message, (section, index, *below)


def _item(item: Mapping[str, Any], section: str, host: bool, options: CiliumOptions) -> Iterator[Problem]:
    ingress, deny = section.startswith("ingress"), section.endswith("Deny")
    fields = _INGRESS if ingress else _EGRESS[:-1] if deny else _EGRESS
    present = [f for f in fields if as_list(item.get(f))]
    if len(present) > 1:
        yield f"combining {_go(present[0])} and {_go(present[1])} is not supported yet", (present[1],)
    yield from _peers(item, "from" if ingress else "to", options)
    if not deny:
        yield from _layer7(item, ingress, host, options)
    if as_list(item.get("icmps")):
        if not options.icmp_rules:
            yield 'ICMP rules can only be applied when the "enable-icmp-rules" flag is set', ("icmps",)
        if as_list(item.get("toPorts")):
            yield "the ICMPs block may only be present without ToPorts. Define a separate rule to use ToPorts", ("icmps",)
    for index, rule in enumerate(as_list(item.get("toPorts"))):
        for message, below in port_problems(as_map(rule), ingress=ingress, deny=deny, options=options):
            yield message, ("toPorts", index, *below)
    for index, rule in enumerate(as_list(item.get("icmps"))):
        for message, below in _icmp(as_map(rule)):
            yield message, ("icmps", index, *below)
    for index, name in enumerate(as_list(item.get("toFQDNs"))):
        if problem := fqdn_error(as_map(name)):
            yield problem, ("toFQDNs", index)


def _go(field: str) -> str:
    return field[0].upper() + field[1:]


def _peers(item: Mapping[str, Any], prefix: str, options: CiliumOptions) -> Iterator[Problem]:
    nodes_off = bool(as_list(item.get(prefix + "Nodes"))) and not options.node_selectors
    requires = prefix + "Requires"
    if as_list(item.get(requires)) and options.version >= (1, 19):
        yield f"{requires} was removed in Cilium 1.19: the API server refuses it", (requires,)
    for message, route in _peer_values(item, prefix, options):
        yield message + (f"\n{NODES_FLAG}" if nodes_off else ""), route
    if nodes_off:
        yield NODES_FLAG, (prefix + "Nodes",)


def _peer_values(item: Mapping[str, Any], prefix: str, options: CiliumOptions) -> Iterator[Problem]:
    for field in (prefix + "Endpoints", prefix + "Nodes"):
        for index, value in enumerate(as_list(item.get(field))):
            if problem := selector_error(value):
                yield problem, (field, index)
    for index, value in enumerate(as_list(item.get(prefix + "CIDR"))):
        if not as_str(value):
            yield "IP must be specified", (prefix + "CIDR", index)
        elif parse_network(value, bare_address=True) is None:
            yield f"unable to parse CIDR: {address_error(as_str(value))}", (prefix + "CIDR", index)
    for index, value in enumerate(as_list(item.get(prefix + "CIDRSet"))):
        if problem := _cidr_rule(as_map(value), options):
            yield problem, (prefix + "CIDRSet", index)
    for index, value in enumerate(as_list(item.get(prefix + "Entities"))):
        if as_str(value) not in ENTITIES:
            yield f"unsupported entity: {value}", (prefix + "Entities", index)


def _cidr_rule(rule: Mapping[str, Any], options: CiliumOptions) -> str:
    cidr, group = as_str(rule.get("cidr")), as_str(rule.get("cidrGroupRef"))
    selector = rule.get("cidrGroupSelector")
    count = bool(cidr) + bool(group) + isinstance(selector, Mapping)
    if isinstance(selector, Mapping) and (problem := selector_error(selector)):
        return f"failed to sanitize cidrGroupSelector: {problem}"
    if count == 0:
        return "one of cidr, cidrGroupRef, or cidrGroupSelector is required"
    if count > 1:
        return "more than one of cidr, cidrGroupRef, or cidrGroupSelector may not be set"
    if not cidr:
        return ""
    network = parse_network(cidr)
    if network is None:
        return f"unable to parse CIDRRule {quoted(cidr)}: {prefix_error(cidr)}"
    for item in map(as_str, as_list(rule.get("except"))):
        inner = parse_network(item)
        if inner is None:
            return prefix_error(item)
        wider = inner.prefixlen < network.prefixlen and options.version >= (1, 20)
        if inner.version != network.version or wider or ip_interface(item).ip not in network:
            return f"allow CIDR prefix {cidr} does not contain exclude CIDR prefix {item}"
    return ""


def _layer7(item: Mapping[str, Any], ingress: bool, host: bool, options: CiliumOptions) -> Iterator[Problem]:
    members = l7_members(item, options)
    if members is None:
        return
    if host and ingress:
        yield "L7 policy is not supported on host ingress yet", ("toPorts",)
    if not options.l7_proxy:
        yield "L7 policy is not supported since L7 proxy is not enabled", ("toPorts",)
    refused = ("DNS",) if ingress else ("Kafka", "HTTP") if host else ()
    where = "ingress" if ingress else "host egress"
    for name in refused:
        if name in members:
            yield f"L7 protocol {name} is not supported on {where} yet", ("toPorts",)


def _icmp(rule: Mapping[str, Any]) -> Iterator[Problem]:
    fields = as_list(rule.get("fields"))
    if len(fields) > 40:
        yield "too many types, the max is 40", ("fields",)
    for index, field in enumerate(map(as_map, fields)):
        family = as_str(field.get("family"))
        if family not in ("", "IPv4", "IPv6"):
            yield f"wrong family: {family}", ("fields", index)
