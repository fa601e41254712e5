"""Reachability rules on variations of one job; verdicts follow from policy.md (§1, §2, §5, §6)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from stallscope.findings import Confidence, Finding, Severity

Check = Callable[..., list[Finding]]
Build = Callable[..., dict[str, Any]]
ZONE = "topology.kubernetes.io/zone"
JOB = {"matchLabels": {"training.kubeflow.org/job-name": "llm"}}
UNPINNED = {"spec": {"nodeSelector": {}}}
DNS = {
    "to": [
        {
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}},
            "podSelector": {"matchLabels": {"k8s-app": "kube-dns"}},
        }
    ],
    "ports": [{"protocol": "UDP", "port": 53}],
}


def loud(found: list[Finding]) -> set[str]:
    return {f.rule for f in found if f.severity is not Severity.INFO}


def namespace(labels: dict[str, str] | None = None, annotations: dict[str, str] | None = None) -> dict[str, Any]:
    metadata = {"name": "train", "labels": labels or {}, "annotations": annotations or {}}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


# -- denials -----------------------------------------------------------------------------------------------------


def test_an_open_namespace_has_no_finding(check: Check, pytorch: Build) -> None:
    assert loud(check("", pytorch())) == set()


def test_default_deny_is_one_cause_for_each_kind_of_flow(check: Check, pytorch: Build, policy: Build) -> None:
    deny = policy({"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}, name="default-deny")
    found = [f for f in check("", pytorch(), deny) if f.severity is Severity.ERROR]
    assert sorted(f.rule for f in found) == ["STL201", "STL202", "STL204"]
    assert all("NetworkPolicy train/default-deny" in f.message for f in found)


def test_message_names_pair_port_and_policy(check: Check, pytorch: Build, policy: Build) -> None:
    (found,) = check("STL202", pytorch(), policy({"podSelector": {}, "policyTypes": ["Ingress"]}, name="deny"))
    assert found.message == (
        "llm-worker-0 cannot reach llm-master-0 on TCP 23456: NetworkPolicy train/deny isolates llm-master-0 and no rule "
        "admits this incoming connection"
    )


def test_zones_of_the_witness_stand_in_the_message(check: Check, pytorch: Build, policy: Build, node: Build) -> None:
    deny = policy({"podSelector": {}, "policyTypes": ["Ingress"]})
    nodes = [node("n0", "eu-1a"), *(node(f"m{i}", "eu-1b") for i in range(3))]
    (found,) = check("STL202", pytorch(UNPINNED, UNPINNED), deny, *nodes)
    assert "(zone eu-1" in found.message


def test_egress_to_the_job_alone_lacks_dns_only(check: Check, pytorch: Build, policy: Build) -> None:
    spec = {"podSelector": JOB, "policyTypes": ["Egress"], "egress": [{"to": [{"podSelector": JOB}]}]}
    assert loud(check("", pytorch(), policy(spec))) == {"STL204"}


def test_dns_over_udp_alone_is_an_info(check: Check, pytorch: Build, policy: Build) -> None:
    spec = {"podSelector": JOB, "policyTypes": ["Egress"], "egress": [{"to": [{"podSelector": JOB}]}, DNS]}
    (found,) = check("STL204", pytorch(), policy(spec))
    assert found.severity is Severity.INFO
    assert "TCP 53" in found.message


def test_rendezvous_port_alone_is_the_classic_wrong_fix(check: Check, pytorch: Build, policy: Build) -> None:
    rule = {"from": [{"podSelector": JOB}], "ports": [{"port": 23456}]}
    found = check("", pytorch(), policy({"podSelector": JOB, "ingress": [rule]}))
    assert loud(found) == {"STL203"}


def test_a_wide_port_range_that_misses_the_end_is_a_denial(check: Check, pytorch: Build, policy: Build) -> None:
    """32768-50000 leaves 50001-60999 closed: some channels work, some never do."""
    rule = {"from": [{"podSelector": JOB}], "ports": [{"port": 23456}, {"port": 32768, "endPort": 50000}]}
    found = check("", pytorch(), policy({"podSelector": JOB, "ingress": [rule]}))
    assert loud(found) == {"STL201"}
    assert any("TCP 50001" in f.message for f in found)


def test_an_explicit_deny_points_at_its_rule(check: Check, pytorch: Build, policy: Build) -> None:
    spec = {
        "endpointSelector": JOB,
        "enableDefaultDeny": {"ingress": False},
        "ingressDeny": [{"fromEndpoints": [{"matchLabels": {"training.kubeflow.org/replica-type": "master"}}]}],
    }
    (found,) = check("STL201", pytorch(), policy(spec, kind="CiliumNetworkPolicy", name="boundary"))
    assert "CiliumNetworkPolicy train/boundary denies it" in found.message
    assert found.primary.route[:2] == ("spec", "ingressDeny")


def test_another_namespaces_policy_is_nothing(check: Check, pytorch: Build, policy: Build) -> None:
    deny = policy({"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}, namespace="web")
    assert loud(check("", pytorch(), deny)) == set()


# -- zones -------------------------------------------------------------------------------------------------------


def zone_policy(policy: Build, kind: str = "NetworkPolicy", operator: str = "In") -> dict[str, Any]:
    expression = {"key": ZONE, "operator": operator, "values": ["zone-a"]}
    peer = {"matchExpressions": [expression]}
    if kind == "NetworkPolicy":
        return policy({"podSelector": JOB, "ingress": [{"from": [{"podSelector": peer}]}]}, kind=kind)
    return policy({"endpointSelector": JOB, "ingress": [{"fromEndpoints": [peer]}]}, kind=kind)


def test_without_nodes_a_zone_policy_is_a_question(check: Check, pytorch: Build, policy: Build) -> None:
    found = check("", pytorch(UNPINNED, UNPINNED), zone_policy(policy))
    assert loud(found) == {"STL101", "STL216"}
    assert next(f for f in found if f.rule == "STL216").confidence is Confidence.DEPENDS


def test_before_kubernetes_1_35_the_label_is_on_no_pod(check: Check, pytorch: Build, policy: Build) -> None:
    found = check("STL208", pytorch(), zone_policy(policy), kubernetes_version=(1, 34))
    assert ["before Kubernetes 1.35" in f.message for f in found] == [True]


@pytest.mark.parametrize(
    ("version", "says"),
    [
        ((1, 18, 6), "flips with a patch upgrade"),
        ((1, 18, 7), "does nothing"),
        ((1, 19, 0), "does nothing"),
        ((), "does nothing"),
    ],
)
def test_cilium_versions(check: Check, pytorch: Build, policy: Build, version: tuple[int, ...], says: str) -> None:
    boundary = zone_policy(policy, "CiliumNetworkPolicy")
    (found,) = check("STL208", pytorch(), boundary, cni="cilium", cni_version=version)
    assert says in found.message
    assert any("1.18.7" in n for n in found.notes)


def test_a_negative_selector_is_inverted(check: Check, pytorch: Build, policy: Build) -> None:
    (found,) = check("STL208", pytorch(), zone_policy(policy, "CiliumNetworkPolicy", "NotIn"))
    assert "is inverted" in found.message
    assert any("hits its own zone" in n for n in found.notes)


# -- policies without effect -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("selector", "fires"),
    [
        ({"training.kubeflow.org/job-role": "worker"}, True),  # only masters carry job-role
        ({"pytorch-job-name": "llm"}, True),  # label of operators before v1
        ({"training.kubeflow.org/job-name": "other"}, False),  # another job's policy
        ({"app": "web"}, False),  # another workload's policy
        ({"app": "llm"}, False),
    ],
)
def test_selectors_that_miss(check: Check, pytorch: Build, policy: Build, selector: dict[str, str], fires: bool) -> None:
    same = policy({"podSelector": {"matchLabels": selector}, "ingress": [{"from": [{"podSelector": {}}]}]})
    assert bool(check("STL205", pytorch(), same)) is fires


def test_a_cilium_policy_without_cilium(check: Check, pytorch: Build, policy: Build) -> None:
    same = policy({"endpointSelector": JOB, "ingress": [{}]}, kind="CiliumNetworkPolicy")
    assert loud(check("", pytorch(), same, cni="calico")) == {"STL210"}


# -- mesh --------------------------------------------------------------------------------------------------------

OUT = {"sidecar.istio.io/inject": "false"}


@pytest.mark.parametrize(
    ("labels", "patch", "severity"),
    [
        ({}, {}, None),
        ({"istio-injection": "enabled"}, {}, "warning"),
        ({"istio.io/rev": "stable"}, {}, "warning"),
        ({"istio-injection": "disabled"}, {}, None),
        ({"istio-injection": "enabled"}, {"metadata": {"labels": OUT}}, None),
        ({"istio-injection": "enabled"}, {"metadata": {"annotations": OUT}}, "info"),
        ({"istio-injection": "enabled"}, {"spec": {"hostNetwork": True}}, None),
        ({}, {"metadata": {"labels": {"sidecar.istio.io/inject": "true"}}}, "warning"),
        ({"istio.io/dataplane-mode": "ambient"}, {}, "warning"),
        (
            {"istio.io/dataplane-mode": "ambient"},
            {"metadata": {"labels": {"istio.io/dataplane-mode": "none"}}},
            None,
        ),
    ],
)
def test_istio(check: Check, pytorch: Build, labels: dict[str, str], patch: dict[str, Any], severity: str | None) -> None:
    found = check("STL206", namespace(labels), pytorch(patch, patch))
    assert [str(f.severity) for f in found] == ([severity] if severity else [])


@pytest.mark.parametrize(("own", "fires"), [({}, True), ({"linkerd.io/inject": "disabled"}, False)])
def test_linkerd(check: Check, pytorch: Build, own: dict[str, str], fires: bool) -> None:
    patch = {"metadata": {"annotations": own}}
    meshed = namespace(annotations={"linkerd.io/inject": "enabled"})
    assert bool(check("STL206", meshed, pytorch(patch, patch))) is fires


STRICT = {"mtls": {"mode": "STRICT"}}
RENDEZVOUS_ALONE = {"rules": [{"to": [{"operation": {"ports": ["23456"]}}]}]}
ADMITS_ALL = {"rules": [{}]}


@pytest.mark.parametrize(
    ("kind", "spec", "severity"),
    [
        ("PeerAuthentication", STRICT, Severity.ERROR),
        ("PeerAuthentication", {"mtls": {"mode": "PERMISSIVE"}}, Severity.WARNING),
        ("AuthorizationPolicy", RENDEZVOUS_ALONE, Severity.ERROR),
        ("AuthorizationPolicy", ADMITS_ALL, Severity.WARNING),
    ],
)
def test_what_refuses_pod_traffic_makes_it_an_error(
    check: Check, pytorch: Build, kind: str, spec: dict[str, Any], severity: Severity
) -> None:
    found = check("", namespace({"istio-injection": "enabled"}), security(kind, spec), pytorch())
    (mesh,) = [f for f in found if f.rule == "STL206"]
    assert mesh.severity is severity
    assert loud(found) == {"STL206"}, "one cause, one finding: no policy denies anything, and no L7 rule proxies"


def security(kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    metadata = {"name": "default", "namespace": "train"}
    return {"apiVersion": "security.istio.io/v1", "kind": kind, "metadata": metadata, "spec": spec}


def test_the_rendezvous_port_alone_only_moves_the_hang(check: Check, pytorch: Build) -> None:
    rule = security("AuthorizationPolicy", RENDEZVOUS_ALONE)
    (found,) = check("STL206", namespace({"istio-injection": "enabled"}), rule, pytorch())
    assert any("only moves from init to the first collective" in note for note in found.notes)
    assert any("cannot reach llm-worker-0 on TCP 32768" in note for note in found.notes)


def test_ambient_needs_port_15008_whatever_the_policy_opens(check: Check, pytorch: Build, policy: Build) -> None:
    """ztunnel tunnels pod to pod TCP over HBONE (istio.io, "Ambient and Kubernetes NetworkPolicy")."""
    ports = [{"port": 1024, "endPort": 15007}, {"port": 15009, "endPort": 65535}]
    all_but = policy({"podSelector": {}, "policyTypes": ["Ingress"], "ingress": [{"ports": ports}]})
    ambient = namespace({"istio.io/dataplane-mode": "ambient"})
    found = check("", ambient, all_but, pytorch())
    assert {"STL201", "STL202", "STL206"} <= loud(found)
    (denied,) = [f for f in found if f.rule == "STL201"]
    assert any("network policies see TCP 15008" in note for note in denied.notes)
    opened = policy({"podSelector": {}, "policyTypes": ["Ingress"], "ingress": [{"ports": [{"port": 15008}]}]})
    assert loud(check("", ambient, opened, pytorch())) == {"STL206"}


# -- host network, secondary networks ----------------------------------------------------------------------------


def test_host_network_is_not_reported_as_denied_or_allowed(check: Check, pytorch: Build, policy: Build) -> None:
    host = {"spec": {"hostNetwork": True}}
    found = check("", pytorch(host, host), policy({"podSelector": {}, "policyTypes": ["Ingress"]}))
    assert {f.rule for f in found if f.rule.startswith("STL2")} == {"STL207"}
    assert loud(found) == set()


def test_without_policies_host_network_is_nothing_to_say(check: Check, pytorch: Build) -> None:
    host = {"spec": {"hostNetwork": True}}
    assert check("STL207", pytorch(host, host)) == []


def test_identities_are_counted(check: Check, pytorch: Build, policy: Build) -> None:
    same = policy(
        {"endpointSelector": JOB, "ingress": [{"fromEndpoints": [JOB]}]},
        kind="CiliumNetworkPolicy",
    )
    (found,) = check("STL212", pytorch(workers=299), same)
    assert "needs 300 Cilium identities for 300 pods" in found.message
    assert "training.kubeflow.org/replica-index" in found.message
    assert check("STL212", pytorch(workers=99), same) == []
