"""Zone labels, policies that select nobody, identities: reference/policy.md §0.1, §0.6."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from stallscope.model.traffic import Endpoint
from stallscope.policy.engine import EngineOptions, PolicySet
from stallscope.policy.insight import (
    IdentityKey,
    identity_exploding_keys,
    identity_labels,
    ip_block_admits_namespace,
    selects_nothing,
    zone_label_users,
)

Policies, Pod = Callable[..., PolicySet], Callable[..., Endpoint]

ZONES = """\
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: {name: p, namespace: train}
spec:
  endpointSelector:
    matchLabels: {topology.kubernetes.io/zone: a}
  ingress:
  - fromEndpoints:
    - matchLabels: {"k8s:topology.kubernetes.io/zone": a}
  ingressDeny:
  - fromEndpoints:
    - matchExpressions:
      - {key: topology.kubernetes.io/zone, operator: NotIn, values: [a]}
"""


@pytest.mark.parametrize(
    ("version", "effects"),
    [((1, 19, 4), ["inert", "inert", "inverted"]), ((1, 18, 6), ["works"] * 3), ((), ["inert", "inert", "inverted"])],
)
def test_zone_label_users(policies: Policies, version: tuple[int, ...], effects: list[str]) -> None:
    found = zone_label_users(policies(ZONES, "cilium", version=version))
    assert [u.effect.value for u in found] == effects
    assert [(u.subject, u.section, u.location.span.line) for u in found] == [
        (True, "", 6),
        (False, "ingress", 9),
        (False, "ingressDeny", 13),
    ]
    assert {u.elsewhere.value for u in found} == {"works"}


def test_zone_labels_of_nodes_are_another_matter(policies: Policies) -> None:
    text = ZONES.split("  ingress:")[0] + "  ingress: [{fromNodes: [{matchLabels: {topology.kubernetes.io/zone: a}}]}]\n"
    found = zone_label_users(policies(text, "cilium", options={"enable-node-selector-labels": "true"}))
    assert [u.effect.value for u in found] == ["inert", "nodes"]


def test_zone_labels_work_where_the_engine_keeps_them(policies: Policies) -> None:
    text = (
        "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: zones, namespace: train}\n"
        "spec: {podSelector: {}, ingress: [{from: [{podSelector: {matchLabels: {topology.kubernetes.io/zone: a}}}]}]}\n"
    )
    assert [u.effect.value for u in zone_label_users(policies(text))] == ["works"]
    assert [u.effect.value for u in zone_label_users(policies(text, "cilium"))] == ["inert"]
    kept = policies(text, "cilium", options={"labels": r"topology\.kubernetes\.io/zone"})
    assert [u.effect.value for u in zone_label_users(kept)] == ["works"]


def test_selects_nothing(policies: Policies, pod: Pod) -> None:
    text = "".join(
        f"apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {{name: {n}, namespace: train}}\n"
        f"spec: {{podSelector: {s}}}\n---\n"
        for n, s in (("all", "{}"), ("hit", "{matchLabels: {app: llm}}"), ("miss", "{matchLabels: {app: lmm}}"))
    )
    found = selects_nothing(policies(text), [pod("a", app="llm"), pod("b")])
    assert [(f.policy.name, f.location.span.line) for f in found] == [("miss", 14)]
    assert [f.policy.name for f in selects_nothing(policies(text), [pod("other/a", app="llm")])] == ["all", "hit", "miss"]


def test_identity_labels_by_engine() -> None:
    labels = {"app": "x", "topology.kubernetes.io/zone": "a"}
    assert identity_labels(labels, EngineOptions(cni="cilium")) == {"app": "x"}
    assert identity_labels(labels, EngineOptions(cni="calico")) == labels


def test_per_pod_labels_make_one_identity_each() -> None:
    pods = [{"app": "x", "training.kubeflow.org/replica-index": str(i), "zone": "ab"[i % 2]} for i in range(64)]
    count, keys = identity_exploding_keys(pods, EngineOptions(cni="cilium"))
    assert (count, keys) == (64, (IdentityKey("training.kubeflow.org/replica-index", 64),))
    indexed = [{"app": "x", "batch.kubernetes.io/job-completion-index": str(i)} for i in range(64)]
    assert identity_exploding_keys(indexed, EngineOptions(cni="cilium")) == (1, ())
    assert identity_exploding_keys(pods, EngineOptions(cni="calico")) == (0, ())


@pytest.mark.parametrize(
    ("version", "options", "found"),
    [
        ((1, 19, 0), {}, 1),
        ((1, 19, 4), {}, 1),
        ((1, 19, 5), {}, 0),
        ((1, 18, 9), {}, 0),
        ((1, 19, 2), {"policy-default-local-cluster": "false"}, 0),
        ((), {}, 0),
    ],
)
def test_ip_blocks_that_1_19_reads_too_widely(
    policies: Policies, version: tuple[int, ...], options: dict[str, str], found: int
) -> None:
    text = (
        "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: blocks, namespace: train}\n"
        "spec: {podSelector: {}, ingress: [{from: [{podSelector: {}}, {ipBlock: {cidr: 10.0.0.0/8}}]}]}\n"
    )
    policy_set = policies(text, "cilium", version=version, options=options)
    assert len(ip_block_admits_namespace(policy_set)) == found
