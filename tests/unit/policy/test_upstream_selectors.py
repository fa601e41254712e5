"""
Selector defaults read from cilium/cilium: pkg/k8s/apis/cilium.io/utils/utils.go (ParseToCiliumRule, getEndpointSelector),
pkg/k8s/network_policy.go (parsePodSelector, ParseNetworkPolicyPeer), pkg/labels (parseSource).
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from stallscope.model.traffic import Endpoint, Protocol, Verdict
from stallscope.policy.engine import PolicySet

Policies, Ask, Pod = Callable[..., PolicySet], Callable[..., Verdict], Callable[..., Endpoint]

NS = "k8s:io.kubernetes.pod.namespace"
META = "io.cilium.k8s.namespace.labels"


def cnp(selector: str, rules: str, name: str = "p") -> str:
    return (
        f"apiVersion: cilium.io/v2\nkind: CiliumNetworkPolicy\nmetadata: {{name: {name}, namespace: train}}\n"
        f"spec: {{endpointSelector: {selector}, {rules}}}\n---\n"
    )


def ccnp(selector: str, rules: str) -> str:
    return (
        "apiVersion: cilium.io/v2\nkind: CiliumClusterwideNetworkPolicy\nmetadata: {name: c}\n"
        f"spec: {{endpointSelector: {selector}, {rules}}}\n---\n"
    )


def expression(key: str, operator: str, *values: str) -> str:
    listed = f", values: [{', '.join(values)}]" if values else ""
    return f'{{matchExpressions: [{{key: "{key}", operator: {operator}{listed}}}]}}'


@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        (f'{{matchLabels: {{"{NS}": other}}}}', True),  # AddMatch writes the policy's namespace over it
        (expression(NS, "In", "other"), False),  # AddMatch leaves expressions alone: both must hold
        (expression(NS, "In", "other", "train"), True),
        (f'{{matchLabels: {{"{META}.team": ml}}}}', True),
        (f'{{matchLabels: {{"{META}.team": web}}}}', False),
    ],
)
def test_a_policy_subject_stays_in_its_namespace(
    policies: Policies, ask: Ask, pod: Pod, selector: str, selected: bool
) -> None:
    """ParseToCiliumRule: ``retRule.EndpointSelector.AddMatch(podPrefixLbl, namespace)``."""
    policy_set = policies(cnp(selector, "ingress: [{}]"), "cilium")
    expected = "denied" if selected else "allowed"
    assert ask(policy_set, pod("b"), pod("a")).outcome == expected
    assert ask(policy_set, pod("b"), pod("other/a")).outcome == "allowed"


@pytest.mark.parametrize(
    ("peer", "admitted"),
    [
        ("{}", ["train"]),
        ("{matchLabels: {app: x}}", ["train"]),
        (f'{{matchLabels: {{"{NS}": other}}}}', ["other"]),
        ('{matchLabels: {"io.kubernetes.pod.namespace": other}}', ["other"]),  # any: source counts too
        (expression(NS, "NotIn", "train"), ["other"]),
        (expression(NS, "Exists"), ["train", "other"]),
        (f'{{matchLabels: {{"{META}.team": web}}}}', ["other"]),  # a namespace label lifts the default
        (f'{{matchLabels: {{"k8s:{META}.team": web}}}}', ["other"]),
        (expression(f"{META}.team", "Exists"), ["train", "other"]),
        (expression(f"{META}xteam", "DoesNotExist"), ["train"]),  # the prefix ends in a dot
        ("{matchLabels: {reserved:host: ''}}", []),  # a reserved key: no default at all
        (expression("reserved:host", "DoesNotExist"), ["train", "other"]),
        (expression("reserved.host", "DoesNotExist"), ["train", "other"]),  # parseSource: reserved.x is reserved:x
        ('{matchLabels: {"container:app": x}}', []),
        ('{matchLabels: {"unspec:app": x}}', []),
        ('{matchLabels: {"any:app": x}}', ["train"]),
    ],
)
def test_peers_of_a_namespaced_policy(policies: Policies, ask: Ask, pod: Pod, peer: str, admitted: list[str]) -> None:
    """getEndpointSelector(namespace, …): the policy's namespace unless the selector names one."""
    policy_set = policies(cnp("{}", f"ingress: [{{fromEndpoints: [{peer}]}}]"), "cilium")
    found = [n for n in ("train", "other") if ask(policy_set, pod(f"{n}/b", app="x"), pod("a")).outcome == "allowed"]
    assert found == admitted


