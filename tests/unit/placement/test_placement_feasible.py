"""Order of filters, their words and the summary, from kube-scheduler's sources."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from placement_helpers import TAINT, affine_to, node, pod_body, topology

from stallscope.model.topology import HOSTNAME, ZONE, Topology, node_from_body
from stallscope.placement.feasible import Feasibility, NodeFailure, feasible, first_failures_summary
from stallscope.placement.settings import Settings

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def failure(body: dict[str, Any], one: dict[str, Any], **more: Any) -> NodeFailure:
    (found,) = feasible(body, topology(one, **more)).failures
    return found


def test_the_first_failing_filter_is_reported_not_the_others() -> None:
    found = failure(pod_body(gpus=4, nodeSelector={ZONE: "b"}), node("n", taints=[TAINT]))
    assert (found.plugin, found.message) == ("TaintToleration", "node(s) had untolerated taint(s)")


@pytest.mark.parametrize(
    ("body", "one", "plugin"),
    [
        (pod_body(), node("n", unschedulable=True), "NodeUnschedulable"),
        (pod_body(nodeName="other"), node("n"), "NodeName"),
        (pod_body(nodeSelector={ZONE: "b"}), node("n"), "NodeAffinity"),
        (pod_body(cpu="97"), node("n"), "NodeResourcesFit"),
        (pod_body(affinity=affine_to({"job": "none"})), node("n"), "InterPodAffinity"),
    ],
)
def test_plugins(body: dict[str, Any], one: dict[str, Any], plugin: str) -> None:
    assert failure(body, one).plugin == plugin


def test_every_short_resource_is_named_on_one_node() -> None:
    found = failure(pod_body(cpu="97", gpus=4), node("n"))
    assert found.reasons == ("Insufficient cpu", "Insufficient nvidia.com/gpu")


def test_counts_are_sorted_as_text() -> None:
    failures = [NodeFailure(node=f"n{i}", plugin="x", message="Insufficient cpu") for i in range(10)]
    failures += [NodeFailure(node=f"m{i}", plugin="x", message="node(s) were unschedulable") for i in range(2)]
    found = Feasibility(feasible=(), failures=tuple(failures))
    assert first_failures_summary(found) == "10 Insufficient cpu, 2 node(s) were unschedulable"
    assert found.message == (
        "0/12 nodes are available: 10 Insufficient cpu, 2 node(s) were unschedulable. no new claims to deallocate, "
        "preemption: 0/12 nodes are available: 12 Preemption is not helpful for scheduling."
    )


def test_nothing_is_said_when_a_node_is_feasible() -> None:
    assert feasible(pod_body(), topology(node("n"))).message is None


def test_a_pod_that_never_preempts_says_so() -> None:
    found = feasible(pod_body(cpu="97", preemptionPolicy="Never"), topology(node("n")))
    assert found.message is not None
    assert found.message.endswith("preemption: not eligible due to preemptionPolicy=Never.")


def test_terms_that_name_contradicting_nodes_end_before_filtering() -> None:
    fields = [{"key": "metadata.name", "operator": "In", "values": [n]} for n in ("n", "m")]
    affinity = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchFields": fields}]}}}
    found = feasible(pod_body(affinity=affinity), topology(node("n"), node("m")))
    assert found.message is not None
    assert found.message == "0/2 nodes are available: pod affinity terms conflict. not found"


def test_full_nodes_and_used_ports() -> None:
    full = node("n")
    full["status"]["allocatable"]["pods"] = "1"
    other = {**pod_body("old"), "spec": {**pod_body()["spec"], "nodeName": "n"}}
    assert failure(pod_body(), full, bound=[other]).message == "Too many pods"
    port = [{"name": "c", "ports": [{"containerPort": 1, "hostPort": 80}]}]
    taken = {**pod_body("old"), "spec": {"containers": port, "nodeName": "n"}}
    found = failure(pod_body(containers=port), node("n"), bound=[taken])
    assert found.message == "node(s) didn't have free ports for the requested pod ports"


def test_finished_pods_hold_nothing() -> None:
    old = {**pod_body("old", cpu="96"), "status": {"phase": "Succeeded"}}
    old["spec"]["nodeName"] = "n"
    assert feasible(pod_body(), topology(node("n"), bound=[old])).feasible == ("n",)


def test_terminating_pods_hold_resources_but_are_not_spread_over() -> None:
    spread = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"job": "x"}},
    }
    old = pod_body("old", cpu="1")
    old["spec"]["nodeName"] = "n"
    wanted = pod_body(topologySpreadConstraints=[spread])
    two = (node("n", "a"), node("m", "b", unschedulable=True))
    assert feasible(wanted, topology(*two, bound=[old])).feasible == ()
    old["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert feasible(wanted, topology(*two, bound=[old])).feasible == ("n",)


def volumes(labels: dict[str, str] | None = None, affinity: list[str] | None = None) -> Settings:
    volume: dict[str, Any] = {"metadata": {"name": "pv", "labels": labels or {}}, "spec": {}}
    if affinity:
        terms = [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": affinity}]}]
        volume["spec"]["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
    return Settings(claims={"t/data": {"spec": {"volumeName": "pv"}}}, volumes={"pv": volume})


def with_claim() -> dict[str, Any]:
    return pod_body(volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}])


def test_a_zonal_volume_pins_the_pod() -> None:
    two = topology(node("n", "a"), node("m", "b"))
    found = feasible(with_claim(), two, volumes(affinity=["a"]))
    assert found.feasible == ("n",)
    assert found.failures[0].message == "node(s) didn't match PersistentVolume's node affinity"
    labelled = feasible(with_claim(), two, volumes(labels={ZONE: "b__c"}))
    assert labelled.feasible == ("m",)
    assert labelled.failures[0].message == "node(s) had no available volume zone"


def test_a_class_that_provisions_in_one_zone_pins_the_pod() -> None:
    allowed = [{"matchLabelExpressions": [{"key": ZONE, "values": ["b"]}]}]
    fast = {"volumeBindingMode": "WaitForFirstConsumer", "allowedTopologies": allowed}
    settings = Settings(claims={"t/data": {"spec": {"storageClassName": "fast"}}}, storage_classes={"fast": fast})
    found = feasible(with_claim(), topology(node("n", "a"), node("m", "b")), settings)
    assert found.feasible == ("m",)
    assert found.failures[0].message == "node(s) didn't find available persistent volumes to bind"
    assert found.unjudged == ("PersistentVolumeClaim data (not bound yet)",)


def test_an_unknown_claim_is_unjudged_by_name() -> None:
    found = feasible(with_claim(), topology(node("n")))
    assert found.feasible == ("n",)
    assert found.unjudged == ("PersistentVolumeClaim data (not among the inputs)",)


@pytest.mark.parametrize(
    ("spec", "word"),
    [
        ({"resourceClaims": [{"name": "gpu"}]}, "dynamic resource allocation"),
        ({"runtimeClassName": "kata"}, "runtimeClassName kata"),
        ({"priorityClassName": "high"}, "priorityClassName high"),
        ({"tolerations": [{"key": "a", "operator": "Gt", "value": "1"}]}, "TaintTolerationComparisonOperators"),
    ],
)
def test_constructs_that_are_not_modelled_are_named(spec: dict[str, Any], word: str) -> None:
    assert any(word in name for name in feasible(pod_body(**spec), topology(node("n"))).unjudged)


def test_native_resources_no_node_states_are_not_judged() -> None:
    bare = {"metadata": {"name": "n", "labels": {HOSTNAME: "n"}}, "status": {"allocatable": {"nvidia.com/gpu": "8"}}}
    found = feasible(pod_body(gpus=8), topology(bare))
    assert found.feasible == ("n",)
    assert found.unjudged == ("cpu (no node states its allocatable cpu)",)


def test_without_capacity_only_labels_and_taints_are_judged() -> None:
    bare = Topology(nodes=(node_from_body({"metadata": {"name": "n"}}),), capacity_known=False)
    assert feasible(pod_body(gpus=8), bare).feasible == ("n",)


def test_a_cluster_without_nodes() -> None:
    assert feasible(pod_body(), topology()).message == "no nodes available to schedule pods"


def test_an_empty_spread_selector_never_binds_and_a_missing_key_does() -> None:
    spread = {"maxSkew": 1, "topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
    body = pod_body(topologySpreadConstraints=[spread])
    old = {**pod_body("old"), "spec": {**pod_body()["spec"], "nodeName": "n"}}
    racked = node("n", labels={"rack": "r1"})
    assert feasible(body, topology(racked, bound=[old, old])).feasible == ("n",)
    assert (
        failure(body, node("n")).message == "node(s) didn't match pod topology spread constraints (missing required label)"
    )
