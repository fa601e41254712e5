"""
Calico NetworkPolicy and GlobalNetworkPolicy, projectcalico.org/v3 (and crd.projectcalico.org/v1), and its tiers.

A tier's policies apply in ``order`` (absent = last, then by name), their rules in sequence; the first that matches decides
(Log does not). When a tier has a policy for the endpoint and nothing decided, the tier's default action applies: Deny, or
Pass. NetworkPolicy v1 objects are policies of order 1000 in tier "default". Source: docs.tigera.io/calico 3.32
(NetworkPolicy, GlobalNetworkPolicy, Tier); reference/policy.md §4. Not run against a real Calico.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from stallscope.model.kube import KubeObject
from stallscope.model.source import Location, as_list, as_map, as_str
from stallscope.model.traffic import Direction, Protocol, RuleRef
from stallscope.policy.calico_peers import CalicoEntity, entity, subject_of
from stallscope.policy.calico_selectors import SelectorSyntaxError
from stallscope.policy.ir import Action, Block, Clause, Match, Peer, Tier
from stallscope.policy.kinds import CALICO_GROUPS, is_calico
from stallscope.policy.peers import FactPeer
from stallscope.policy.portset import LAST_PORT, PortItem, complement
from stallscope.policy.view import View

NETPOL_ORDER = 1000.0
DEFAULT_TIER = "default"

#: Orders of the tiers Calico makes itself (3.29: adminnetworkpolicy…; 3.32: kube-admin, kube-baseline).
_OWN_TIERS = {"adminnetworkpolicy": 1_000.0, "kube-admin": 1_000.0, DEFAULT_TIER: 1_000_000.0}
_BASELINE = 10_000_000.0

_ACTIONS = {"Allow": Action.ALLOW, "Deny": Action.DENY, "Pass": Action.PASS}


@dataclass(frozen=True, slots=True, kw_only=True)
class CalicoTiers:
    """Tiers in order; `index` of each name; `admin` and `baseline` hold the Kubernetes cluster policies."""

    tiers: tuple[Tier, ...]
    index: Mapping[str, int]
    passing: frozenset[str]
    admin: int
    baseline: int


def calico_tiers(objects: Iterable[KubeObject]) -> CalicoTiers:
    """The tiers of a cluster: its own and those given. A policy naming a tier that is not given gets one before default."""
    orders = {"kube-admin": _OWN_TIERS["kube-admin"], DEFAULT_TIER: _OWN_TIERS[DEFAULT_TIER], "kube-baseline": _BASELINE}
    passing = {"kube-admin", "kube-baseline"}
    for item in objects:
        if item.kind == "Tier" and item.group in CALICO_GROUPS:
            orders[item.name] = _number(item.get("spec", "order"), orders.get(item.name, float("inf")))
            if item.get("spec", "defaultAction") == "Pass":
                passing.add(item.name)
        elif is_calico(item):
            orders.setdefault(tier_of(item), _OWN_TIERS[DEFAULT_TIER] - 1)
    names = sorted(orders, key=lambda n: (orders[n], n))
    index = {n: i for i, n in enumerate(names)}
    tiers = tuple(Tier(n, closed=True) for n in names)
    return CalicoTiers(
        tiers=tiers, index=index, passing=frozenset(passing), admin=index["kube-admin"], baseline=index["kube-baseline"]
    )


def tier_of(policy: KubeObject) -> str:
    return as_str(policy.get("spec", "tier")) or DEFAULT_TIER


def compile_calico(
    policy: KubeObject, tiers: CalicoTiers, sets: Iterable[KubeObject]
) -> tuple[list[Block], tuple[str, Location] | None]:
    """The blocks of one policy, or why Calico's API refuses it, and where."""
    spec = as_map(policy.get("spec"))
    namespace = policy.namespace if policy.kind == "NetworkPolicy" else ""
    if spec.get("preDNAT") is True or spec.get("doNotTrack") is True:
        return [], None  # host endpoints only, never pods
    try:
        return list(_blocks(policy, spec, namespace, tiers, tuple(sets))), None
    except SelectorSyntaxError as problem:
        return [], (f"invalid selector: {problem}", policy.at("spec"))


def _blocks(
    policy: KubeObject, spec: Mapping[str, Any], namespace: str, tiers: CalicoTiers, sets: tuple[KubeObject, ...]
) -> Iterator[Block]:
    subject, tier = subject_of(spec, namespace), tier_of(policy)
    for direction in directions(spec):
        yield Block(
            policy=policy,
            ref=RuleRef(policy=policy.ref, section=direction.value, location=policy.at("spec", "selector")),
            direction=direction,
            subject=subject,
            tier=tiers.index[tier],
            isolates=tier not in tiers.passing,
            clauses=tuple(_clauses(policy, spec, direction, namespace, sets)),
        )


