"""
PodTopologySpread, corner by corner, with the answer kube-scheduler 1.36's source gives.

Sources: plugins podtopologyspread/filtering.go (calPreFilterState, minMatchNum, Filter), common.go (countPodsMatchSelector,
matchNodeInclusionPolicies, filterTopologySpreadConstraints); pod registry strategy.go (applyMatchLabelKeys).
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from placement_helpers import node as gpu_node
from placement_helpers import pod_body, topology
from placement_upstream import Body, bound, node, pod, said

from stallscope.model.topology import HOSTNAME, ZONE
from stallscope.placement.group import PodRequest, judge_group

SKEWED = "node(s) didn't match pod topology spread constraints"
KEYLESS = "node(s) didn't match pod topology spread constraints (missing required label)"
MINE = {"matchLabels": {"job": "x"}}


def spread(key: str = ZONE, **more: Any) -> Body:
    return {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": MINE, **more}


def incoming(*constraints: Body, labels: Body | None = None, **spec: Any) -> Body:
    return pod(labels={"job": "x"} if labels is None else labels, topologySpreadConstraints=list(constraints), **spec)


def old(home: str, **more: Any) -> Body:
    return bound(home, **{"labels": {"job": "x"}, **more})


A, B = node("a1", "a"), node("b1", "b")


def test_skew_is_counted_with_the_pod_itself() -> None:
    assert said(incoming(spread()), A, B, on=[old("a1")]) == {"a1": SKEWED, "b1": None}
    assert said(incoming(spread(maxSkew=2)), A, B, on=[old("a1")]) == {"a1": None, "b1": None}


def test_a_pod_the_selector_misses_does_not_count_itself() -> None:
    """selfMatchNum 0: one more counted pod is allowed where the pod goes, but existing skew still refuses it."""
    other = incoming(spread(), labels={})
    assert said(other, A, B, on=[old("a1")]) == {"a1": None, "b1": None}
    assert said(other, A, B, on=[old("a1"), old("a1", name="o2")]) == {"a1": SKEWED, "b1": None}


@pytest.mark.parametrize("selector", [None, {}, {"matchLabels": {}}])
def test_an_absent_or_empty_selector_never_binds(selector: Body | None) -> None:
    """Absent matches nothing; the empty one counts nobody (countPodsMatchSelector) though the pod matches itself."""
    body = spread()
    body = (
        {k: v for k, v in body.items() if k != "labelSelector"} if selector is None else {**body, "labelSelector": selector}
    )
    assert said(incoming(body), A, B, on=[old("a1"), old("a1", name="o2")]) == {"a1": None, "b1": None}


@pytest.mark.parametrize("more", [{"namespace": "u"}, {"deleted": True}, {"labels": {"job": "y"}}])
def test_pods_that_are_not_counted(more: Body) -> None:
    assert said(incoming(spread()), A, B, on=[old("a1", **more)]) == {"a1": None, "b1": None}


@pytest.mark.parametrize(
    ("domains", "fits"),
    [(None, True), (1, True), (2, True), (3, False)],
)
def test_min_domains(domains: int | None, fits: bool) -> None:
    """Fewer domains than minDomains: the global minimum is 0, so one pod each in both of them is the most."""
    body = spread() if domains is None else spread(minDomains=domains)
    answer = said(incoming(body), A, B, on=[old("a1"), old("b1", name="o2")])
    assert answer == dict.fromkeys(("a1", "b1"), None if fits else SKEWED)


def test_a_node_lacking_any_key_refuses_and_is_not_counted() -> None:
    """All topology keys of all hard constraints, or the node's domains do not count at all."""
    racked = [node("a1", "a", labels={"rack": "r"}), node("b1", "b")]
    both = incoming(spread(), spread("rack"), labels={})
    assert said(both, *racked, on=[old("a1")]) == {"a1": None, "b1": KEYLESS}
    alone = incoming(spread(), spread("rack"))
    assert said(alone, *racked, on=[old("a1")]) == {"a1": None, "b1": KEYLESS}  # only zone a counts: it is the minimum
    assert said(incoming(spread()), *racked, on=[old("a1")]) == {"a1": SKEWED, "b1": None}
    assert said(incoming(spread()), node("n", None)) == {"n": KEYLESS}


def test_a_soft_constraint_neither_filters_nor_asks_for_its_key() -> None:
    soft = spread("rack", whenUnsatisfiable="ScheduleAnyway")
    assert said(incoming(soft, spread()), A, B, on=[old("a1")]) == {"a1": SKEWED, "b1": None}


