"""
Identity and enforcement read from cilium/cilium: pkg/labelsfilter/filter.go, pkg/k8s/labels.go (GetPodMetadata),
pkg/policy/repository.go (computePolicyEnforcementAndRules), pkg/policy/mapstate.go (determineAllowLocalhostIngress).
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from stallscope.model.traffic import Endpoint, Verdict
from stallscope.policy.engine import PolicySet

Policies, Ask, Pod = Callable[..., PolicySet], Callable[..., Verdict], Callable[..., Endpoint]

HOST, REMOTE = Endpoint(name="h", reserved=("host",)), Endpoint(name="r", reserved=("remote-node",))


def cnp(rules: str, selector: str = "{}", kind: str = "CiliumNetworkPolicy") -> str:
    place = ", namespace: train" if kind == "CiliumNetworkPolicy" else ""
    return (
        f"apiVersion: cilium.io/v2\nkind: {kind}\nmetadata: {{name: p{place}}}\n"
        f"spec: {{endpointSelector: {selector}, {rules}}}\n---\n"
    )


@pytest.mark.parametrize(
    ("labels", "key", "kept"),
    [
        ("", "app", True),
        ("", "app.kubernetes.io/name", True),
        ("", "batch.kubernetes.io/job-completion-index", False),
        ("", "pod-template-hash", False),
        ("", "controller-uid", False),
        ("", "apps.kubernetes.io/pod-index", False),
        ("", "kubernetes.io/arch", False),
        ("", "batch.kubernetes.io/job-name", True),
        ("", "annotation.x", False),
        ("k8s:app", "app", True),  # one inclusive pattern: everything else leaves
        ("k8s:app", "zone", False),
        ("app zone", "zone", True),
        ("k8s:!zone", "zone", False),  # exclusive patterns only: the rest stays
        ("k8s:!zone", "app", True),
        ("!zone app", "zone", False),
        ("container:zone", "zone", False),  # another source's pattern still makes the filter inclusive
        ("zo", "zone", True),  # a pattern is a prefix
        (
            "k8s:batch\\.kubernetes\\.io/job-completion-index",
            "batch.kubernetes.io/job-completion-index",
            False,
        ),  # a tie is lost
    ],
)
def test_which_labels_are_identity(policies: Policies, ask: Ask, pod: Pod, labels: str, key: str, kept: bool) -> None:
    """labelPrefixCfg.filterLabels: longest include against shortest ignore. Namespace labels kept by the defaults."""
    text = cnp(f'ingress: [{{fromEndpoints: [{{matchLabels: {{"{key}": x}}}}]}}]')
    policy_set = policies(text, "cilium", options={"labels": labels})
    assert (ask(policy_set, pod("b", **{key: "x"}), pod("a")).outcome == "allowed") is kept


def test_namespace_labels_pass_the_filter_too(policies: Policies, ask: Ask, pod: Pod) -> None:
    """Labels derived from the namespace are filtered like the pod's own (GetPodMetadata, then labelsfilter.Filter)."""
    text = cnp("ingress: [{fromEndpoints: [{matchLabels: {io.cilium.k8s.namespace.labels.team: web}}]}]")
    for labels, expected in (("", "allowed"), ("k8s:!io\\.cilium\\.k8s\\.namespace\\.labels\\.team", "denied")):
        policy_set = policies(text, "cilium", options={"labels": labels})
        assert ask(policy_set, pod("other/b"), pod("a")).outcome == expected, labels


def test_service_account_label(policies: Policies, ask: Ask, pod: Pod) -> None:
    text = cnp("ingress: [{fromEndpoints: [{matchLabels: {io.cilium.k8s.policy.serviceaccount: trainer}}]}]")
    policy_set = policies(text, "cilium")
    ends = (pod("b", end={"service_account": "trainer"}), pod("c"))
    assert [ask(policy_set, e, pod("a")).outcome for e in ends] == ["allowed", "denied"]


def test_a_label_named_host_switches_policy_off(policies: Policies, ask: Ask, pod: Pod) -> None:
    """computePolicyEnforcementAndRules: ``securityIdentity.LabelArray.Has(labels.IDNameHost)`` ignores the source."""
    text = cnp("ingress: [{fromEndpoints: [{matchLabels: {app: x}}]}]")
    for options, expected in (({}, "allowed"), ({"enable-host-firewall": "true"}, "denied")):
        policy_set = policies(text, "cilium", options=options)
        assert ask(policy_set, pod("b"), pod("a", host="yes")).outcome == expected
        assert ask(policy_set, pod("b"), pod("a")).outcome == "denied"


def test_a_label_named_init_is_default_deny(policies: Policies, ask: Ask, pod: Pod) -> None:
    """The same function: default deny for ``init`` when nothing else decides."""
    text = cnp("ingress: [{fromEndpoints: [{matchLabels: {app: x}}]}], enableDefaultDeny: {ingress: false}")
    policy_set = policies(text, "cilium")
    ends = (pod("a", init="1"), pod("c"))
    assert [ask(policy_set, pod("b"), e).ingress.outcome for e in ends] == ["denied", "allowed"]
    assert ask(policy_set, pod("b", app="x"), ends[0]).ingress.outcome == "allowed"


