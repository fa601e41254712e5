"""What the agent refuses: messages of cilium/cilium pkg/policy/api/rule_validation.go beyond the recorded corners."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from stallscope.policy.engine import PolicySet

Policies = Callable[..., PolicySet]

HEAD = "apiVersion: cilium.io/v2\nkind: CiliumNetworkPolicy\nmetadata: {name: p, namespace: train}\n"
SPEC = HEAD + "spec:\n  endpointSelector: {}\n"
PORTS = '  ingress: [{toPorts: [{ports: [{port: "80", protocol: TCP}]%s}]}]'


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("  ingress: [{fromEntities: [everyone]}]", "unsupported entity: everyone"),
        ('  ingress: [{fromCIDR: ["ten"]}]', 'unable to parse CIDR: ParseAddr("ten"): unable to parse IP'),
        ('  ingress: [{fromCIDR: [""]}]', "IP must be specified"),
        (
            "  ingress: [{fromCIDRSet: [{cidr: 10.0.0.1}]}]",
            'unable to parse CIDRRule "10.0.0.1": netip.ParsePrefix("10.0.0.1"): no \'/\'',
        ),
        ("  ingress: [{fromCIDRSet: [{}]}]", "one of cidr, cidrGroupRef, or cidrGroupSelector is required"),
        (
            "  ingress: [{fromCIDRSet: [{cidr: 10.0.0.0/8, cidrGroupRef: g}]}]",
            "more than one of cidr, cidrGroupRef, or cidrGroupSelector may not be set",
        ),
        ("  egress: [{toEndpoints: [{}], toCIDR: [10.0.0.0/8]}]", "combining ToCIDR and ToEndpoints is not supported yet"),
        (
            "  egressDeny: [{toEntities: [world], toCIDR: [10.0.0.0/8]}]",
            "combining ToCIDR and ToEntities is not supported yet",
        ),
        (PORTS % ', serverNames: [""]', "empty server name is not allowed"),
        (
            PORTS % ', serverNames: ["a"], rules: {http: [{}]}',
            "ServerNames are not allowed with L7 rules without TLS termination",
        ),
        (PORTS % ", listener: {name: l}", "Listener is not allowed on ingress (l)"),
        (PORTS % ", rules: {http: [{}], kafka: [{}]}", "multiple L7 protocol rule types specified in single rule"),
        (PORTS % ", rules: {l7: [{}]}", "'l7' may only be specified when a 'l7proto' is also specified"),
        (PORTS % ", rules: {http: [], l7: []}", None),
        (
            '  ingress: [{toPorts: [{ports: [{port: "0", protocol: TCP}], rules: {http: [{}]}}]}]',
            "L7 rules can not be used when a port is 0",
        ),
        (
            '  egress: [{toPorts: [{ports: [{port: "53", endPort: 60, protocol: UDP}], rules: {dns: [{matchName: a}]}}]}]',
            "DNS rules do not support port ranges",
        ),
        ('  egress: [{toPorts: [{rules: {dns: [{matchPattern: "*"}]}}]}]', "port 53 must be specified for DNS rules"),
        (
            '  ingress: [{toPorts: [{ports: [{port: "70000"}]}]}]',
            'unable to parse port: strconv.ParseUint: parsing "70000": value out of range',
        ),
        (
            '  ingress: [{toPorts: [{ports: [{port: "a_b"}]}]}]',
            'unable to parse port: strconv.ParseUint: parsing "a_b": invalid syntax',
        ),
        ("  ingress: [{icmps: [{fields: [{type: 8, family: IPv5}]}]}]", "wrong family: IPv5"),
        ("  ingress: [{fromEndpoints: [{matchExpressions: [{key: a, operator: Is}]}]}]", "not a valid selector operator"),
        (
            "  ingress: [{fromEndpoints: [{matchExpressions: [{key: a, operator: In}]}]}]",
            "must be specified when `operator` is 'In' or 'NotIn'",
        ),
        ("  egress: [{toFQDNs: [{matchName: a, matchPattern: b}]}]", "only one of MatchName or MatchPattern"),
        ("  ingress: [{fromRequires: [{}]}]", "fromRequires was removed in Cilium 1.19"),
    ],
)
def test_refused(policies: Policies, body: str, message: str | None) -> None:
    policy_set = policies(SPEC + body, "cilium")
    if message is None:
        assert not policy_set.rejected
        return
    [refused] = policy_set.rejected
    assert refused.reason.startswith("Invalid CiliumNetworkPolicy spec: ")
    assert message in refused.reason
    assert refused.location.span.line == 6, "the location is inside the section"
    assert not policy_set.policies


def test_no_spec_at_all(policies: Policies) -> None:
    assert policies(HEAD, "cilium").rejected[0].reason == "Invalid CiliumNetworkPolicy spec(s): empty policy"


def test_both_selectors(policies: Policies) -> None:
    text = SPEC.replace("CiliumNetworkPolicy", "CiliumClusterwideNetworkPolicy") + "  nodeSelector: {}\n  ingress: [{}]\n"
    assert "rule cannot have both" in policies(text, "cilium").rejected[0].reason


def test_l7_in_a_host_policy(policies: Policies) -> None:
    text = (SPEC + PORTS % ", rules: {http: [{}]}").replace("CiliumNetworkPolicy", "CiliumClusterwideNetworkPolicy")
    text = text.replace("endpointSelector", "nodeSelector")
    assert "L7 policy is not supported on host ingress yet" in policies(text, "cilium").rejected[0].reason


def test_l7_without_the_proxy(policies: Policies) -> None:
    text = SPEC + PORTS % ", rules: {http: [{}]}"
    off = policies(text, "cilium", options={"enable-l7-proxy": "false"})
    assert "L7 policy is not supported since L7 proxy is not enabled" in off.rejected[0].reason


def test_one_bad_spec_drops_the_whole_object(policies: Policies) -> None:
    text = (
        HEAD + "specs:\n- {endpointSelector: {}, ingress: [{}]}\n- {endpointSelector: {}, ingress: [{fromEntities: [x]}]}\n"
    )
    policy_set = policies(text, "cilium")
    assert policy_set.rejected[0].reason == "Invalid CiliumNetworkPolicy specs: unsupported entity: x"
    assert policy_set.rejected[0].location.span.line == 6
    assert not policy_set.program.blocks


def test_a_snapshot_says_what_the_agent_said(policies: Policies) -> None:
    text = SPEC + "  ingress: [{}]\nstatus: {conditions: [{type: Valid, status: 'False', message: no such thing}]}\n"
    [refused] = policies(text, "cilium").rejected
    assert (refused.reason, refused.location.span.line) == ("no such thing", 7)


def test_kafka_is_not_a_field_any_more_in_1_20(policies: Policies) -> None:
    text = SPEC + (PORTS % ", rules: {kafka: [{}]}").replace("protocol: TCP", "protocol: UDP")
    assert policies(text, "cilium", version=(1, 19, 4)).rejected
    assert not policies(text, "cilium", version=(1, 20, 0)).rejected
