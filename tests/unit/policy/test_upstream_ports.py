"""
Ports, protocols, ICMP and proxies read from cilium/cilium: pkg/policy/l4.go (toL4Filter, createL4Filter),
pkg/policy/api/l4.go, pkg/policy/mapstate.go (insertWithChanges, authPreferredInsert), pkg/u8proto.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from stallscope.model.traffic import Endpoint, Protocol, Verdict
from stallscope.policy.engine import PolicySet

Policies, Ask, Pod = Callable[..., PolicySet], Callable[..., Verdict], Callable[..., Endpoint]

TCP, UDP, SCTP, ICMP = Protocol.TCP, Protocol.UDP, Protocol.SCTP, Protocol.ICMP


def cnp(rules: str, name: str = "p") -> str:
    return (
        f"apiVersion: cilium.io/v2\nkind: CiliumNetworkPolicy\nmetadata: {{name: {name}, namespace: train}}\n"
        f"spec: {{endpointSelector: {{}}, {rules}}}\n---\n"
    )


@pytest.mark.parametrize(
    ("port", "admitted"),
    [
        ('{port: "80"}', {(TCP, 80), (UDP, 80), (SCTP, 80)}),  # no protocol is ANY (L4Proto default)
        ('{port: "80", protocol: ANY}', {(TCP, 80), (UDP, 80), (SCTP, 80)}),
        ('{port: "80", protocol: tcp}', {(TCP, 80)}),
        ('{port: "80", protocol: SCTP}', {(SCTP, 80)}),
        ('{port: "0", protocol: UDP}', {(UDP, 1), (UDP, 80), (UDP, 90), (UDP, 91)}),
        ('{port: "0", endPort: 80, protocol: TCP}', {(TCP, 1), (TCP, 80)}),  # a range that starts at 0
        ('{port: "80", endPort: 90, protocol: TCP}', {(TCP, 80), (TCP, 90)}),
        ('{port: "0120", protocol: TCP}', {(TCP, 80)}),  # strconv.ParseUint(port, 0, 16): octal
        ('{port: "0x50", protocol: TCP}', set()),  # a letter makes it a service name (iana.IsSvcName)
    ],
)
def test_port_forms(policies: Policies, ask: Ask, pod: Pod, port: str, admitted: set[tuple[Protocol, int]]) -> None:
    """pkg/policy/rule.go mergePortProto: ports of ANY go to TCP, UDP and SCTP; never to ICMP."""
    policy_set = policies(cnp(f"ingress: [{{toPorts: [{{ports: [{port}]}}]}}]"), "cilium")
    asked = [(protocol, number) for protocol in (TCP, UDP, SCTP) for number in (1, 80, 90, 91)]
    found = {(p, n) for p, n in asked if ask(policy_set, pod("b"), pod("a"), n, p).outcome == "allowed"}
    assert found == admitted
    assert ask(policy_set, pod("b"), pod("a"), 8, ICMP).outcome == "denied"


@pytest.mark.parametrize(
    ("fields", "admitted"),
    [
        ("{type: 8}", [8]),
        ("{type: EchoRequest}", [8]),
        ('{type: "8"}', [8]),
        ("{type: 0}", [0, 3, 8]),  # type 0 becomes port 0, which is every type
        ("{type: 8, family: IPv4}", [8]),
        ("{type: 8, family: IPv6}", []),
        ("{type: EchoReply}", [0, 3, 8]),
    ],
)
def test_icmp_fields(policies: Policies, ask: Ask, pod: Pod, fields: str, admitted: list[int]) -> None:
    """pkg/policy/api/icmp.go and rule iteration ICMPRules.Iterate: the type is the port of protocol ICMP."""
    policy_set = policies(cnp(f"ingress: [{{icmps: [{{fields: [{fields}]}}]}}]"), "cilium")
    assert [t for t in (0, 3, 8) if ask(policy_set, pod("b"), pod("a"), t, ICMP).outcome == "allowed"] == admitted
    assert ask(policy_set, pod("b"), pod("a"), 8, TCP).outcome == "denied"


NAMED = {"named_ports": (("web", TCP, 80), ("web", UDP, 81), ("dns", UDP, 53))}


@pytest.mark.parametrize(
    ("port", "admitted"),
    [
        ("{port: web, protocol: TCP}", {(TCP, 80)}),
        ("{port: web, protocol: UDP}", {(UDP, 81)}),
        ("{port: web, protocol: SCTP}", set()),
        ("{port: web}", {(TCP, 80), (UDP, 81)}),
        ("{port: dns, protocol: TCP}", set()),  # ErrIncompatibleProtocol
        ("{port: WEB, protocol: TCP}", {(TCP, 80)}),  # IANA_SVC_NAME is lower-cased by PortProtocol.sanitize
    ],
)
@pytest.mark.parametrize("way", ["ingress", "egress"])
def test_named_ports(
    policies: Policies, ask: Ask, pod: Pod, way: str, port: str, admitted: set[tuple[Protocol, int]]
) -> None:
    """L4Filter.ToMapState: the name is looked up at the destination, per protocol (pkg/types/portmap.go)."""
    policy_set = policies(cnp(f"{way}: [{{toPorts: [{{ports: [{port}]}}]}}]"), "cilium")
    server, client = pod("s", end=NAMED), pod("other/c")
    source, destination = (client, server) if way == "ingress" else (pod("t"), pod("other/s", end=NAMED))
    asked = [(protocol, number) for protocol in (TCP, UDP, SCTP) for number in (53, 80, 81)]
    assert {(p, n) for p, n in asked if ask(policy_set, source, destination, n, p).outcome == "allowed"} == admitted


@pytest.mark.parametrize(
    ("item", "port", "outcome"),
    [
        ('ports: [{port: "80", protocol: TCP}], rules: {http: [{}]}', 80, "proxied"),
        ('ports: [{port: "80", protocol: TCP}], rules: {http: []}', 80, "allowed"),
        ('ports: [{port: "80", protocol: TCP}], rules: {}', 80, "allowed"),
        ('ports: [{port: "9092", protocol: TCP}], rules: {kafka: [{topic: a}]}', 9092, "proxied"),
        ('ports: [{port: "80", protocol: TCP}], rules: {l7proto: x}', 80, "proxied"),
        ('ports: [{port: "80", protocol: TCP}], rules: {l7proto: x, l7: [{a: b}]}', 80, "proxied"),
        ('ports: [{port: "443", protocol: TCP}], serverNames: [example.org]', 443, "proxied"),
        ('ports: [{port: "443", protocol: TCP}], serverNames: []', 443, "allowed"),
    ],
)
def test_what_redirects(policies: Policies, ask: Ask, pod: Pod, item: str, port: int, outcome: str) -> None:
    """createL4Filter: a parser type makes the filter a redirect; an empty list of L7 rules makes none."""
    policy_set = policies(cnp(f"ingress: [{{toPorts: [{{{item}}}]}}]"), "cilium")
    assert ask(policy_set, pod("b"), pod("a"), port).outcome == outcome


def test_only_the_tcp_part_of_any_is_redirected_by_a_custom_parser(policies: Policies, ask: Ask, pod: Pod) -> None:
    """createL4Filter: proxylib parsers apply to TCP; UDP of the same ANY item stays plain."""
    text = cnp('ingress: [{toPorts: [{ports: [{port: "80", protocol: ANY}], rules: {l7proto: x}}]}]')
    policy_set = policies(text, "cilium")
    assert [ask(policy_set, pod("b"), pod("a"), 80, p).outcome for p in (TCP, UDP)] == ["proxied", "allowed"]


def test_a_listener_redirects_on_egress(policies: Policies, ask: Ask, pod: Pod) -> None:
    listener = "listener: {envoyConfig: {kind: CiliumEnvoyConfig, name: e}, name: l}"
    text = cnp(f'egress: [{{toPorts: [{{ports: [{{port: "80", protocol: TCP}}], {listener}}}]}}]')
    assert ask(policies(text, "cilium"), pod("a"), pod("b"), 80).egress.outcome == "proxied"


def test_a_plain_allow_does_not_lift_a_redirect(policies: Policies, ask: Ask, pod: Pod) -> None:
    """mapstate.go: among allow entries of one key the redirect is kept (Merge: ProxyPort of the other)."""
    text = cnp("ingress: [{fromEndpoints: [{}]}]", "plain") + cnp(
        'ingress: [{fromEndpoints: [{}], toPorts: [{ports: [{port: "80", protocol: TCP}], rules: {http: [{}]}}]}]', "l7"
    )
    policy_set = policies(text, "cilium")
    assert [ask(policy_set, pod("b"), pod("a"), p).outcome for p in (80, 81)] == ["proxied", "allowed"]


def test_a_denial_beats_redirects_and_narrower_allows(policies: Policies, ask: Ask, pod: Pod) -> None:
    """mapstate.go insertWithChanges: a broader deny deletes every narrower allow."""
    text = cnp(
        "ingress: [{fromEndpoints: [{}], toPorts: [{ports: [{port: '80', protocol: TCP}], rules: {http: [{}]}}]}],"
        " ingressDeny: [{fromEntities: [cluster]}]"
    )
    verdict = ask(policies(text, "cilium"), pod("b"), pod("a"), 80)
    assert verdict.outcome == "denied"
    assert [str(r) for r in verdict.ingress.rules] == ["CiliumNetworkPolicy train/p ingressDeny[0]"]


@pytest.mark.parametrize(
    ("deny", "port", "outcome"),
    [
        ("toPorts: [{ports: [{port: '80', protocol: TCP}]}]", 80, "denied"),
        ("toPorts: [{ports: [{port: '80', protocol: TCP}]}]", 81, "allowed"),
        ("toPorts: [{ports: [{port: '70', endPort: 90, protocol: ANY}]}]", 90, "denied"),
        ("toPorts: [{ports: [{port: '80', protocol: UDP}]}]", 80, "allowed"),
        ("icmps: [{fields: [{type: 8}]}]", 80, "allowed"),
        ("toPorts: [{ports: [{port: '0', protocol: TCP}]}]", 80, "denied"),
        ("", 80, "allowed"),  # a denial without peers and ports has nothing to say
        ("toPorts: [{}]", 80, "allowed"),
    ],
)
def test_denials_by_port(policies: Policies, ask: Ask, pod: Pod, deny: str, port: int, outcome: str) -> None:
    text = cnp(f"ingress: [{{fromEntities: [all]}}], ingressDeny: [{{{deny}}}]")
    assert ask(policies(text, "cilium"), pod("b"), pod("a"), port).outcome == outcome


@pytest.mark.parametrize(
    ("spec", "ingress", "egress"),
    [
        ("ingress: [{}], enableDefaultDeny: {ingress: false}", "allowed", "allowed"),
        ("ingress: [{fromEndpoints: []}], enableDefaultDeny: {ingress: false}", "allowed", "allowed"),
        ("ingress: [{fromEndpoints: []}], enableDefaultDeny: {}", "denied", "allowed"),
        ("ingress: [{fromEndpoints: []}], enableDefaultDeny: {egress: true}", "denied", "allowed"),
        ("ingress: [{fromEndpoints: []}], egress: [{toEndpoints: []}]", "denied", "denied"),
        ("ingressDeny: [{fromEndpoints: []}]", "denied", "allowed"),
        ("ingressDeny: [{fromEndpoints: []}], enableDefaultDeny: {ingress: false}", "allowed", "allowed"),
    ],
)
def test_default_deny(policies: Policies, ask: Ask, pod: Pod, spec: str, ingress: str, egress: str) -> None:
    """Rule.Sanitize sets EnableDefaultDeny per direction from the presence of rules; the policy's own word wins."""
    policy_set = policies(cnp(spec), "cilium")
    assert ask(policy_set, pod("other/b"), pod("a")).ingress.outcome == ingress
    assert ask(policy_set, pod("a"), pod("other/b")).egress.outcome == egress