@pytest.mark.parametrize(
    ("mode", "selected", "free"),
    [("default", "denied", "allowed"), ("always", "denied", "denied"), ("never", "allowed", "allowed")],
)
def test_enforcement_modes(policies: Policies, ask: Ask, pod: Pod, mode: str, selected: str, free: str) -> None:
    policy_set = policies(cnp("ingress: [{}]", "{matchLabels: {app: x}}"), "cilium", options={"enable-policy": mode})
    ends = (pod("a", app="x"), pod("c"))
    assert [ask(policy_set, pod("b"), e).ingress.outcome for e in ends] == [selected, free]


@pytest.mark.parametrize(
    ("rules", "option", "host", "remote"),
    [
        ("ingress: [{}]", "auto", "allowed", "denied"),
        ("ingress: [{}]", "always", "allowed", "denied"),
        ("ingress: [{}]", "policy", "denied", "denied"),
        ("ingress: [{fromEntities: [host]}]", "policy", "allowed", "denied"),
        ("ingressDeny: [{fromEntities: [host]}]", "auto", "denied", "denied"),
        ("ingressDeny: [{fromEntities: [all]}]", "auto", "denied", "denied"),
        ("ingress: [{fromEntities: [cluster]}]", "policy", "allowed", "allowed"),
    ],
)
def test_the_own_node(policies: Policies, ask: Ask, pod: Pod, rules: str, option: str, host: str, remote: str) -> None:
    """determineAllowLocalhostIngress: an allow of identity 1 unless a rule denies it."""
    policy_set = policies(cnp(rules), "cilium", options={"allow-localhost": option})
    assert [ask(policy_set, n, pod("a")).outcome for n in (HOST, REMOTE)] == [host, remote]


def test_nodes_have_no_policy_without_the_host_firewall(policies: Policies, ask: Ask, pod: Pod) -> None:
    text = cnp("ingressDeny: [{fromEntities: [all]}]", kind="CiliumClusterwideNetworkPolicy").replace(
        "endpointSelector", "nodeSelector"
    )
    assert not ask(policies(text, "cilium"), pod("a"), HOST).ingress.enforced
    on = policies(text, "cilium", options={"enable-host-firewall": "true"})
    assert [ask(on, pod("a"), n).ingress.outcome for n in (HOST, REMOTE)] == ["denied", "allowed"]
    assert ask(on, pod("b"), pod("a")).outcome == "allowed", "a node selector selects no pods"


@pytest.mark.parametrize(
    ("selector", "health", "plain"),
    [
        ("{}", "denied", "denied"),
        ("{matchLabels: {reserved:health: ''}}", "denied", "allowed"),
        ("{matchLabels: {app: x}}", "allowed", "allowed"),
    ],
)
def test_reserved_endpoints_are_selected_by_clusterwide_policies(
    policies: Policies, ask: Ask, pod: Pod, selector: str, health: str, plain: str
) -> None:
    """A clusterwide endpointSelector carries no namespace: it matches health and ingress endpoints as well."""
    policy_set = policies(cnp("ingress: [{}]", selector, "CiliumClusterwideNetworkPolicy"), "cilium")
    ends = (Endpoint(name="he", reserved=("health",)), pod("a"))
    assert [ask(policy_set, REMOTE, e).ingress.outcome for e in ends] == [health, plain]


def test_nodes_carry_their_cluster_only_with_node_labels(policies: Policies, ask: Ask, pod: Pod) -> None:
    """pkg/node/manager nodeIdentityLabels: the cluster label comes with the node labels, not before."""
    negative = "{matchExpressions: [{key: io.cilium.k8s.namespace.labels.team, operator: NotIn, values: [web]}]}"
    text = cnp(f"ingress: [{{fromEndpoints: [{negative}]}}]")
    for flag, local, expected in (("false", "true", "denied"), ("true", "true", "allowed"), ("false", "false", "allowed")):
        options = {"enable-node-selector-labels": flag, "policy-default-local-cluster": local}
        assert ask(policies(text, "cilium", options=options), REMOTE, pod("a")).outcome == expected, options


def test_node_selectors_keep_to_the_local_cluster(policies: Policies, ask: Ask, pod: Pod) -> None:
    """getNodeSelector: addClusterFilterByDefault."""
    far = Endpoint(name="far", raw_labels=("reserved:remote-node", "node:pool=gpu", "k8s:io.cilium.k8s.policy.cluster=c2"))
    text = cnp("ingress: [{fromNodes: [{matchLabels: {pool: gpu}}]}]")
    for local, expected in (("true", "denied"), ("false", "allowed")):
        options = {"enable-node-selector-labels": "true", "policy-default-local-cluster": local}
        assert ask(policies(text, "cilium", options=options), far, pod("a")).outcome == expected