@pytest.mark.parametrize(
    ("peer", "pods", "host"),
    [
        ("{}", True, False),  # clusterwide: "is in some namespace" keeps nodes and the world out
        (expression("app", "DoesNotExist"), False, False),
        (expression("reserved:health", "DoesNotExist"), True, True),
        ("{matchLabels: {reserved:host: ''}}", False, True),
    ],
)
def test_peers_of_a_clusterwide_policy(policies: Policies, ask: Ask, pod: Pod, peer: str, pods: bool, host: bool) -> None:
    """getEndpointSelector with an empty namespace: podPrefixLbl Exists; nothing with a reserved key."""
    policy_set = policies(
        ccnp("{}", f"ingress: [{{fromEndpoints: [{peer}]}}]"), "cilium", options={"allow-localhost": "policy"}
    )
    sources = (pod("other/b", app="x"), Endpoint(name="n", reserved=("host",)))
    assert [ask(policy_set, s, pod("a")).outcome == "allowed" for s in sources] == [pods, host]


@pytest.mark.parametrize(("selector", "init_peer"), [("{matchLabels: {reserved:init: ''}}", True), ("{}", False)])
def test_only_policies_for_init_see_peers_without_namespace(
    policies: Policies, ask: Ask, pod: Pod, selector: str, init_peer: bool
) -> None:
    """ParseToCiliumRule: ``matchesInit`` looks at the key reserved:init alone."""
    policy_set = policies(ccnp(selector, "ingress: [{fromEndpoints: [{}]}]"), "cilium")
    destination = Endpoint(name="i", reserved=("init",)) if init_peer else pod("a")
    peer = Endpoint(name="i2", reserved=("init",), raw_labels=("k8s:io.cilium.k8s.policy.cluster=default",))
    assert (ask(policy_set, peer, destination).ingress.outcome == "allowed") is init_peer


def test_a_cluster_name_lifts_the_local_cluster(policies: Policies, ask: Ask, pod: Pod) -> None:
    """addClusterFilterByDefault, option policy-default-local-cluster (on from 1.19)."""
    far = Endpoint(
        name="far",
        raw_labels=("k8s:app=x", "k8s:io.kubernetes.pod.namespace=train", "k8s:io.cilium.k8s.policy.cluster=c2"),
    )
    text = cnp("{}", "ingress: [{fromEndpoints: [{matchLabels: {app: x}}]}]")
    named = text.replace("app: x}", 'app: x, "k8s:io.cilium.k8s.policy.cluster": c2}')
    assert ask(policies(text, "cilium"), far, pod("a")).outcome == "denied"
    assert ask(policies(named, "cilium"), far, pod("a")).outcome == "allowed"
    assert ask(policies(text, "cilium", version=(1, 18, 3)), far, pod("a")).outcome == "allowed"
    off = policies(text, "cilium", options={"policy-default-local-cluster": "false"})
    assert ask(off, far, pod("a")).outcome == "allowed"


@pytest.mark.parametrize(
    ("operator", "values", "with_key", "without"),
    [
        ("In", ["x"], True, False),
        ("In", ["y"], False, False),
        ("NotIn", ["x"], False, True),
        ("NotIn", ["y"], True, True),
        ("Exists", [], True, False),
        ("DoesNotExist", [], False, True),
    ],
)
def test_operators(
    policies: Policies, ask: Ask, pod: Pod, operator: str, values: list[str], with_key: bool, without: bool
) -> None:
    """pkg/policy/types/requirements.go: NotIn and DoesNotExist hold where the key is absent."""
    policy_set = policies(cnp("{}", f"ingress: [{{fromEndpoints: [{expression('app', operator, *values)}]}}]"), "cilium")
    assert [ask(policy_set, s, pod("a")).outcome == "allowed" for s in (pod("b", app="x"), pod("c"))] == [with_key, without]


def netpol(body: str) -> str:
    return f"apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {{name: np, namespace: train}}\nspec: {body}\n"


NETPOL_NS = '"io.kubernetes.pod.namespace"'


