"""Refusals about ports and L7 rules: PortRule.Validate and PortProtocol.Validate of the agent."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from stallscope.model.source import Route, as_list, as_map, as_str
from stallscope.policy.cilium_reject_l7 import rule_problems
from stallscope.policy.go_netip import quoted
from stallscope.policy.options import CiliumOptions

MAX_PORTS = 40
PORTLESS = frozenset({"VRRP", "IGMP"})
TUNNELS = frozenset({"GRE", "IPIP", "IPV6", "ESP", "AH"})  # from 1.20
PROTOCOLS = frozenset({"TCP", "UDP", "SCTP", "ICMP", "ICMPV6", "ANY"}) | PORTLESS

#: An IANA service name: 1 to 15 letters, digits and single hyphens, at least one letter (pkg/iana/svcname.go).
_SERVICE_NAME = re.compile(r"(?=.{1,15}\Z)(?=.*[A-Za-z])[A-Za-z0-9](?:-?[A-Za-z0-9])*\Z")


def is_service_name(text: str) -> bool:
    """Whether the agent reads this port as a name; also hexadecimal numbers are names."""
    return _SERVICE_NAME.match(text) is not None


def port_number(text: str) -> int | None:
    """A numeric port as strconv.ParseUint(text, 0, 16) reads it: a leading zero means octal."""
    return None if _number_error(text) else int(text, _base(text))


def _base(text: str) -> int:
    return 8 if len(text) > 1 and text[0] == "0" else 10


def _number_error(text: str) -> str:
    """Go goes from left to right: too large a number is named before a later character that is no digit."""
    base, value = _base(text), 0
    for char in text:
        if char not in "01234567" and (base == 8 or char not in "89"):
            return "invalid syntax"
        value = value * base + int(char)
        if value > 65535:
            return "value out of range"
    return "" if text else "invalid syntax"


def port_text(value: Any) -> str:
    """The written port as text; YAML numbers are accepted although the API wants text."""
    return str(value) if isinstance(value, int | str) and not isinstance(value, bool) else ""


def active_rules(rule: Mapping[str, Any], options: CiliumOptions) -> dict[str, Any]:
    """The L7 lists of a port rule that this release knows, without empty ones (L7Rules.IsEmpty; a bare l7proto is none)."""
    rules = as_map(rule.get("rules"))
    names = ("http", "dns") if options.version >= (1, 20) else ("http", "kafka", "dns", "l7")
    return {n: as_list(rules.get(n)) for n in names if as_list(rules.get(n))}


def l7_members(item: Mapping[str, Any], options: CiliumOptions) -> frozenset[str] | None:
    """The L7 protocols a rule item uses, by the agent's names; None without any L7 rule."""
    names = {"http": "HTTP", "dns": "DNS", "kafka": "Kafka", "l7": "L7"}
    found = [active_rules(as_map(p), options) for p in as_list(item.get("toPorts"))]
    if not any(found):
        return None
    return frozenset(names[n] for rules in found for n in rules)


def port_problems(
    rule: Mapping[str, Any], *, ingress: bool, deny: bool, options: CiliumOptions
) -> Iterator[tuple[str, Route]]:
    """What is wrong with one ``toPorts`` item, in the agent's order."""
    rules = {} if deny else active_rules(rule, options)
    if not deny:
        if ingress and "dns" in rules:
            yield "DNS rules are not allowed on ingress", ("rules", "dns")
        names = as_list(rule.get("serverNames"))
        if names and rules and not as_map(rule.get("terminatingTLS")):
            yield "ServerNames are not allowed with L7 rules without TLS termination", ("serverNames",)
        if "" in names:
            yield "empty server name is not allowed", ("serverNames",)
    ports = as_list(rule.get("ports"))
    if len(ports) > MAX_PORTS:
        yield f"too many ports, the max is {MAX_PORTS}", ("ports",)
    zero = False
    for index, port in enumerate(map(as_map, ports)):
        for problem in _port(port, "dns" in rules, options):
            yield problem, ("ports", index)
        zero = zero or port_number(port_text(port.get("port"))) == 0
        protocol = as_str(port.get("protocol"))
        if options.version < (1, 20):  # from 1.20 the check comes before the spelling is put right
            protocol = protocol.upper() or "ANY"
        if rules and "dns" not in rules and protocol != "TCP":
            yield f"L7 rules can only apply to TCP (not {protocol}) except for DNS rules", ("ports", index)
    if not deny:
        yield from _proxies(rule, rules, ingress, zero, options)


def _proxies(
    rule: Mapping[str, Any], rules: Mapping[str, Any], ingress: bool, zero: bool, options: CiliumOptions
) -> Iterator[tuple[str, Route]]:
    listener = as_map(rule.get("listener"))
    if listener and ingress:
        yield f"Listener is not allowed on ingress ({listener.get('name', '')})", ("listener",)
    if listener and rules:
        yield f"Listener is not allowed with L7 rules ({listener.get('name', '')})", ("listener",)
    if not rules:
        return
    if zero:
        yield "L7 rules can not be used when a port is 0", ("ports",)
    if "dns" in rules and not as_list(rule.get("ports")):
        yield "port 53 must be specified for DNS rules", ("rules", "dns")
    given = as_map(rule.get("rules"))
    yield from rule_problems(rules)
    if options.version >= (1, 20):
        if isinstance(given.get("http"), list) and isinstance(given.get("dns"), list):
            yield "multiple L7 protocol rule types specified in single rule", ("rules",)
        return
    if isinstance(given.get("l7"), list) and not as_str(given.get("l7proto")):
        yield "'l7' may only be specified when a 'l7proto' is also specified", ("rules", "l7")
    if sum(isinstance(given.get(n), list) for n in ("http", "kafka", "dns")) + bool(as_str(given.get("l7proto"))) > 1:
        yield "multiple L7 protocol rule types specified in single rule", ("rules",)


def _port(port: Mapping[str, Any], dns: bool, options: CiliumOptions) -> Iterator[str]:
    text = port_text(port.get("port"))
    protocol = as_str(port.get("protocol")).upper() or "ANY"
    if not text:
        if not options.extended_protocols:
            yield "port must be specified"
    elif not is_service_name(text):
        if text != "0" and protocol in (PORTLESS | TUNNELS if options.version >= (1, 20) else PORTLESS):
            yield "port must be empty or 0"
        if reason := _number_error(text):
            yield f"unable to parse port: strconv.ParseUint: parsing {quoted(text)}: {reason}"
        number = port_number(text)
        end = port.get("endPort")
        if dns and isinstance(end, int) and number is not None and end > number:
            yield "DNS rules do not support port ranges"
    if protocol not in PROTOCOLS and not (protocol in TUNNELS and options.version >= (1, 20)):
        yield f'invalid protocol "{protocol}", must be {{ tcp | udp | sctp | icmp | icmpv6 | any }}'
