"""
Peers read from cilium/cilium: pkg/policy/api/entity.go, pkg/policy/utils/parserules.go (mergeEndpointSelectors),
pkg/policy/types (CIDRSelector), pkg/labels/cidr.go, pkg/policy/k8s/service.go, pkg/fqdn/matchpattern.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from stallscope.model.traffic import Endpoint, Verdict
from stallscope.policy.engine import PolicySet

Policies, Ask, Pod = Callable[..., PolicySet], Callable[..., Verdict], Callable[..., Endpoint]

POLICY = {"allow-localhost": "policy"}
NODE = {"enable-node-selector-labels": "true", "allow-localhost": "policy"}


def cnp(rules: str, selector: str = "{}") -> str:
    return (
        "apiVersion: cilium.io/v2\nkind: CiliumNetworkPolicy\nmetadata: {name: p, namespace: train}\n"
        f"spec: {{endpointSelector: {selector}, {rules}}}\n---\n"
    )


PEERS: dict[str, Endpoint] = {
    "pod": Endpoint(name="b", namespace="other"),
    "host": Endpoint(name="h", reserved=("host",)),
    "remote-node": Endpoint(name="r", reserved=("remote-node",)),
    "kube-apiserver": Endpoint(name="k", reserved=("kube-apiserver", "remote-node")),
    "apiserver-outside": Endpoint(name="ko", reserved=("kube-apiserver",), ip="9.9.9.9"),
    "health": Endpoint(name="he", reserved=("health",)),
    "init": Endpoint(name="i", reserved=("init",)),
    "ingress": Endpoint(name="g", reserved=("ingress",)),
    "unmanaged": Endpoint(name="u", reserved=("unmanaged",)),
    "v4": Endpoint(name="x", ip="8.8.8.8"),
    "v6": Endpoint(name="y", ip="2001:db8::1"),
}
CLUSTER = {"pod", "host", "remote-node", "kube-apiserver", "apiserver-outside", "health", "init", "ingress", "unmanaged"}
OUTSIDE = {"apiserver-outside", "v4", "v6"}


def admitted(policy_set: PolicySet, ask: Ask, destination: Endpoint) -> set[str]:
    return {name for name, peer in PEERS.items() if ask(policy_set, peer, destination).ingress.outcome == "allowed"}


@pytest.mark.parametrize(
    ("entity", "found"),
    [
        ("all", set(PEERS)),
        ("cluster", CLUSTER),
        ("host", {"host"}),
        ("remote-node", {"remote-node", "kube-apiserver"}),
        ("kube-apiserver", {"kube-apiserver", "apiserver-outside"}),
        ("health", {"health"}),
        ("init", {"init"}),
        ("ingress", {"ingress"}),
        ("unmanaged", {"unmanaged"}),
        ("world", OUTSIDE),
        ("none", set()),
    ],
)
def test_entities(policies: Policies, ask: Ask, pod: Pod, entity: str, found: set[str]) -> None:
    """EntitySelectorMapping: ``cluster`` lists the reserved identities of the cluster plus its own cluster label."""
    policy_set = policies(cnp(f"ingress: [{{fromEntities: [{entity}]}}]"), "cilium", options=POLICY)
    assert admitted(policy_set, ask, pod("a")) == found


@pytest.mark.parametrize(
    ("entity", "single", "dual"),
    [("world", OUTSIDE, OUTSIDE), ("world-ipv4", set(), {"apiserver-outside", "v4"}), ("world-ipv6", set(), {"v6"})],
)
def test_the_world_is_split_by_family_on_dual_stack(
    policies: Policies, ask: Ask, pod: Pod, entity: str, single: set[str], dual: set[str]
) -> None:
    """pkg/labels/cidr.go getWorldLabel (option.Config.IsDualStack)."""
    text = cnp(f"ingress: [{{fromEntities: [{entity}]}}]")
    assert admitted(policies(text, "cilium", options=POLICY), ask, pod("a")) == single
    both = policies(text, "cilium", options={**POLICY, "enable-ipv6": "true"})
    assert admitted(both, ask, pod("a")) == dual


@pytest.mark.parametrize(
    ("rule", "found"),
    [
        ("fromCIDR: [0.0.0.0/0]", {"apiserver-outside", "v4"}),
        ('fromCIDR: ["::/0"]', {"v6"}),
        ("fromCIDR: [8.8.8.8]", {"v4"}),
        ("fromCIDR: [8.8.8.9/24]", {"v4"}),  # host bits are masked
        ('fromCIDR: ["2001:db8::/32"]', {"v6"}),
        ("fromCIDRSet: [{cidr: 8.0.0.0/8, except: [8.8.0.0/16]}]", set()),
        ("fromCIDRSet: [{cidr: 8.0.0.0/8, except: [8.9.0.0/16]}]", {"v4"}),
        ("fromCIDRSet: [{cidr: 8.0.0.0/8, except: [8.8.0.0/16]}, {cidr: 8.8.8.0/24}]", {"v4"}),
        ("fromEndpoints: []", set()),
        ("fromEntities: []", set()),
        ("fromCIDR: []", set()),
        ("fromCIDRSet: []", set()),
        ("fromNodes: []", set()),
        ("fromGroups: [], toPorts: []", set()),  # no L3 and no ports: only default deny
    ],
)
def test_cidrs_and_empty_lists(policies: Policies, ask: Ask, pod: Pod, rule: str, found: set[str]) -> None:
    """mergeEndpointSelectors: a list that is there but empty selects nobody."""
    policy_set = policies(cnp(f"ingress: [{{{rule}}}]"), "cilium", options=NODE)
    assert admitted(policy_set, ask, pod("a")) == found


@pytest.mark.parametrize("field", ["toFQDNs", "toServices", "toGroups"])
def test_empty_lists_that_count_as_absent(policies: Policies, ask: Ask, pod: Pod, field: str) -> None:
    """mergeEndpointSelectors merges these by their length: empty with ports = any peer on these ports."""
    policy_set = policies(cnp(f'egress: [{{{field}: [], toPorts: [{{ports: [{{port: "80"}}]}}]}}]'), "cilium")
    assert [ask(policy_set, pod("a"), pod("other/b"), p).outcome for p in (80, 81)] == ["allowed", "denied"]


@pytest.mark.parametrize("empty", ["toEndpoints", "toEntities", "toCIDR", "toCIDRSet", "toNodes"])
def test_empty_lists_that_select_nobody(policies: Policies, ask: Ask, pod: Pod, empty: str) -> None:
    policy_set = policies(cnp(f'egress: [{{{empty}: [], toPorts: [{{ports: [{{port: "80"}}]}}]}}]'), "cilium", options=NODE)
    assert ask(policy_set, pod("a"), pod("other/b"), 80).outcome == "denied"


def test_cidrs_match_nodes_only_in_that_mode(policies: Policies, ask: Ask, pod: Pod) -> None:
    """policy-cidr-match-mode=nodes (a list option of the agent)."""
    node = Endpoint(name="n", reserved=("remote-node",), ip="10.0.0.5")
    text = cnp("ingress: [{fromCIDR: [10.0.0.0/24]}]")
    assert ask(policies(text, "cilium"), node, pod("a")).outcome == "denied"
    for value in ("nodes", "nodes,", " nodes "):
        assert ask(policies(text, "cilium", options={"policy-cidr-match-mode": value}), node, pod("a")).outcome == "allowed"


def test_node_selectors(policies: Policies, ask: Ask, pod: Pod) -> None:
    """NodeSelector: labels of source node on remote-node identities; the flag enable-node-selector-labels."""
    gpu = Endpoint(name="g", reserved=("remote-node",), node_labels=(("pool", "gpu"),))
    cpu = Endpoint(name="c", reserved=("remote-node",), node_labels=(("pool", "cpu"),))
    text = cnp("ingress: [{fromNodes: [{matchLabels: {pool: gpu}}]}]")
    policy_set = policies(text, "cilium", options=NODE)
    assert [ask(policy_set, n, pod("a")).outcome for n in (gpu, cpu, pod("b", pool="gpu"))] == [
        "allowed",
        "denied",
        "denied",
    ]
    [refused] = policies(text, "cilium").rejected
    assert "enable-node-selector-labels" in refused.reason


@pytest.mark.parametrize(
    ("item", "found"),
    [
        ("k8sService: {serviceName: s, namespace: other}", ["other/r"]),
        ("k8sService: {serviceName: s}", ["train/r", "other/r"]),  # no namespace = any
        ("k8sServiceSelector: {selector: {matchLabels: {kind: db}}, namespace: train}", ["train/r"]),
        ("k8sServiceSelector: {selector: {matchLabels: {kind: db}}}", ["train/r", "other/r"]),
        (
            "k8sService: {serviceName: s, namespace: other}, "
            "k8sServiceSelector: {selector: {matchLabels: {kind: db}}, namespace: train}",
            ["train/r"],
        ),
    ],
)
def test_services(policies: Policies, ask: Ask, pod: Pod, item: str, found: list[str]) -> None:
    """pkg/policy/k8s/service.go: serviceSelectorMatches, serviceRefMatches."""
    services = "".join(
        f"apiVersion: v1\nkind: Service\nmetadata: {{name: s, namespace: {n}, labels: {{kind: db}}}}\n"
        "spec: {selector: {app: r}}\n---\n"
        for n in ("train", "other")
    )
    policy_set = policies(cnp(f"egress: [{{toServices: [{{{item}}}]}}]") + services, "cilium")
    ends = {n: pod(n, app="r") for n in ("train/r", "other/r")} | {"q": pod("q")}
    assert [n for n, e in ends.items() if ask(policy_set, pod("a"), e).outcome == "allowed"] == found


@pytest.mark.parametrize(
    ("selector", "name", "matches"),
    [
        ("matchName: a.example.org", "a.example.org", True),
        ("matchName: A.Example.org.", "a.example.org", True),
        ("matchName: a.example.org", "b.example.org", False),
        ('matchPattern: "*.example.org"', "a.example.org", True),
        ('matchPattern: "*.example.org"', "a.b.example.org", False),  # * stays within a label
        ('matchPattern: "*.example.org"', "example.org", False),
        ('matchPattern: "**.example.org"', "a.b.example.org", True),
        ('matchPattern: "**.example.org"', "example.org", False),
        ('matchPattern: "a*.example.org"', "a1.example.org", True),
        ('matchPattern: "a*.example.org"', "a.example.org", True),
        ('matchPattern: "a*b.example.org"', "ab.example.org", True),
        ('matchPattern: "*"', "x.y.z", True),
        ('matchPattern: "*"', "x", True),
        ('matchPattern: "*.*"', "x.y", True),
        ('matchPattern: "*.*"', "x.y.z", False),
        ('matchPattern: "axexample.org"', "a.example.org", False),
    ],
)
def test_names(policies: Policies, ask: Ask, pod: Pod, selector: str, name: str, matches: bool) -> None:
    """pkg/fqdn/matchpattern ToAnchoredRegexp; pkg/fqdn/dns FQDN."""
    policy_set = policies(
        cnp(f"egress: [{{toFQDNs: [{{{selector}}}]}}]"), "cilium", options={"fqdn-cache": f"{name}=8.8.8.8"}
    )
    assert (ask(policy_set, pod("a"), PEERS["v4"]).outcome == "allowed") is matches
    assert ask(policy_set, pod("a"), PEERS["v6"]).outcome == "denied"
    assert ask(policy_set, pod("a"), pod("b")).outcome == "denied"


def test_identities_written_as_labels(policies: Policies, ask: Ask, pod: Pod) -> None:
    """FQDN and CIDR group identities carry ``fqdn:`` and ``cidrgroup:`` labels (api/fqdn.go IdentityLabel, api/cidr.go)."""
    named = Endpoint(name="f", raw_labels=("fqdn:a.example.org", "reserved:world"))
    grouped = Endpoint(name="g", raw_labels=("cidrgroup:io.cilium.policy.cidrgroupname/dns", "reserved:world"))
    single = Endpoint(name="c", raw_labels=("cidr:9.9.9.9/32", "reserved:world"))
    names = policies(cnp("egress: [{toFQDNs: [{matchName: a.example.org}]}]"), "cilium")
    assert ask(names, pod("a"), named).outcome == "allowed"
    groups = policies(cnp("egress: [{toCIDRSet: [{cidrGroupRef: dns}]}]"), "cilium")
    assert ask(groups, pod("a"), grouped).outcome == "allowed"
    cidrs = policies(cnp("egress: [{toCIDR: [9.9.9.0/24]}]"), "cilium")
    assert [ask(cidrs, pod("a"), e).outcome for e in (single, PEERS["v4"])] == ["allowed", "denied"]


def test_groups_need_the_cloud(policies: Policies, ask: Ask, pod: Pod) -> None:
    """toGroups is resolved by the operator from the cloud provider: not known here, and never a pod."""
    policy_set = policies(cnp("egress: [{toGroups: [{aws: {securityGroupsIds: [sg-1]}}]}]"), "cilium")
    assert ask(policy_set, pod("a"), pod("b")).outcome == "denied"
    assert ask(policy_set, pod("a"), PEERS["v4"]).outcome == "unjudged"
