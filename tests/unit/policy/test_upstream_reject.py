"""
What cilium/cilium refuses, in its words: pkg/policy/api/rule_validation.go, selector.go, cidr.go, fqdn.go, http.go;
Go's net/netip and regexp/syntax; k8s.io/apimachinery validation of labels.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from stallscope.policy.engine import PolicySet

Policies = Callable[..., PolicySet]

HEAD = "apiVersion: cilium.io/v2\nkind: CiliumNetworkPolicy\nmetadata: {name: p, namespace: train}\n"


def refused(policies: Policies, rules: str, selector: str = "{}", **options: object) -> str:
    found = policies(f"{HEAD}spec: {{endpointSelector: {selector}, {rules}}}\n", "cilium", **options).rejected
    return found[0].reason.removeprefix("Invalid CiliumNetworkPolicy spec: ") if found else ""


@pytest.mark.parametrize(
    ("cidr", "problem"),
    [
        ("10.0.0.0", ""),
        ("10.0.0.0/8", ""),
        ("::1", ""),
        ("10.0.0", 'ParseAddr("10.0.0"): IPv4 address too short'),
        ("10.0.0.256", 'ParseAddr("10.0.0.256"): IPv4 field has value >255'),
        ("10.0.0.01", 'ParseAddr("10.0.0.01"): IPv4 field has octet with leading zero'),
        ("10.0.0.0.0", 'ParseAddr("10.0.0.0.0"): IPv4 address too long'),
        ("10..0.0", 'ParseAddr("10..0.0"): IPv4 field must have at least one digit (at ".0.0")'),
        ("10.0.0.x", 'ParseAddr("10.0.0.x"): unexpected character (at "x")'),
        ("cluster", 'ParseAddr("cluster"): unable to parse IP'),
        ("10.0.0.0/33", 'ParseAddr("10.0.0.0/33"): unexpected character (at "/33")'),
    ],
)
def test_addresses(policies: Policies, cidr: str, problem: str) -> None:
    """CIDR.sanitize: ParsePrefix, then ParseAddr; the second error is what is shown."""
    found = refused(policies, f'ingress: [{{fromCIDR: ["{cidr}"]}}]')
    assert found == (f"unable to parse CIDR: {problem}" if problem else "")


@pytest.mark.parametrize(
    ("cidr", "problem"),
    [
        ("10.0.0.0/33", "prefix length out of range"),
        ("2001:db8::/129", "prefix length out of range"),
        ("10.0.0.0/08", 'bad bits after slash: "08"'),
        ("10.0.0.0/x", 'bad bits after slash: "x"'),
        ("10.0.0.0/", 'bad bits after slash: ""'),
        ("10.0.0.0/255.0.0.0", 'bad bits after slash: "255.0.0.0"'),
        ("10.0.0/8", 'ParseAddr("10.0.0"): IPv4 address too short'),
        ("fe80::1%eth0/64", "IPv6 zones cannot be present in a prefix"),
        ("10.0.0.0", "no '/'"),
    ],
)
def test_prefixes(policies: Policies, cidr: str, problem: str) -> None:
    """CIDRRule.sanitize: netip.ParsePrefix alone."""
    found = refused(policies, f'ingress: [{{fromCIDRSet: [{{cidr: "{cidr}"}}]}}]')
    assert found == f'unable to parse CIDRRule "{cidr}": netip.ParsePrefix("{cidr}"): {problem}'


@pytest.mark.parametrize(
    ("excepted", "fits_1_19", "fits_1_20"),
    [("10.1.0.0/16", True, True), ("10.0.0.0/8", True, True), ("11.0.0.0/16", False, False), ("10.0.0.0/7", True, False)],
)
def test_except(policies: Policies, excepted: str, fits_1_19: bool, fits_1_20: bool) -> None:
    """Up to 1.19 the excepted address has to lie inside; from 1.20 the whole prefix (CIDRRule.sanitize)."""
    rules = f"ingress: [{{fromCIDRSet: [{{cidr: 10.0.0.0/8, except: [{excepted}]}}]}}]"
    for version, fits in (((1, 19, 4), fits_1_19), ((1, 20, 0), fits_1_20)):
        assert (refused(policies, rules, version=version) == "") is fits


@pytest.mark.parametrize(
    ("selector", "problem"),
    [
        ("{matchLabels: {app: x}}", ""),
        ('{matchLabels: {"k8s:app.kubernetes.io/name": x}}', ""),
        ("{matchLabels: {app: ''}}", ""),
        ("{matchExpressions: [{key: app, operator: in, values: [x]}]}", 'matchExpressions[0].operator: Invalid value: "in"'),
        ("{matchExpressions: [{key: app, operator: NotIn}]}", "matchExpressions[0].values: Required value"),
        ("{matchExpressions: [{key: app, operator: In, values: []}]}", "matchExpressions[0].values: Required value"),
        ("{matchExpressions: [{key: app, operator: Exists, values: [x]}]}", "matchExpressions[0].values: Forbidden"),
        ("{matchLabels: {'a b': x}}", 'matchLabels: Invalid value: "any.a b": name part must consist of'),
        ("{matchLabels: {'k8s:a b': x}}", 'matchLabels: Invalid value: "k8s.a b": name part must consist of'),
        ("{matchLabels: {app: '-x'}}", 'matchLabels: Invalid value: "-x": a valid label must be an empty string or'),
        ("{matchLabels: {'a/b/c': x}}", 'matchLabels: Invalid value: "any.a/b/c": a qualified name must consist of'),
        ("{matchLabels: {'A/b': x}}", 'matchLabels: Invalid value: "any.A/b": prefix part a lowercase RFC 1123 subdomain'),
    ],
)
@pytest.mark.parametrize("place", ["subject", "peer"])
def test_selectors(policies: Policies, selector: str, problem: str, place: str) -> None:
    """EndpointSelector.Sanitize over keys with their source (``any.app``); one wording for subjects and peers."""
    if place == "subject":
        found = refused(policies, "ingress: [{}]", selector)
    else:
        found = refused(policies, f"ingress: [{{fromEndpoints: [{selector}]}}]")
    assert found.startswith(f"invalid label selector: {problem}") if problem else found == ""


@pytest.mark.parametrize(
    ("http", "problem"),
    [
        ("{}", ""),
        ("{path: '/a(b|c)*[^/]+', method: GET}", ""),
        ("{path: '/a[]x]'}", ""),
        ("{path: '/a('}", "error parsing regexp: missing closing ): `/a(`"),
        ("{path: '/a)'}", "error parsing regexp: unexpected ): `/a)`"),
        ("{path: '/[a'}", "error parsing regexp: missing closing ]: `[a`"),
        ("{path: '*'}", "error parsing regexp: missing argument to repetition operator: `*`"),
        ("{method: '+'}", "error parsing regexp: missing argument to repetition operator: `+`"),
        ("{headerMatches: [{name: x}]}", ""),
        ("{headerMatches: [{value: x}]}", "Header name missing"),
        ("{headerMatches: [{name: x, mismatch: DROP}]}", "Invalid header action: DROP"),
        ("{headerMatches: [{name: x, secret: {namespace: n}}]}", "Secret name missing"),
    ],
)
def test_http(policies: Policies, http: str, problem: str) -> None:
    """PortRuleHTTP.Sanitize, HeaderMatch; the expressions are compiled by Go's regexp."""
    rules = f"ingress: [{{toPorts: [{{ports: [{{port: '80', protocol: TCP}}], rules: {{http: [{http}]}}}}]}}]"
    assert refused(policies, rules) == problem


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        ("{matchName: a.example.org}", ""),
        ("{matchName: _ldap._tcp.example.org}", ""),
        ("{matchName: 'a b'}", 'Invalid characters in MatchName: "a b"'),
        ("{matchName: '*.example.org'}", 'Invalid characters in MatchName: "*.example.org"'),
        ("{matchPattern: '*.example.org'}", ""),
        ("{matchPattern: 'a/b'}", 'Invalid characters in MatchPattern: "a/b"'),
        ("{matchName: a, matchPattern: b}", "only one of MatchName or MatchPattern is allowed in an FQDNSelector"),
    ],
)
def test_fqdn(policies: Policies, names: str, problem: str) -> None:
    """FQDNSelector.sanitize."""
    found = refused(policies, f"egress: [{{toFQDNs: [{names}]}}]")
    assert found.startswith(problem) if problem else found == ""