def test_an_empty_label_value_is_a_domain() -> None:
    nodes = [node("a1", "a"), node("e1", "")]
    assert said(incoming(spread()), *nodes, on=[old("a1")]) == {"a1": SKEWED, "e1": None}
    assert said(incoming(spread()), *nodes, on=[old("e1")]) == {"a1": None, "e1": SKEWED}


@pytest.mark.parametrize(("policy", "fits"), [(None, True), ("Honor", True), ("Ignore", False)])
def test_node_affinity_policy(policy: str | None, fits: bool) -> None:
    """Honor (the default): a zone the pod's selector excludes is no domain, so zone a is alone and level."""
    body = spread() if policy is None else spread(nodeAffinityPolicy=policy)
    answer = said(incoming(body, nodeSelector={ZONE: "a"}), A, B, on=[old("a1")])
    assert answer["a1"] == (None if fits else SKEWED)


@pytest.mark.parametrize(
    ("policy", "effect", "fits"),
    [
        (None, "NoSchedule", False),
        ("Ignore", "NoSchedule", False),
        ("Honor", "NoSchedule", True),
        ("Honor", "NoExecute", True),
        ("Honor", "PreferNoSchedule", False),
    ],
)
def test_node_taints_policy(policy: str | None, effect: str, fits: bool) -> None:
    tainted = node("b1", "b", taints=[{"key": "k", "effect": effect}])
    body = spread() if policy is None else spread(nodeTaintsPolicy=policy)
    assert said(incoming(body), A, tainted, on=[old("a1")])["a1"] == (None if fits else SKEWED)


def test_a_cordon_without_its_taint_does_not_take_a_domain_away() -> None:
    """matchNodeInclusionPolicies looks at spec.taints only; it is the node controller that adds the taint."""
    cordoned = node("b1", "b", unschedulable=True)
    assert said(incoming(spread(nodeTaintsPolicy="Honor")), A, cordoned, on=[old("a1")])["a1"] == SKEWED


@pytest.mark.parametrize(
    ("labels", "fits"),
    [
        ({"job": "x", "ver": "1"}, True),  # only pods of the same version count
        ({"job": "x", "ver": "2"}, False),
        ({"job": "x"}, False),  # a key the pod lacks is ignored
    ],
)
def test_match_label_keys(labels: Body, fits: bool) -> None:
    answer = said(
        incoming(spread(matchLabelKeys=["ver"]), labels=labels), A, B, on=[old("a1", labels={"job": "x", "ver": "2"})]
    )
    assert answer["a1"] == (None if fits else SKEWED)


def test_match_label_keys_fill_an_empty_selector() -> None:
    body = spread(labelSelector={}, matchLabelKeys=["ver"])
    answer = said(incoming(body, labels={"ver": "1"}), A, B, on=[old("a1", labels={"ver": "1"})])
    assert answer == {"a1": SKEWED, "b1": None}


def test_constraints_are_tried_in_order_on_each_node() -> None:
    keyless = node("b1", "b")
    del keyless["metadata"]["labels"][HOSTNAME]
    body = incoming(spread(), spread(HOSTNAME))
    assert said(body, A, keyless, on=[old("a1")])["b1"] == KEYLESS


def test_a_job_whose_workers_count_only_the_masters_cannot_start_behind_two_of_them() -> None:
    """
    The constraint does not count the workers themselves, so *all* masters may stand in the worker's zone: 2 + 0 - 0 > 1.
    Created before them the worker is safe.
    """
    nodes = [gpu_node("a", "a"), gpu_node("b", "b", gpus=8)]
    count_masters = {**spread(), "labelSelector": {"matchLabels": {"role": "master"}}}

    def request(name: str, role: str) -> PodRequest:
        spec = {"nodeSelector": {ZONE: "b"}} if role == "master" else {"topologySpreadConstraints": [count_masters]}
        body = pod_body(name, labels={"role": role}, gpus=int(role == "worker"), **spec)
        return PodRequest(name=name, klass=role, body=body)

    masters, worker = [request("m0", "master"), request("m1", "master")], request("w0", "worker")
    last = judge_group([*masters, worker], topology(*nodes), likelihood=False)
    assert (last.may_start_whole, last.must_start_whole) == (False, False)
    first = judge_group([worker, *masters], topology(*nodes), likelihood=False)
    assert (first.may_start_whole, first.must_start_whole) == (True, True)