def directions(spec: Mapping[str, Any]) -> tuple[Direction, ...]:
    """``types``, else inferred: Ingress unless only egress rules are present, Egress when there are egress rules."""
    named = [t for t in as_list(spec.get("types")) if isinstance(t, str)]
    if named:
        return tuple(d for d in Direction if d.value.capitalize() in named)
    egress, ingress = bool(as_list(spec.get("egress"))), bool(as_list(spec.get("ingress")))
    return tuple(d for d in Direction if (egress if d is Direction.EGRESS else ingress or not egress))


def _clauses(
    policy: KubeObject, spec: Mapping[str, Any], direction: Direction, namespace: str, sets: tuple[KubeObject, ...]
) -> Iterator[Clause]:
    place = _number(spec.get("order"), float("inf"))
    for index, item in enumerate(as_list(spec.get(direction.value))):
        rule = as_map(item)
        action = _ACTIONS.get(as_str(rule.get("action")))
        if action is None:
            continue  # Log goes on to the next rule
        source, destination = as_map(rule.get("source")), as_map(rule.get("destination"))
        far, near = (source, destination) if direction is Direction.INGRESS else (destination, source)
        peer, own = entity(far, namespace, sets), entity(near, namespace, sets)
        facts = [f for f in (_own_fact(own), _source_ports(source), _application(rule)) if f]
        peers: tuple[Peer, ...] | None = (peer,) if peer is not None else None
        if facts:
            peers = (Both(peer, FactPeer(facts[0], pods=True)),)
        yield Clause(
            ref=RuleRef(
                policy=policy.ref, section=direction.value, index=index, location=policy.at("spec", direction.value, index)
            ),
            action=action,
            peers=peers,
            ports=_ports(rule, destination),
            order=(place, policy.name, policy.namespace, float(index)),
        )


@dataclass(frozen=True, slots=True)
class Both:
    """A peer (None: anybody) and a fact that must also hold."""

    peer: CalicoEntity | None
    fact: FactPeer

    @property
    def keys(self) -> frozenset[str]:
        return frozenset() if self.peer is None else self.peer.keys

    def match(self, view: View) -> Match:
        first = True if self.peer is None else self.peer.match(view)
        return first if first is False else self.fact.fact

    def distance(self, view: View) -> int:
        return 0 if self.peer is None else self.peer.distance(view)

    def why_not(self, view: View) -> str:
        return self.fact.fact if self.peer is None else self.peer.why_not(view)


def _own_fact(own: CalicoEntity | None) -> str:
    return "" if own is None else "whether the rule's selector of its own end matches"


def _source_ports(source: Mapping[str, Any]) -> str:
    return "source ports" if as_list(source.get("ports")) or as_list(source.get("notPorts")) else ""


def _application(rule: Mapping[str, Any]) -> str:
    return "HTTP matches need Calico's application layer policy" if as_map(rule.get("http")) else ""


def _number(value: Any, default: float) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else default


_NUMBERS = {6: Protocol.TCP, 17: Protocol.UDP, 132: Protocol.SCTP, 1: Protocol.ICMP}


def _protocols(rule: Mapping[str, Any]) -> tuple[Protocol, ...] | None:
    """None: every protocol; empty: only protocols we do not model."""
    if rule.get("protocol") is not None:
        found = _protocol(rule["protocol"])
        return (found,) if found else ()
    if rule.get("notProtocol") is not None:
        refused = _protocol(rule["notProtocol"])
        return tuple(p for p in Protocol if p is not refused)
    return None


def _protocol(value: Any) -> Protocol | None:
    if isinstance(value, int):
        return _NUMBERS.get(value)
    return next((p for p in Protocol if p.value == str(value).upper()), None)


def _ports(rule: Mapping[str, Any], destination: Mapping[str, Any]) -> tuple[PortItem, ...] | None:
    """Protocol and destination ports; ``notPorts`` are the complement of the range."""
    protocols = _protocols(rule)
    listed, refused = as_list(destination.get("ports")), as_list(destination.get("notPorts"))
    icmp = as_map(rule.get("icmp")).get("type")
    if protocols is None and not listed and not refused:
        return None
    each = protocols if protocols is not None else tuple(Protocol)
    if not listed and not refused:
        exact = isinstance(icmp, int) and not isinstance(icmp, bool)
        return tuple(PortItem(p, *((icmp, icmp) if exact and p is Protocol.ICMP else (0, LAST_PORT))) for p in each)
    found = [i for p in each for x in listed if (i := _port(p, x)) is not None]
    if refused:
        spans = [(i.first, i.last) for x in refused if (i := _port(Protocol.TCP, x)) is not None and not i.name]
        found += [PortItem(p, a, b) for p in each for a, b in complement(spans)]
    return tuple(found)


def _port(protocol: Protocol, value: Any) -> PortItem | None:
    """A number, a range ``"1000:2000"``, or a name."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        return None
    first, colon, last = str(value).partition(":")
    if first.isdigit() and (last.isdigit() or not colon):
        return PortItem(protocol, int(first), int(last) if colon else int(first))
    return PortItem(protocol, name=str(value))
