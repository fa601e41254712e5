"""Cilium semantics beyond the recorded vectors; expected values from reference/policy.md §1 and Cilium's source."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from stallscope.model.traffic import Endpoint, Protocol, Verdict
from stallscope.policy.engine import PolicySet

Policies, Ask, Pod = Callable[..., PolicySet], Callable[..., Verdict], Callable[..., Endpoint]

HEAD = (
    "apiVersion: cilium.io/v2\nkind: CiliumNetworkPolicy\nmetadata: {name: p, namespace: train}\n"
    "spec:\n  endpointSelector: {}\n"
)
CLUSTER = "apiVersion: cilium.io/v2\nkind: CiliumClusterwideNetworkPolicy\nmetadata: {name: c}\nspec:\n"
OUTSIDE = Endpoint(name="ext", ip="8.8.8.8")


def test_cidr_never_matches_pods_even_with_a_known_address(policies: Policies, ask: Ask, pod: Pod) -> None:
    policy_set = policies(HEAD + '  ingress: [{fromCIDR: ["0.0.0.0/0"]}]', "cilium")
    verdict = ask(policy_set, pod("b", end={"ip": "10.0.0.7"}), pod("a"))
    assert verdict.outcome == "denied"
    assert "never matches pods" in verdict.ingress.nearest[0].why
    assert ask(policy_set, OUTSIDE, pod("a")).outcome == "allowed"


@pytest.mark.parametrize(("port", "outcome"), [(29400, "proxied"), (29600, "proxied"), (29601, "allowed")])
def test_http_on_a_range_takes_the_collective_ports(policies: Policies, ask: Ask, pod: Pod, port: int, outcome: str) -> None:
    text = HEAD + (
        "  ingress:\n  - fromEndpoints: [{}]\n"
        '  - toPorts: [{ports: [{port: "29400", endPort: 29600, protocol: TCP}], rules: {http: [{}]}}]\n'
    )
    verdict = ask(policies(text, "cilium"), pod("b"), pod("a"), port)
    assert verdict.outcome == outcome
    assert ("http" in verdict.reason) is (outcome == "proxied")


def test_to_services_follows_the_selector_of_a_given_service(policies: Policies, ask: Ask, pod: Pod) -> None:
    rule = "  egress: [{toServices: [{k8sService: {serviceName: rdzv, namespace: other}}]}]\n"
    service = "---\napiVersion: v1\nkind: Service\nmetadata: {name: rdzv, namespace: other}\nspec: {selector: {app: r}}\n"
    known = policies(HEAD + rule + service, "cilium")
    assert [ask(known, pod("a"), e).outcome for e in (pod("other/r", app="r"), pod("r", app="r"), pod("other/q"))] == [
        "allowed",
        "denied",
        "denied",
    ]
    unknown = ask(policies(HEAD + rule, "cilium"), pod("a"), pod("other/r", app="r"))
    assert unknown.outcome == "unjudged"
    assert "Service other/rdzv" in unknown.reason


def test_cidr_groups_are_read_when_given(policies: Policies, ask: Ask, pod: Pod) -> None:
    rule = "  egress: [{toCIDRSet: [{cidrGroupRef: dns, except: [8.8.4.0/24]}]}]\n"
    group = (
        "---\napiVersion: cilium.io/v2\nkind: CiliumCIDRGroup\nmetadata: {name: dns}\nspec: {externalCIDRs: [8.8.0.0/16]}\n"
    )
    known = policies(HEAD + rule + group, "cilium")
    others = (OUTSIDE, Endpoint(name="x", ip="8.8.4.4"), Endpoint(name="y", ip="9.9.9.9"))
    assert [ask(known, pod("a"), e).outcome for e in others] == ["allowed", "denied", "denied"]
    missing = policies(HEAD + rule, "cilium")
    assert ask(missing, pod("a"), OUTSIDE).reason == "not known: the addresses of CiliumCIDRGroup dns"
    assert ask(missing, pod("a"), pod("b")).outcome == "denied", "a CIDR group never is a pod"


def test_fqdn_rules_never_admit_pods_and_are_unjudged_outside(policies: Policies, ask: Ask, pod: Pod) -> None:
    text = HEAD + '  egress: [{toFQDNs: [{matchPattern: "*.example.org"}]}]'
    policy_set = policies(text, "cilium")
    assert ask(policy_set, pod("a"), pod("b")).outcome == "denied"
    assert ask(policy_set, pod("a"), OUTSIDE).outcome == "unjudged"
    seen = policies(text, "cilium", options={"fqdn-cache": "a.example.org=8.8.8.8"})
    assert ask(seen, pod("a"), OUTSIDE).outcome == "allowed"


@pytest.mark.parametrize(
    ("source", "destination", "same", "apart", "unknown"),
    [("h", "a", "allowed", "denied", "unjudged"), ("a", "h", "allowed", "allowed", "allowed")],
)
def test_host_network_pods_are_the_node_to_their_peers(
    policies: Policies, ask: Ask, pod: Pod, source: str, destination: str, same: str, apart: str, unknown: str
) -> None:
    """Same node: allow-localhost admits it; another node: remote-node, which fromEndpoints never matches."""
    policy_set = policies(HEAD + "  ingress: [{fromEndpoints: [{}]}]", "cilium")
    for nodes, expected in ((("n1", "n1"), same), (("n1", "n2"), apart), (("", ""), unknown)):
        ends = {
            "h": pod("h", end={"host_network": True, "node": nodes[0]}),
            "a": pod("a", end={"node": nodes[1]}),
        }
        assert ask(policy_set, ends[source], ends[destination]).outcome == expected, nodes


def test_unknown_node_does_not_matter_when_both_answers_agree(policies: Policies, ask: Ask, pod: Pod) -> None:
    policy_set = policies(HEAD + "  ingress: [{fromEntities: [cluster]}]", "cilium")
    assert ask(policy_set, pod("h", end={"host_network": True}), pod("a")).outcome == "allowed"


def test_host_firewall_governs_nodes_by_their_labels(policies: Policies, ask: Ask, pod: Pod) -> None:
    text = CLUSTER + "  nodeSelector: {matchLabels: {pool: gpu}}\n  ingress: [{fromEntities: [world]}]"
    gpu = Endpoint(name="n1", reserved=("host",), node_labels=(("pool", "gpu"),))
    cpu = Endpoint(name="n2", reserved=("host",), node_labels=(("pool", "cpu"),))
    on = policies(text, "cilium", options={"enable-host-firewall": "true"})
    off = policies(text, "cilium")
    assert [ask(on, pod("a"), n).outcome for n in (gpu, cpu)] == ["denied", "allowed"]
    assert ask(off, pod("a"), gpu).outcome == "allowed"
    assert not ask(off, pod("a"), gpu).ingress.enforced


def test_clusterwide_selector_does_not_select_the_host(policies: Policies, ask: Ask, pod: Pod) -> None:
    policy_set = policies(
        CLUSTER + "  endpointSelector: {}\n  ingress: [{}]", "cilium", options={"enable-host-firewall": "true"}
    )
    assert ask(policy_set, pod("a"), Endpoint(name="n", reserved=("host",))).outcome == "allowed"
    assert ask(policy_set, pod("b"), pod("a")).outcome == "denied"


def test_initialising_endpoints_are_default_deny(policies: Policies, ask: Ask, pod: Pod) -> None:
    init = Endpoint(name="i", reserved=("init",))
    assert ask(policies("", "cilium"), pod("a"), init).outcome == "denied"
    open_to_all = policies(
        CLUSTER + '  endpointSelector: {matchLabels: {"reserved:init": ""}}\n  ingress: [{fromEntities: [all]}]', "cilium"
    )
    assert ask(open_to_all, pod("a"), init).ingress.outcome == "allowed"


@pytest.mark.parametrize(("version", "outcome"), [((1, 19, 4), "allowed"), ((1, 20, 0), "denied")])
def test_localhost_under_always_without_a_rule_changed_in_1_20(
    policies: Policies, ask: Ask, pod: Pod, version: tuple[int, ...], outcome: str
) -> None:
    policy_set = policies("", "cilium", version=version, options={"enable-policy": "always"})
    assert ask(policy_set, Endpoint(name="host", reserved=("host",)), pod("a")).outcome == outcome


@pytest.mark.parametrize(("version", "outcome"), [((1, 18, 3), "allowed"), ((1, 19, 0), "denied")])
def test_other_clusters_left_peers_in_1_19(
    policies: Policies, ask: Ask, pod: Pod, version: tuple[int, ...], outcome: str
) -> None:
    remote = Endpoint(name="r", namespace="train", raw_labels=("k8s:io.cilium.k8s.policy.cluster=other",))
    policy_set = policies(HEAD + "  ingress: [{fromEndpoints: [{}]}]", "cilium", version=version)
    assert ask(policy_set, remote, pod("a")).outcome == outcome
    assert ask(policy_set, pod("b"), pod("a")).outcome == "allowed"


def test_named_protocols_and_icmp(policies: Policies, ask: Ask, pod: Pod) -> None:
    policy_set = policies(HEAD + "  ingress: [{icmps: [{fields: [{type: EchoRequest}]}]}]", "cilium")
    assert ask(policy_set, pod("b"), pod("a"), 8, Protocol.ICMP).outcome == "allowed"
    assert ask(policy_set, pod("b"), pod("a"), 0, Protocol.ICMP).outcome == "denied"
    assert ask(policy_set, pod("b"), pod("a"), 8).outcome == "denied"


@pytest.mark.parametrize(("written", "matches"), [("010", [8]), ('"0"', [1, 65535]), ('"65535"', [65535])])
def test_numbers_are_read_as_the_agent_reads_them(
    policies: Policies, ask: Ask, pod: Pod, written: str, matches: list[int]
) -> None:
    text = HEAD + f"  ingress: [{{toPorts: [{{ports: [{{port: {written!s}, protocol: TCP}}]}}]}}]"
    policy_set = policies(text.replace("port: 010", 'port: "010"'), "cilium")
    assert not policy_set.rejected
    for port in matches:
        assert ask(policy_set, pod("b"), pod("a"), port).outcome == "allowed"


def test_zone_label_is_inert_now_and_worked_before(policies: Policies, ask: Ask, pod: Pod) -> None:
    text = HEAD + "  ingress: [{fromEndpoints: [{matchLabels: {topology.kubernetes.io/zone: a}}]}]"
    near = pod("b", **{"topology.kubernetes.io/zone": "a"})
    now, before = policies(text, "cilium"), policies(text, "cilium", version=(1, 18, 6))
    assert [ask(s, near, pod("a")).outcome for s in (now, before)] == ["denied", "allowed"]
    assert "leaves that key out of identity" in ask(now, near, pod("a")).ingress.nearest[0].why


def test_authentication_is_a_requirement_not_a_verdict(policies: Policies, ask: Ask, pod: Pod) -> None:
    policy_set = policies(HEAD + "  ingress: [{fromEndpoints: [{}], authentication: {mode: required}}]", "cilium")
    assert ask(policy_set, pod("b"), pod("a")).outcome == "allowed"


def test_both_ends_count_and_a_denial_decides_over_the_unknown(policies: Policies, ask: Ask, pod: Pod) -> None:
    text = HEAD + "  egress: [{toServices: [{k8sService: {serviceName: s}}]}]\n  ingress: [{}]"
    verdict = ask(policies(text, "cilium"), pod("a"), pod("b"))
    assert (verdict.egress.outcome, verdict.ingress.outcome, verdict.outcome) == ("unjudged", "denied", "denied")


def test_specs_all_count(policies: Policies, ask: Ask, pod: Pod) -> None:
    text = (
        "apiVersion: cilium.io/v2\nkind: CiliumNetworkPolicy\nmetadata: {name: p, namespace: train}\nspecs:\n"
        "- endpointSelector: {}\n  ingress: [{}]\n"
        "- endpointSelector: {}\n  ingress: [{fromEndpoints: [{matchLabels: {app: x}}]}]\n"
    )
    verdict = ask(policies(text, "cilium"), pod("b", app="x"), pod("a"))
    assert verdict.outcome == "allowed"
    rule = verdict.ingress.rules[0]
    assert (rule.spec, rule.section, rule.index, rule.location.span.line) == (1, "ingress", 0, 8)


@pytest.mark.parametrize(("cni", "outcome"), [("generic", "allowed"), ("calico", "allowed"), ("cilium", "denied")])
def test_cilium_enforces_a_section_with_rules_whatever_policy_types_says(
    policies: Policies, ask: Ask, pod: Pod, cni: str, outcome: str
) -> None:
    """pkg/k8s/network_policy.go ParseNetworkPolicy reads spec.egress before it looks at policyTypes."""
    text = (
        "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: np, namespace: train}\n"
        "spec: {podSelector: {}, policyTypes: [Ingress], ingress: [{}], egress: [{ports: [{port: 53}]}]}\n"
    )
    assert ask(policies(text, cni), pod("a"), pod("b"), 29500).egress.outcome == outcome


def test_icmp_fields_of_ipv6_are_another_protocol(policies: Policies, ask: Ask, pod: Pod) -> None:
    policy_set = policies(HEAD + "  ingress: [{icmps: [{fields: [{type: 128, family: IPv6}]}]}]", "cilium")
    assert ask(policy_set, pod("b"), pod("a"), 128, Protocol.ICMP).outcome == "denied"
