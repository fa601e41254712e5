"""
ClusterNetworkPolicy as cilium/cilium reads it (1.20 development tree): pkg/k8s/cluster_network_policy.go
(ParseClusterNetworkPolicy and the kcnpParse functions), pkg/policy/mapstate.go (insertWithPasses).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from stallscope.model.traffic import Endpoint, Protocol, Verdict
from stallscope.policy.engine import PolicySet

Policies, Ask, Pod = Callable[..., PolicySet], Callable[..., Verdict], Callable[..., Endpoint]

ON = {"enable-k8s-cluster-network-policy": "true", "allow-localhost": "policy"}
ML = "{namespaces: {matchLabels: {team: ml}}}"
NETPOL = (
    "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: np, namespace: train}\n"
    "spec: {podSelector: {}, ingress: [{from: [{podSelector: {matchLabels: {app: ok}}}]}]}\n---\n"
)
ANY, OK, WEB = (
    "{namespaces: {}}",
    "{pods: {podSelector: {matchLabels: {app: ok}}}}",
    "{namespaces: {matchLabels: {team: web}}}",
)


def kcnp(
    rules: str, name: str = "k1", priority: int = 10, tier: str = "Admin", way: str = "ingress", subject: str = ML
) -> str:
    return (
        f"apiVersion: policy.networking.k8s.io/v1alpha2\nkind: ClusterNetworkPolicy\nmetadata: {{name: {name}}}\n"
        f"spec: {{tier: {tier}, priority: {priority}, subject: {subject}, {way}: [{rules}]}}\n---\n"
    )


@pytest.fixture
def cilium(policies: Policies) -> Policies:
    def build(text: str, **flags: str) -> PolicySet:
        return policies(text, "cilium", version=(1, 20, 0), options={**ON, **flags})

    return build


@pytest.mark.parametrize(
    ("first", "second", "outcome"),
    [
        ("Accept", "Deny", "denied"),  # a tie: deny before allow before pass
        ("Accept", "Pass", "allowed"),
        ("Pass", "Deny", "denied"),
    ],
)
def test_ties(cilium: Policies, ask: Ask, pod: Pod, first: str, second: str, outcome: str) -> None:
    """Entries of one priority: deny has precedence over allow, allow over pass (types/entry.go Verdict order)."""
    one, two = (f"{{action: {a}, from: [{ANY}]}}" for a in (first, second))
    for names in (("k1", "k2"), ("k2", "k1")):
        policy_set = cilium(NETPOL + kcnp(one, names[0]) + kcnp(two, names[1]))
        assert ask(policy_set, pod("b"), pod("a")).outcome == outcome


def test_rules_of_equal_priority_interleave_by_their_index(cilium: Policies, ask: Ask, pod: Pod) -> None:
    """``priority := basePriority + float64(i)/100``: the second rule of one policy comes after the first of another."""
    one = kcnp(f"{{action: Accept, from: [{OK}]}}, {{action: Deny, from: [{ANY}]}}", "k1")
    two = kcnp(f"{{action: Accept, from: [{WEB}]}}", "k2")
    policy_set = cilium(one + two)
    ends = (pod("b", app="ok"), pod("other/b"), pod("c"))
    assert [ask(policy_set, e, pod("a")).outcome for e in ends] == ["allowed", "allowed", "denied"]


@pytest.mark.parametrize(
    ("admin", "baseline", "ok", "other"),
    [
        ("", "Deny", "allowed", "denied"),
        ("Pass", "Accept", "allowed", "allowed"),  # isolation stands below the baseline here, unlike in the API (vector K7)
        ("Accept", "Deny", "allowed", "allowed"),
        ("Deny", "Accept", "denied", "denied"),
    ],
)
def test_tiers_around_networkpolicy(
    cilium: Policies, ask: Ask, pod: Pod, admin: str, baseline: str, ok: str, other: str
) -> None:
    text = NETPOL + kcnp(f"{{action: {baseline}, from: [{ANY}]}}", "low", tier="Baseline")
    if admin:
        text += kcnp(f"{{action: {admin}, from: [{ANY}]}}", "high")
    policy_set = cilium(text)
    assert [ask(policy_set, e, pod("a")).outcome for e in (pod("b", app="ok"), pod("c"))] == [ok, other]


def test_it_never_isolates(cilium: Policies, ask: Ask, pod: Pod) -> None:
    """``r.DefaultDeny = false``."""
    policy_set = cilium(kcnp(f"{{action: Accept, from: [{WEB}]}}"))
    assert ask(policy_set, pod("b"), pod("a")).outcome == "allowed"


@pytest.mark.parametrize(
    ("peer", "pods", "node"),
    [
        ("", True, True),  # no from: everybody, nodes too
        (f"from: [{ANY}]", True, False),
        ("from: [{pods: {podSelector: {}, namespaceSelector: {}}}]", True, False),
        ("from: [{pods: {podSelector: {matchLabels: {app: x}}}}]", False, False),
        ("from: [{nodes: {}}]", True, True),  # not an ingress peer: fails closed, denies everybody
        ("from: [{}]", True, True),
    ],
)
def test_who_a_denial_meets(cilium: Policies, ask: Ask, pod: Pod, peer: str, pods: bool, node: bool) -> None:
    rule = f"{{action: Deny{', ' if peer else ''}{peer}}}"
    policy_set = cilium(kcnp(rule))
    ends = (pod("b"), Endpoint(name="r", reserved=("remote-node",)))
    assert [ask(policy_set, e, pod("a")).outcome == "denied" for e in ends] == [pods, node]


@pytest.mark.parametrize(("action", "outcome"), [("Accept", "denied"), ("Deny", "denied"), ("Pass", "denied")])
def test_unknown_peers_fail_closed(cilium: Policies, ask: Ask, pod: Pod, action: str, outcome: str) -> None:
    """Accept of an unknown peer matches nothing (the network policy then denies), the others deny all."""
    policy_set = cilium(NETPOL + kcnp(f"{{action: {action}, from: [{{}}]}}"))
    assert ask(policy_set, pod("c"), pod("a")).outcome == outcome
    accepted = ask(policy_set, pod("b", app="ok"), pod("a")).outcome
    assert accepted == ("allowed" if action == "Accept" else "denied")


@pytest.mark.parametrize(
    ("protocols", "denied"),
    [
        ("[{tcp: {}}]", {(Protocol.TCP, 80), (Protocol.TCP, 81)}),
        ("[{tcp: {destinationPort: {number: 80}}}]", {(Protocol.TCP, 80)}),
        ("[{udp: {destinationPort: {range: {start: 80, end: 81}}}}]", {(Protocol.UDP, 80), (Protocol.UDP, 81)}),
        (
            "[{sctp: {destinationPort: {number: 80}}}, {tcp: {destinationPort: {number: 81}}}]",
            {(Protocol.SCTP, 80), (Protocol.TCP, 81)},
        ),
        ("[{destinationNamedPort: web}]", {(Protocol.TCP, 80), (Protocol.UDP, 81)}),
        ("[{destinationNamedPort: nope}]", set()),
        ("[]", {(p, n) for p in (Protocol.TCP, Protocol.UDP, Protocol.SCTP) for n in (80, 81)}),
    ],
)
def test_protocols(cilium: Policies, ask: Ask, pod: Pod, protocols: str, denied: set[Any]) -> None:
    """kcnpParseProtocols: a named port is of any protocol."""
    policy_set = cilium(kcnp(f"{{action: Deny, from: [{ANY}], protocols: {protocols}}}"))
    end = pod("a", end={"named_ports": (("web", Protocol.TCP, 80), ("web", Protocol.UDP, 81))})
    asked = [(p, n) for p in (Protocol.TCP, Protocol.UDP, Protocol.SCTP) for n in (80, 81)]
    assert {(p, n) for p, n in asked if ask(policy_set, pod("b"), end, n, p).outcome == "denied"} == denied


def test_networks_and_nodes_on_egress(cilium: Policies, ask: Ask, pod: Pod) -> None:
    """kcnpParseCIDRSelectors: addresses outside, never pods; kcnpProcessNodeSelector: remote nodes by their labels."""
    away = cilium(kcnp('{action: Deny, to: [{networks: ["0.0.0.0/0"]}]}', way="egress"))
    outside, gpu = (
        Endpoint(name="x", ip="8.8.8.8"),
        Endpoint(name="g", reserved=("remote-node",), node_labels=(("p", "gpu"),)),
    )
    assert [ask(away, pod("a"), e).outcome for e in (outside, pod("b"), gpu)] == ["denied", "allowed", "allowed"]
    text = kcnp("{action: Deny, to: [{nodes: {matchLabels: {p: gpu}}}]}", way="egress")
    nodes = cilium(text, **{"enable-node-selector-labels": "true"})
    assert [ask(nodes, pod("a"), e).outcome for e in (outside, pod("b"), gpu)] == ["allowed", "allowed", "denied"]
    assert cilium(text).rejected[0].reason == "egress.to.nodes is not supported since node selector labels are disabled"


@pytest.mark.parametrize(
    ("domain", "name", "matches"),
    [
        ("a.example.org", "a.example.org", True),
        ("*.example.org", "a.example.org", True),
        ("*.example.org", "a.b.example.org", True),  # recursive here, as the API says
        ("*.example.org", "example.org", False),
    ],
)
def test_domain_names(cilium: Policies, ask: Ask, pod: Pod, domain: str, name: str, matches: bool) -> None:
    """kcnpParseFQDNSelectors doubles a leading ``*``; only Accept, only with the L7 proxy."""
    deny = kcnp("{action: Deny}", "k2", priority=20, way="egress")
    rule = f'{{action: %s, to: [{{domainNames: ["{domain}"]}}]}}'
    policy_set = cilium(kcnp(rule % "Accept", way="egress") + deny, **{"fqdn-cache": f"{name}=8.8.8.8"})
    assert (ask(policy_set, pod("a"), Endpoint(name="x", ip="8.8.8.8")).outcome == "allowed") is matches
    resolver = pod("kube-system/dns", end={"named_ports": (("dns", Protocol.UDP, 53),)}, **{"k8s-app": "kube-dns"})
    assert ask(policy_set, pod("a"), resolver, 53, Protocol.UDP).outcome == "proxied", "implied by the domain name"
    assert ask(policy_set, pod("a"), resolver, 54, Protocol.UDP).outcome == "denied"
    [refused] = cilium(kcnp(rule % "Deny", way="egress")).rejected
    assert refused.reason == "egress.to.domainNames is only supported for egress.action=Accept"
    [without] = cilium(kcnp(rule % "Accept", way="egress"), **{"enable-l7-proxy": "false"}).rejected
    assert without.reason == "egress.to.domainNames is not supported since L7 proxy is disabled"


def test_it_needs_its_flag(policies: Policies, ask: Ask, pod: Pod) -> None:
    text = kcnp("{action: Deny}")
    off = policies(text, "cilium", version=(1, 20, 0))
    assert ask(off, pod("b"), pod("a")).outcome == "allowed"
    assert off.ignored or not off.policies
