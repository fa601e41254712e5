"""NetworkPolicy v1 corners: expected values from the API documentation (reference/policy.md §2)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from stallscope.model.traffic import Endpoint, Protocol, Verdict
from stallscope.policy.engine import PolicySet

HEAD = (
    "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: np, namespace: train}\n"
    "spec:\n  podSelector: {}\n"
)
Policies, Ask, Pod = Callable[..., PolicySet], Callable[..., Verdict], Callable[..., Endpoint]


@pytest.mark.parametrize(
    ("spec", "same", "elsewhere", "out"),
    [
        ("  ingress: []", "denied", "denied", "allowed"),
        ("  policyTypes: [Ingress]", "denied", "denied", "allowed"),
        ("  ingress: [{}]", "allowed", "allowed", "allowed"),
        ("  ingress: [{from: []}]", "allowed", "allowed", "allowed"),
        ("  ingress: [{from: [{podSelector: {}}]}]", "allowed", "denied", "allowed"),
        ("  ingress: [{from: [{namespaceSelector: {}}]}]", "allowed", "allowed", "allowed"),
        ("  ingress: [{from: [{namespaceSelector: {matchLabels: {team: web}}}]}]", "denied", "allowed", "allowed"),
        ("  egress: [{}]", "denied", "denied", "allowed"),
        ("  policyTypes: [Egress]", "allowed", "allowed", "denied"),
        ("  policyTypes: [Egress]\n  egress: [{to: [{podSelector: {}}]}]", "allowed", "allowed", "denied"),
    ],
)
def test_types_and_empty_lists(
    policies: Policies, ask: Ask, pod: Pod, spec: str, same: str, elsewhere: str, out: str
) -> None:
    policy_set = policies(HEAD + spec)
    assert ask(policy_set, pod("b"), pod("a")).ingress.outcome == same
    assert ask(policy_set, pod("other/o"), pod("a")).ingress.outcome == elsewhere
    assert ask(policy_set, pod("a"), pod("other/o")).egress.outcome == out


@pytest.mark.parametrize(
    ("ports", "allowed", "denied"),
    [
        ("[]", [("TCP", 1), ("UDP", 2), ("SCTP", 3)], []),
        ("[{port: 29500}]", [("TCP", 29500)], [("UDP", 29500), ("TCP", 29501)]),
        ("[{protocol: UDP}]", [("UDP", 1), ("UDP", 65535)], [("TCP", 1)]),
        ("[{port: 29400, endPort: 29410}]", [("TCP", 29400), ("TCP", 29410)], [("TCP", 29399), ("TCP", 29411)]),
        ("[{port: rdzv}]", [("TCP", 29400)], [("TCP", 29500), ("UDP", 29400)]),
        ("[{port: nobody}]", [], [("TCP", 29400)]),
        ("[{protocol: ICMP}]", [], [("TCP", 1)]),
    ],
)
def test_ports(
    policies: Policies, ask: Ask, pod: Pod, ports: str, allowed: list[tuple[str, int]], denied: list[tuple[str, int]]
) -> None:
    policy_set = policies(f"{HEAD}  ingress: [{{ports: {ports}}}]")
    target = pod("a", end={"named_ports": (("rdzv", Protocol.TCP, 29400),)})
    for expected, cases in (("allowed", allowed), ("denied", denied)):
        for protocol, port in cases:
            assert ask(policy_set, pod("b"), target, port, Protocol(protocol)).outcome == expected, (protocol, port)


def test_named_port_follows_each_destination(policies: Policies, ask: Ask, pod: Pod) -> None:
    policy_set = policies(HEAD + "  ingress: [{ports: [{port: rdzv}]}]")
    one = pod("one", end={"named_ports": (("rdzv", Protocol.TCP, 29400),)})
    two = pod("two", end={"named_ports": (("rdzv", Protocol.TCP, 29500),)})
    assert [ask(policy_set, pod("b"), t, 29400).outcome for t in (one, two)] == ["allowed", "denied"]


def test_selectors_in_one_item_are_both_needed_and_items_are_alternatives(policies: Policies, ask: Ask, pod: Pod) -> None:
    both = policies(
        HEAD + "  ingress: [{from: [{namespaceSelector: {matchLabels: {team: web}}, podSelector: {matchLabels: {app: x}}}]}]"
    )
    either = policies(
        HEAD
        + "  ingress: [{from: [{namespaceSelector: {matchLabels: {team: web}}}, {podSelector: {matchLabels: {app: x}}}]}]"
    )
    ends = [pod("other/p", app="x"), pod("other/q"), pod("p", app="x"), pod("q")]
    assert [ask(both, e, pod("a")).outcome for e in ends] == ["allowed", "denied", "denied", "denied"]
    assert [ask(either, e, pod("a")).outcome for e in ends] == ["allowed", "allowed", "allowed", "denied"]


def test_negative_expressions_match_absent_labels(policies: Policies, ask: Ask, pod: Pod) -> None:
    policy_set = policies(
        HEAD + "  ingress: [{from: [{podSelector: {matchExpressions: [{key: zone, operator: NotIn, values: [b]}]}}]}]"
    )
    assert [ask(policy_set, e, pod("a")).outcome for e in (pod("x", zone="a"), pod("y"), pod("z", zone="b"))] == [
        "allowed",
        "allowed",
        "denied",
    ]


def test_ip_block_matches_known_pod_addresses_and_is_unjudged_without_one(policies: Policies, ask: Ask, pod: Pod) -> None:
    policy_set = policies(HEAD + "  ingress: [{from: [{ipBlock: {cidr: 10.0.0.0/8, except: [10.1.0.0/16]}}]}]")
    inside, excepted = pod("i", end={"ip": "10.2.0.1"}), pod("e", end={"ip": "10.1.0.1"})
    assert [ask(policy_set, e, pod("a")).outcome for e in (inside, excepted)] == ["allowed", "denied"]
    unknown = ask(policy_set, pod("b"), pod("a"))
    assert unknown.outcome == "unjudged"
    assert "10.0.0.0/8" in unknown.reason


def test_the_whole_address_space_needs_no_address(policies: Policies, ask: Ask, pod: Pod) -> None:
    policy_set = policies(HEAD + "  ingress: [{from: [{ipBlock: {cidr: 0.0.0.0/0}}]}]")
    assert ask(policy_set, pod("b"), pod("a")).outcome == "allowed"


def test_policies_are_a_union(policies: Policies, ask: Ask, pod: Pod) -> None:
    second = HEAD.replace("name: np", "name: np2")
    policy_set = policies(f"{HEAD}  ingress: []\n---\n{second}  ingress: [{{ports: [{{port: 22}}]}}]")
    assert [ask(policy_set, pod("b"), pod("a"), p).outcome for p in (22, 29500)] == ["allowed", "denied"]


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ("  ingress: [{ports: [{port: http, endPort: 90}]}]", "endPort without a numeric port"),
        ("  ingress: [{ports: [{port: 90, endPort: 80}]}]", "endPort 80 below port 90"),
        ("  ingress: [{from: [{podSelector: {}, ipBlock: {cidr: 10.0.0.0/8}}]}]", "ipBlock together with a selector"),
        ("  ingress: [{from: [{ipBlock: {cidr: ten}}]}]", "not a CIDR"),
        ("  egress: [{to: [{ipBlock: {cidr: 10.0.0.0/8, except: [11.0.0.0/16]}}]}]", "not inside 10.0.0.0/8"),
    ],
)
def test_what_the_api_server_refuses_is_absent(policies: Policies, ask: Ask, pod: Pod, spec: str, reason: str) -> None:
    policy_set = policies(HEAD + spec)
    assert [reason in r.reason for r in policy_set.rejected] == [True]
    assert policy_set.rejected[0].location.span.line > 5
    assert ask(policy_set, pod("b"), pod("a")).outcome == "allowed"


def test_host_network_pods_are_left_open(policies: Policies, ask: Ask, pod: Pod) -> None:
    policy_set = policies(HEAD + "  ingress: [{from: [{podSelector: {}}]}]")
    host = pod("h", end={"host_network": True})
    assert ask(policy_set, host, pod("a")).outcome == "unjudged"
    assert ask(policy_set, pod("a"), host).outcome == "unjudged"
    assert ask(policies(HEAD + "  ingress: [{}]"), host, pod("a")).ingress.outcome == "allowed"


def test_unknown_namespace_labels_are_a_missing_fact(policies: Policies, ask: Ask, pod: Pod) -> None:
    text = HEAD + "  ingress: [{from: [{namespaceSelector: {matchLabels: {team: web}}}]}]"
    verdict = ask(policies(text, namespaces={}), pod("other/o"), pod("a"))
    assert verdict.outcome == "unjudged"
    assert "labels of namespace other" in verdict.reason
    by_name = text.replace("team: web", "kubernetes.io/metadata.name: other")
    assert ask(policies(by_name, namespaces={}), pod("other/o"), pod("a")).outcome == "allowed"


def test_a_namespace_object_makes_the_labels_known(policies: Policies, ask: Ask, pod: Pod) -> None:
    text = HEAD + "  ingress: [{from: [{namespaceSelector: {matchLabels: {team: web}}}]}]\n---\n"
    text += "apiVersion: v1\nkind: Namespace\nmetadata: {name: other, labels: {team: web}}\n"
    assert ask(policies(text, namespaces={}), pod("other/o"), pod("a")).outcome == "allowed"