def test_default_deny_of_a_direction_without_rules_isolates_nothing(policies: Policies, ask: Ask, pod: Pod) -> None:
    """repository.go computePolicyEnforcementAndRules looks at rules of the direction only."""
    policy_set = policies(cnp("ingress: [{}], enableDefaultDeny: {egress: true}"), "cilium")
    assert ask(policy_set, pod("a"), pod("b")).egress.outcome == "allowed"


def named(verdict: Verdict) -> list[str]:
    return [str(r).removeprefix("CiliumNetworkPolicy train/") for r in verdict.ingress.rules]


def test_an_authenticated_allow_takes_over_a_redirect_of_the_same_peers(policies: Policies, ask: Ask, pod: Pod) -> None:
    """mapstate.go authPreferredInsert: explicit authentication on a narrower key overrides what covers it."""
    text = cnp("ingress: [{fromEndpoints: [{}], authentication: {mode: required}}]", "auth") + cnp(
        'ingress: [{fromEndpoints: [{}], toPorts: [{ports: [{port: "80", protocol: TCP}]}]}]', "plain"
    )
    policy_set = policies(text, "cilium")
    assert ask(policy_set, pod("b"), pod("a"), 80).outcome == "allowed"
    assert ask(policy_set, pod("b"), pod("a"), 81).outcome == "allowed"


def test_without_the_proxy_l7_policies_are_refused(policies: Policies) -> None:
    """rule_validation.go: "L7 policy is not supported since L7 proxy is not enabled"."""
    text = cnp('ingress: [{toPorts: [{ports: [{port: "80", protocol: TCP}], rules: {http: [{}]}}]}]')
    [refused] = policies(text, "cilium", options={"enable-l7-proxy": "false"}).rejected
    assert "L7 policy is not supported since L7 proxy is not enabled" in refused.reason