def test_networkpolicy_selectors_cannot_leave_the_namespace(policies: Policies, ask: Ask, pod: Pod) -> None:
    """parsePodSelector writes the namespace label over the user's own."""
    subject = policies(netpol(f"{{podSelector: {{matchLabels: {{{NETPOL_NS}: other}}}}, ingress: []}}"), "cilium")
    assert ask(subject, pod("b"), pod("a")).outcome == "denied"
    peer = policies(netpol("{podSelector: {}, ingress: [{from: [{podSelector: {}}]}]}"), "cilium")
    assert [ask(peer, s, pod("a")).outcome for s in (pod("b"), pod("other/b"))] == ["allowed", "denied"]


@pytest.mark.parametrize(
    ("peers", "train", "other", "host", "outside"),
    [
        ("", True, True, True, True),  # no from: wildcard
        ("from: []", True, True, True, True),
        ("from: [{}]", False, False, False, False),  # a peer without anything selects nobody
        ("from: [{podSelector: {}, namespaceSelector: {}}]", True, True, False, False),
        ("from: [{namespaceSelector: {matchLabels: {team: web}}}]", False, True, False, False),
        ("from: [{ipBlock: {cidr: 0.0.0.0/0}}]", False, False, False, True),
        ("from: [{ipBlock: {cidr: 0.0.0.0/0, except: [8.0.0.0/8]}}]", False, False, False, False),
    ],
)
def test_networkpolicy_peers(
    policies: Policies, ask: Ask, pod: Pod, peers: str, train: bool, other: bool, host: bool, outside: bool
) -> None:
    """ParseNetworkPolicy: an empty from is WildcardEndpointSelector; ParseNetworkPolicyPeer; ipBlockToCIDRRule."""
    policy_set = policies(
        netpol(f"{{podSelector: {{}}, ingress: [{{{peers}}}]}}"), "cilium", options={"allow-localhost": "policy"}
    )
    ends = (pod("b"), pod("other/b"), Endpoint(name="n", reserved=("host",)), Endpoint(name="x", ip="8.8.8.8"))
    assert [ask(policy_set, e, pod("a")).outcome == "allowed" for e in ends] == [train, other, host, outside]


@pytest.mark.parametrize(
    ("spec", "ingress", "egress"),
    [
        ("{podSelector: {}}", True, False),
        ("{podSelector: {}, egress: [{}]}", True, False),  # egress with rules: isolated, everything admitted
        ("{podSelector: {}, policyTypes: [Egress]}", False, True),
        ("{podSelector: {}, policyTypes: [Ingress, Egress]}", True, True),
        ("{podSelector: {}, policyTypes: [Ingress], egress: []}", True, False),
    ],
)
def test_networkpolicy_directions(policies: Policies, ask: Ask, pod: Pod, spec: str, ingress: bool, egress: bool) -> None:
    """ParseNetworkPolicy: hasV1PolicyType; a typed direction without rules gets one rule that admits nobody."""
    policy_set = policies(netpol(spec), "cilium")
    assert (ask(policy_set, pod("other/b"), pod("a")).outcome == "denied") is ingress
    assert (ask(policy_set, pod("a"), pod("other/b")).outcome == "denied") is egress


@pytest.mark.parametrize(
    ("ports", "admitted"),
    [
        ("[{port: 80}]", [80]),
        ('[{port: "80"}]', [80]),  # a numeric string goes through the port number parser of the agent
        ("[{port: 80, endPort: 90}]", [80, 85, 90]),
        ("[{protocol: TCP}]", [1, 80, 85, 90, 91]),
        ("[{protocol: UDP}]", []),
        ("[{port: web}]", [85]),
        ("[{port: nope}]", []),
    ],
)
def test_networkpolicy_ports(policies: Policies, ask: Ask, pod: Pod, ports: str, admitted: list[int]) -> None:
    """parsePorts (pkg/k8s/network_policy.go): protocol TCP by default, port absent = "0"."""
    policy_set = policies(netpol(f"{{podSelector: {{}}, ingress: [{{ports: {ports}}}]}}"), "cilium")
    end = pod("a", end={"named_ports": (("web", Protocol.TCP, 85),)})
    assert [p for p in (1, 80, 85, 90, 91) if ask(policy_set, pod("b"), end, p).outcome == "allowed"] == admitted
