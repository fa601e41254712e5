"""Which engine a cluster runs, and which policies it would not enforce."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from stallscope.model.kube import from_body
from stallscope.model.traffic import Endpoint, Verdict
from stallscope.policy.detect import detect_cni
from stallscope.policy.engine import PolicySet

Policies, Ask, Pod = Callable[..., PolicySet], Callable[..., Verdict], Callable[..., Endpoint]

CNP = (
    "apiVersion: cilium.io/v2\nkind: CiliumNetworkPolicy\nmetadata: {name: p, namespace: train}\n"
    "spec: {endpointSelector: {}, ingress: [{}]}\n"
)
CALICO = "apiVersion: projectcalico.org/v3\nkind: GlobalNetworkPolicy\nmetadata: {name: p}\nspec: {types: [Ingress]}\n"
ANP = (
    "apiVersion: policy.networking.k8s.io/v1alpha1\nkind: AdminNetworkPolicy\nmetadata: {name: p}\n"
    "spec: {priority: 1, subject: {namespaces: {}}, ingress: [{action: Deny, from: [{namespaces: {}}]}]}\n"
)
KCNP = ANP.replace("v1alpha1", "v1alpha2").replace("AdminNetworkPolicy", "ClusterNetworkPolicy")
ANTREA = "apiVersion: crd.antrea.io/v1beta1\nkind: ClusterNetworkPolicy\nmetadata: {name: p}\nspec: {priority: 1}\n"
STAGED = "apiVersion: projectcalico.org/v3\nkind: StagedNetworkPolicy\nmetadata: {name: p, namespace: train}\nspec: {}\n"


@pytest.mark.parametrize(
    ("versions", "cni"),
    [
        (["cilium.io/v2", "projectcalico.org/v3"], "cilium"),
        (["crd.projectcalico.org/v1"], "calico"),
        (["operator.tigera.io/v1"], "calico"),
        (["k8s.ovn.org/v1"], "ovn"),
        (["crd.antrea.io/v1beta1"], "antrea"),
        (["v1", "networking.k8s.io/v1", "notcilium.io/v1"], "generic"),
        ([], "generic"),
    ],
)
def test_detection(versions: list[str], cni: str) -> None:
    assert detect_cni([from_body({"apiVersion": v, "kind": "X"}) for v in versions]) == cni


@pytest.mark.parametrize(
    ("text", "cni", "version", "reason"),
    [
        (CNP, "calico", (), "only Cilium enforces CiliumNetworkPolicy, this cluster runs Calico"),
        (CNP, "generic", (), "only Cilium enforces"),
        (CALICO, "cilium", (), "only Calico enforces its own GlobalNetworkPolicy, this cluster runs Cilium"),
        (ANP, "cilium", (1, 19, 4), "Cilium does not implement AdminNetworkPolicy"),
        (KCNP, "cilium", (1, 19, 4), "only from 1.20, with enable-k8s-cluster-network-policy"),
        (KCNP, "cilium", (1, 20, 0), "only from 1.20, with enable-k8s-cluster-network-policy"),
        (KCNP, "ovn", (), "implements the older AdminNetworkPolicy"),
        (KCNP, "calico", (3, 31), "Calico implements ClusterNetworkPolicy from 3.32"),
        (KCNP, "calico", (3, 32), ""),
        (ANP, "calico", (3, 30, 1), ""),
        (ANP, "calico", (3, 32), "in 3.29 to 3.31 only"),
        (ANP, "ovn", (), ""),
        (ANTREA, "cilium", (), "only Antrea enforces ClusterNetworkPolicy of crd.antrea.io"),
        (STAGED, "calico", (), "staged policies are only logged"),
        (CNP, "none", (), "no engine that enforces"),
    ],
)
def test_ignored_with_the_reason(policies: Policies, text: str, cni: str, version: tuple[int, ...], reason: str) -> None:
    policy_set = policies(text, cni, version=version)
    assert [reason in i.reason for i in policy_set.ignored] == ([True] if reason else [])
    assert [p.name for p in policy_set.policies] == ([] if reason else ["p"])


def test_a_dialect_that_is_not_modelled_makes_verdicts_unjudged(policies: Policies, ask: Ask, pod: Pod) -> None:
    verdict = ask(policies(ANTREA, "antrea"), pod("b"), pod("a"))
    assert verdict.outcome == "unjudged"
    assert "crd.antrea.io is not modelled" in verdict.reason


def test_nothing_is_enforced_without_an_engine(policies: Policies, ask: Ask, pod: Pod) -> None:
    text = "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: zones, namespace: train}\n"
    text += "spec: {podSelector: {}}\n"
    assert ask(policies(text, "none"), pod("b"), pod("a")).outcome == "allowed"