@pytest.mark.parametrize(
    ("port", "problem"),
    [
        ("{port: '65535'}", ""),
        ("{port: '65536'}", 'unable to parse port: strconv.ParseUint: parsing "65536": value out of range'),
        ("{port: '-1'}", 'unable to parse port: strconv.ParseUint: parsing "-1": invalid syntax'),
        ("{port: 'a--b'}", 'unable to parse port: strconv.ParseUint: parsing "a--b": invalid syntax'),
        (
            "{port: '1234567890abcdef'}",
            'unable to parse port: strconv.ParseUint: parsing "1234567890abcdef": value out of range',
        ),
        (
            "{port: 'abcdefghijklmnop'}",
            'unable to parse port: strconv.ParseUint: parsing "abcdefghijklmnop": invalid syntax',
        ),
        ("{port: '089'}", 'unable to parse port: strconv.ParseUint: parsing "089": invalid syntax'),
        ("{port: ''}", "port must be specified"),
        ("{protocol: TCP}", "port must be specified"),
        ("{port: '80', protocol: http}", 'invalid protocol "HTTP", must be {'),
        ("{port: '80', protocol: GRE}", 'invalid protocol "GRE", must be {'),
        ("{port: '80', protocol: VRRP}", "port must be empty or 0"),
    ],
)
def test_ports(policies: Policies, port: str, problem: str) -> None:
    """PortProtocol.sanitize; base 0 of ParseUint makes a leading zero octal."""
    found = refused(policies, f"ingress: [{{toPorts: [{{ports: [{port}]}}]}}]")
    assert found.startswith(problem) if problem else found == ""


