"""ClusterNetworkPolicy and Admin-/BaselineAdminNetworkPolicy as their API specifies them (network-policy-api)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from stallscope.model.traffic import Endpoint, Verdict
from stallscope.policy.engine import PolicySet

Policies, Ask, Pod = Callable[..., PolicySet], Callable[..., Verdict], Callable[..., Endpoint]

ON = {"cluster-policies": "true"}
NETPOL = (
    "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: np, namespace: train}\n"
    "spec: {podSelector: {}, ingress: [{from: [{podSelector: {matchLabels: {app: ok}}}]}]}\n---\n"
)


def anp(name: str, priority: int, rules: str, kind: str = "AdminNetworkPolicy") -> str:
    first = f"priority: {priority}, " if kind == "AdminNetworkPolicy" else ""
    return (
        f"apiVersion: policy.networking.k8s.io/v1alpha1\nkind: {kind}\nmetadata: {{name: {name}}}\n"
        f"spec: {{{first}subject: {{namespaces: {{matchLabels: {{team: ml}}}}}}, ingress: [{rules}]}}\n---\n"
    )


def kcnp(name: str, tier: str, priority: int, rules: str) -> str:
    return (
        f"apiVersion: policy.networking.k8s.io/v1alpha2\nkind: ClusterNetworkPolicy\nmetadata: {{name: {name}}}\n"
        f"spec: {{tier: {tier}, priority: {priority}, subject: {{namespaces: {{matchLabels: {{team: ml}}}}}}, "
        f"ingress: [{rules}]}}\n---\n"
    )


ANY = "namespaces: {}"


@pytest.mark.parametrize(
    ("action", "ok", "other"),
    [("Allow", "allowed", "allowed"), ("Deny", "denied", "denied"), ("Pass", "allowed", "denied")],
)
def test_admin_comes_before_networkpolicy(policies: Policies, ask: Ask, pod: Pod, action: str, ok: str, other: str) -> None:
    policy_set = policies(NETPOL + anp("a", 10, f"{{action: {action}, from: [{{{ANY}}}]}}"), options=ON)
    assert [ask(policy_set, e, pod("t")).outcome for e in (pod("p", app="ok"), pod("q"))] == [ok, other]


def test_lower_priority_number_wins_and_rules_are_in_order(policies: Policies, ask: Ask, pod: Pod) -> None:
    low = anp("low", 1, f"{{action: Allow, from: [{{{ANY}}}], ports: [{{portNumber: {{protocol: TCP, port: 22}}}}]}}")
    high = anp("high", 2, f"{{action: Deny, from: [{{{ANY}}}]}}, {{action: Allow, from: [{{{ANY}}}]}}")
    policy_set = policies(high + low, options=ON)
    assert [ask(policy_set, pod("q"), pod("t"), p).outcome for p in (22, 23)] == ["allowed", "denied"]


def test_networkpolicy_is_final_for_the_pods_it_selects(policies: Policies, ask: Ask, pod: Pod) -> None:
    baseline = anp("default", 0, f"{{action: Allow, from: [{{{ANY}}}]}}", "BaselineAdminNetworkPolicy")
    assert ask(policies(NETPOL + baseline, options=ON), pod("q"), pod("t")).outcome == "denied"
    deny = baseline.replace("action: Allow", "action: Deny")
    assert ask(policies(deny, options=ON), pod("q"), pod("t")).outcome == "denied"
    assert ask(policies(NETPOL + deny, options=ON), pod("p", app="ok"), pod("t")).outcome == "allowed"


def test_equal_priorities_that_disagree_are_left_open_by_the_api(policies: Policies, ask: Ask, pod: Pod) -> None:
    text = anp("one", 5, f"{{action: Allow, from: [{{{ANY}}}]}}") + anp("two", 5, f"{{action: Deny, from: [{{{ANY}}}]}}")
    verdict = ask(policies(text, options=ON), pod("q"), pod("t"))
    assert verdict.outcome == "unjudged"
    assert "equal priority" in verdict.reason


def test_an_unnamed_engine_may_not_implement_them(policies: Policies, ask: Ask, pod: Pod) -> None:
    verdict = ask(policies(anp("a", 1, f"{{action: Deny, from: [{{{ANY}}}]}}")), pod("q"), pod("t"))
    assert verdict.reason == "not known: whether this cluster's engine implements AdminNetworkPolicy"


def test_host_network_pods_are_neither_subject_nor_peer(policies: Policies, ask: Ask, pod: Pod) -> None:
    policy_set = policies(kcnp("k", "Admin", 1, f"{{action: Deny, from: [{{{ANY}}}]}}"), options=ON)
    host = pod("h", end={"host_network": True})
    assert ask(policy_set, pod("q"), host).outcome == "allowed"


@pytest.mark.parametrize(
    ("protocols", "allowed", "denied"),
    [
        ("[{tcp: {destinationPort: {number: 22}}}]", 23, 22),
        ("[{tcp: {destinationPort: {range: {start: 32768, end: 60999}}}}]", 32767, 60999),
        ("[{udp: {}}]", 22, None),
        ("[{tcp: {}}]", None, 22),
    ],
)
def test_protocols(policies: Policies, ask: Ask, pod: Pod, protocols: str, allowed: int | None, denied: int | None) -> None:
    policy_set = policies(kcnp("k", "Admin", 1, f"{{action: Deny, from: [{{{ANY}}}], protocols: {protocols}}}"), options=ON)
    for port, outcome in ((allowed, "allowed"), (denied, "denied")):
        if port is not None:
            assert ask(policy_set, pod("q"), pod("t"), port).outcome == outcome


@pytest.mark.parametrize(("action", "outcome"), [("Accept", "allowed"), ("Deny", "denied"), ("Pass", "denied")])
def test_an_unknown_peer_fails_closed(policies: Policies, ask: Ask, pod: Pod, action: str, outcome: str) -> None:
    rule = f"{{action: {action}, from: [{{serviceAccounts: {{}}}}]}}"
    assert ask(policies(kcnp("k", "Admin", 1, rule), options=ON), pod("q"), pod("t")).outcome == outcome


def test_networks_match_pods_except_in_cilium(policies: Policies, ask: Ask, pod: Pod) -> None:
    text = kcnp("k", "Admin", 1, "").replace("ingress: []", 'egress: [{action: Deny, to: [{networks: ["0.0.0.0/0"]}]}]')
    assert ask(policies(text, options=ON), pod("t"), pod("q")).outcome == "denied"
    flags = {"enable-k8s-cluster-network-policy": "true"}
    assert ask(policies(text, "cilium", version=(1, 20, 0), options=flags), pod("t"), pod("q")).outcome == "allowed"


def test_cilium_refuses_what_its_flags_do_not_allow(policies: Policies) -> None:
    text = kcnp("k", "Admin", 1, "").replace("ingress: []", "egress: [{action: Accept, to: [{nodes: {}}]}]")
    policy_set = policies(text, "cilium", version=(1, 20, 0), options={"enable-k8s-cluster-network-policy": "true"})
    assert policy_set.rejected[0].reason == "egress.to.nodes is not supported since node selector labels are disabled"
