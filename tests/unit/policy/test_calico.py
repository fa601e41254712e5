"""Calico order, tiers, actions and peers: docs.tigera.io/calico 3.32, reference/policy.md §4."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from stallscope.model.traffic import Endpoint, Protocol, Verdict
from stallscope.policy.engine import PolicySet

Policies, Ask, Pod = Callable[..., PolicySet], Callable[..., Verdict], Callable[..., Endpoint]


def np(name: str, spec: str, kind: str = "NetworkPolicy") -> str:
    where = f"{{name: {name}, namespace: train}}" if kind == "NetworkPolicy" else f"{{name: {name}}}"
    return f"apiVersion: projectcalico.org/v3\nkind: {kind}\nmetadata: {where}\nspec: {{{spec}}}\n---\n"


def tier(name: str, order: int, action: str = "Deny") -> str:
    head = f"apiVersion: projectcalico.org/v3\nkind: Tier\nmetadata: {{name: {name}}}\n"
    return f"{head}spec: {{order: {order}, defaultAction: {action}}}\n---\n"


ALLOW, DENY, PASS = "ingress: [{action: Allow}]", "ingress: [{action: Deny}]", "ingress: [{action: Pass}]"
NETPOL = (
    "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: k, namespace: train}\n"
    "spec: {podSelector: {}, ingress: [{from: [{podSelector: {matchLabels: {app: ok}}}]}]}\n---\n"
)


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("", "allowed"),
        (np("a", ALLOW), "allowed"),
        (np("a", DENY), "denied"),
        (np("a", "types: [Ingress]"), "denied"),
        (np("a", "types: [Egress]"), "allowed"),
        (np("a", "egress: [{action: Deny}]"), "allowed"),
        (np("b", f"order: 10, {ALLOW}") + np("a", f"order: 20, {DENY}"), "allowed"),
        (np("b", f"order: 20, {ALLOW}") + np("a", f"order: 10, {DENY}"), "denied"),
        (np("b", ALLOW) + np("a", f"order: 10, {DENY}"), "denied"),
        (np("a", DENY) + np("b", ALLOW), "denied"),
        (np("a", "ingress: [{action: Log}, {action: Allow}]"), "allowed"),
        (np("a", "ingress: [{action: Allow, protocol: UDP}, {action: Deny}]"), "denied"),
        (np("a", PASS), "allowed"),
        (np("a", f"order: 1, {PASS}") + np("b", f"order: 2, {DENY}"), "allowed"),
        (np("a", f"selector: \"app == 'x'\", {DENY}"), "allowed"),
        (np("a", f"selector: all(), {DENY}", "GlobalNetworkPolicy"), "denied"),
        (np("a", f"namespaceSelector: \"team == 'web'\", {DENY}", "GlobalNetworkPolicy"), "allowed"),
        (np("a", f"namespaceSelector: \"team == 'ml'\", {DENY}", "GlobalNetworkPolicy"), "denied"),
        (np("a", f"preDNAT: true, applyOnForward: true, {DENY}", "GlobalNetworkPolicy"), "allowed"),
    ],
)
def test_first_match_decides_and_a_tier_denies_what_it_selected(
    policies: Policies, ask: Ask, pod: Pod, text: str, outcome: str
) -> None:
    assert ask(policies(text, "calico"), pod("b"), pod("a")).ingress.outcome == outcome


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        (tier("sec", 10) + np("a", f"tier: sec, {PASS}"), "allowed"),
        (tier("sec", 10) + np("a", f"tier: sec, {PASS}") + np("d", DENY), "denied"),
        (tier("sec", 10) + np("a", f"tier: sec, {ALLOW}") + np("d", DENY), "allowed"),
        (tier("sec", 10) + np("a", "tier: sec, ingress: [{action: Allow, protocol: UDP}]"), "denied"),
        (tier("sec", 10, "Pass") + np("a", "tier: sec, ingress: [{action: Allow, protocol: UDP}]"), "allowed"),
        (tier("late", 2000000) + np("a", f"tier: late, {DENY}") + np("d", ALLOW), "allowed"),
        (tier("sec", 10) + np("a", f"tier: sec, selector: \"app == 'x'\", {DENY}"), "allowed"),
    ],
)
def test_tiers(policies: Policies, ask: Ask, pod: Pod, text: str, outcome: str) -> None:
    assert ask(policies(text, "calico"), pod("b"), pod("a")).outcome == outcome


@pytest.mark.parametrize(
    ("order", "ok", "other"),
    [("order: 999, ", "denied", "denied"), ("order: 1001, ", "allowed", "denied"), ("", "allowed", "denied")],
)
def test_networkpolicy_is_order_1000_in_the_default_tier(
    policies: Policies, ask: Ask, pod: Pod, order: str, ok: str, other: str
) -> None:
    policy_set = policies(NETPOL + np("d", order + DENY), "calico")
    assert [ask(policy_set, e, pod("a")).outcome for e in (pod("p", app="ok"), pod("q"))] == [ok, other]


def test_an_allow_after_the_networkpolicy_still_counts(policies: Policies, ask: Ask, pod: Pod) -> None:
    assert ask(policies(NETPOL + np("late", f"order: 2000, {ALLOW}"), "calico"), pod("q"), pod("a")).outcome == "allowed"


@pytest.mark.parametrize(
    ("source", "b", "o"),
    [
        ("selector: \"app == 'x'\"", "allowed", "denied"),
        ("selector: \"app == 'x'\", namespaceSelector: \"team == 'web'\"", "denied", "allowed"),
        ("namespaceSelector: \"projectcalico.org/name == 'other'\"", "denied", "allowed"),
        ("selector: \"projectcalico.org/namespace == 'other'\", namespaceSelector: all()", "denied", "allowed"),
        ("notSelector: \"app == 'x'\"", "denied", "denied"),
        ("nets: [10.1.0.0/16]", "allowed", "denied"),
        ("notNets: [10.1.0.0/16]", "denied", "allowed"),
        ("serviceAccounts: {names: [trainer]}", "allowed", "denied"),
    ],
)
def test_peers(policies: Policies, ask: Ask, pod: Pod, source: str, b: str, o: str) -> None:
    policy_set = policies(np("a", f"ingress: [{{action: Allow, source: {{{source}}}}}]"), "calico")
    near = pod("b", app="x", end={"ip": "10.1.0.1", "service_account": "trainer"})
    far = pod("other/o", app="x", end={"ip": "10.2.0.1"})
    assert [ask(policy_set, e, pod("a")).outcome for e in (near, far)] == [b, o]


def test_network_sets_are_addresses_behind_labels(policies: Policies, ask: Ask, pod: Pod) -> None:
    sets = (
        "apiVersion: projectcalico.org/v3\nkind: GlobalNetworkSet\nmetadata: {name: g, labels: {kind: lab}}\n"
        "spec: {nets: [8.8.8.0/24]}\n---\n"
    )
    rule = "ingress: [{action: Allow, source: {selector: \"kind == 'lab'\"}}]"
    policy_set = policies(sets + np("a", f"selector: all(), {rule}", "GlobalNetworkPolicy"), "calico")
    ends = [Endpoint(name="x", ip="8.8.8.8"), Endpoint(name="y", ip="9.9.9.9")]
    assert [ask(policy_set, e, pod("a")).outcome for e in ends] == ["allowed", "denied"]


@pytest.mark.parametrize(
    ("destination", "protocol", "allowed", "denied"),
    [
        ("ports: [22, '100:200', rdzv]", "TCP", [22, 100, 200, 29400], [23, 99, 201]),
        ("notPorts: [22, '100:200']", "TCP", [23, 99, 201], [22, 150]),
        ("ports: [22]", "6", [22], [23]),
    ],
)
def test_ports(
    policies: Policies, ask: Ask, pod: Pod, destination: str, protocol: str, allowed: list[int], denied: list[int]
) -> None:
    text = np("a", f"ingress: [{{action: Allow, protocol: {protocol}, destination: {{{destination}}}}}]")
    target = pod("a", end={"named_ports": (("rdzv", Protocol.TCP, 29400),)})
    policy_set = policies(text, "calico")
    assert {ask(policy_set, pod("b"), target, p).outcome.value for p in allowed} == {"allowed"}
    assert {ask(policy_set, pod("b"), target, p).outcome.value for p in denied} == {"denied"}


@pytest.mark.parametrize(
    ("rule", "fact"),
    [
        ("{action: Allow, source: {ports: [1]}, protocol: TCP}", "source ports"),
        ("{action: Allow, http: {methods: [GET]}}", "application layer policy"),
        ("{action: Allow, source: {serviceAccounts: {selector: \"a == 'b'\"}}}", "labels of service accounts"),
        ("{action: Allow, source: {services: {name: s, namespace: apps}}}", "the endpoints of Service apps/s"),
    ],
)
def test_what_is_not_modelled_is_named(policies: Policies, ask: Ask, pod: Pod, rule: str, fact: str) -> None:
    verdict = ask(policies(np("a", f"ingress: [{rule}]"), "calico"), pod("b"), pod("a"))
    assert verdict.outcome == "unjudged"
    assert fact in verdict.reason


def test_a_selector_that_does_not_parse_is_refused(policies: Policies) -> None:
    [refused] = policies(np("a", f'selector: "app = x", {DENY}'), "calico").rejected
    assert refused.reason.startswith("invalid selector: ")


def test_host_network_pods_are_not_workload_endpoints(policies: Policies, ask: Ask, pod: Pod) -> None:
    host = pod("h", app="ok", end={"host_network": True})
    policy_set = policies(NETPOL, "calico")
    assert ask(policy_set, pod("b"), host).outcome == "allowed"
    assert ask(policy_set, host, pod("a")).outcome == "denied"