def test_forty_ports_at_most(policies: Policies) -> None:
    for count, problem in ((40, ""), (41, "too many ports, the max is 40")):
        listed = ", ".join(f"{{port: '{n + 1}'}}" for n in range(count))
        assert refused(policies, f"ingress: [{{toPorts: [{{ports: [{listed}]}}]}}]") == problem


@pytest.mark.parametrize(
    ("item", "problem"),
    [
        ("fromEndpoints: [{}], fromCIDR: [10.0.0.0/8]", "combining FromEndpoints and FromCIDR is not supported yet"),
        (
            "fromCIDR: [10.0.0.0/8], fromCIDRSet: [{cidr: 10.0.0.0/8}]",
            "combining FromCIDR and FromCIDRSet is not supported yet",
        ),
        ("fromEndpoints: [], fromCIDR: [10.0.0.0/8]", ""),  # combined by their length
        ("fromEndpoints: [{}], fromEntities: [world]", "combining FromEndpoints and FromEntities is not supported yet"),
        (
            "icmps: [{fields: [{type: 8}]}], toPorts: [{ports: [{port: '80'}]}]",
            "the ICMPs block may only be present without ToPorts.",
        ),
    ],
)
def test_what_excludes_each_other(policies: Policies, item: str, problem: str) -> None:
    """IngressRule.sanitize: L3 members are counted pairwise in a fixed order."""
    found = refused(policies, f"ingress: [{{{item}}}]")
    assert found.startswith(problem) if problem else found == ""


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("spec: {endpointSelector: {}}", "spec: rule must have at least one of Ingress, IngressDeny, Egress, EgressDeny"),
        ("spec: {ingress: [{}]}", "spec: rule must have one of EndpointSelector or NodeSelector"),
        ("spec: {nodeSelector: {}, ingress: [{}]}", "spec: rule cannot have NodeSelector"),
        ("specs: [{nodeSelector: {}, ingress: [{}]}]", "spec: rule cannot have NodeSelector"),
        (
            "specs: [{endpointSelector: {}}]",
            "specs: rule must have at least one of Ingress, IngressDeny, Egress, EgressDeny",
        ),
        ("specs: []", ""),
        ("status: {}", "spec(s): empty policy"),
    ],
)
def test_whole_objects(policies: Policies, body: str, problem: str) -> None:
    """CiliumNetworkPolicy.Parse (pkg/k8s/apis/cilium.io/v2/cnp_types.go)."""
    found = policies(HEAD + body + "\n", "cilium").rejected
    assert [r.reason for r in found] == ([f"Invalid CiliumNetworkPolicy {problem}"] if problem else [])
