"""
Node-level filters, corner by corner, with the answer kube-scheduler 1.36's source gives.

Sources: component-helpers scheduling/corev1/nodeaffinity (nodeaffinity.go: NewNodeSelector, isEmptyNodeSelectorTerm,
nodeSelectorRequirementsAsSelector; apimachinery labels.Requirement.Matches), plugins nodeaffinity, tainttoleration,
nodeunschedulable, core/v1 Toleration.ToleratesTaint, admission defaulttolerationseconds.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from placement_upstream import REQUIRED, Body, judge, node, pod, said

from stallscope.model.topology import ZONE

UNFIT = "node(s) didn't match Pod's node affinity/selector"
TAINTED = "node(s) had untolerated taint(s)"
CORDONED = "node(s) were unschedulable"


def wants(*terms: Body, **more: Any) -> Body:
    return pod(affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}}, **more)


def expression(key: str, operator: str, *values: str) -> Body:
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}


@pytest.mark.parametrize(
    ("operator", "values", "label", "fits"),
    [
        ("In", ["x", "y"], "y", True),
        ("In", ["x"], None, False),
        ("NotIn", ["x"], None, True),  # labels.Requirement.Matches: NotIn holds when the key is absent
        ("NotIn", ["x"], "x", False),
        ("Exists", [], "", True),  # an empty value is a value
        ("Exists", [], None, False),
        ("DoesNotExist", [], None, True),
        ("DoesNotExist", [], "", False),
        ("In", [""], "", True),
        ("In", [""], None, False),
        ("Gt", ["5"], "6", True),
        ("Gt", ["5"], "5", False),
        ("Lt", ["5"], "4", True),
        ("Lt", ["5"], None, False),  # Gt and Lt need the key
        ("Gt", ["5"], None, False),
        ("Gt", ["5"], "six", False),  # a label that is no integer: the requirement does not hold
        ("Gt", ["005"], "6", True),  # strconv.ParseInt, base 10: leading zeros are fine
        ("Gt", ["5"], "9223372036854775807", True),
        ("Gt", ["5"], "9223372036854775808", False),  # out of 64 bits
    ],
)
def test_label_operators(operator: str, values: list[str], label: str | None, fits: bool) -> None:
    labels = {} if label is None else {"k": label}
    answer = said(wants({"matchExpressions": [expression("k", operator, *values)]}), node(labels=labels))
    assert answer == {"n": None if fits else UNFIT}


@pytest.mark.parametrize(
    ("terms", "fits"),
    [
        ([{}], False),  # an empty term matches no objects
        ([{"matchExpressions": []}], False),
        ([{"matchFields": []}], False),
        ([{}, {"matchExpressions": [expression(ZONE, "In", "a")]}], True),  # the other term still counts
        ([{"matchExpressions": [expression(ZONE, "In", "b")]}, {"matchExpressions": [expression(ZONE, "In", "a")]}], True),
        ([{"matchExpressions": [expression(ZONE, "In", "a"), expression("k", "Exists")]}], False),  # ANDed inside a term
        (
            [{"matchExpressions": [expression(ZONE, "In", "a")], "matchFields": [expression("metadata.name", "In", "n")]}],
            True,
        ),
        ([{"matchFields": [expression("metadata.name", "NotIn", "n")]}], False),
        ([{"matchFields": [expression("metadata.name", "NotIn", "m")]}], True),
    ],
)
def test_terms(terms: list[Body], fits: bool) -> None:
    assert said(wants(*terms), node())["n"] == (None if fits else UNFIT)


def test_node_selector_and_affinity_must_both_hold() -> None:
    incoming = wants({"matchExpressions": [expression(ZONE, "Exists")]}, nodeSelector={"disk": "ssd"})
    assert said(incoming, node("n"), node("m", labels={"disk": "ssd"})) == {"n": UNFIT, "m": None}


def test_a_selector_for_the_empty_value_needs_the_key() -> None:
    """labels.SelectorFromSet makes `k=` an equality: absent is not empty."""
    assert said(pod(nodeSelector={"k": ""}), node("n"), node("m", labels={"k": ""})) == {"n": UNFIT, "m": None}


def test_names_limit_the_search_only_when_every_term_names_nodes() -> None:
    """node_affinity.go PreFilter: intersection inside a term, union over terms; one term without a name opens all."""
    other = "node(s) didn't satisfy plugin(s) [NodeAffinity]"
    named = {"matchFields": [expression("metadata.name", "In", "n")]}
    twice = {"matchFields": [expression("metadata.name", "In", "m"), expression("metadata.name", "In", "m")]}
    nodes = [node(n, "a") for n in "nmo"]
    assert said(wants(twice), *nodes) == {"n": other, "m": None, "o": other}
    assert said(wants(twice, named), *nodes) == {"n": None, "m": None, "o": other}
    opened = wants(named, {"matchExpressions": [expression(ZONE, "In", "b")]})
    assert said(opened, *nodes) == {"n": None, "m": UNFIT, "o": UNFIT}


def test_a_named_node_that_does_not_exist_leaves_the_prefilter_reason_for_all() -> None:
    found = judge(wants({"matchFields": [expression("metadata.name", "In", "gone")]}), [node("n"), node("m")])
    assert found.message == (
        "0/2 nodes are available: 2 node(s) didn't satisfy plugin(s) [NodeAffinity]. no new claims to deallocate, "
        "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
    )


def test_contradicting_names_end_the_search_before_dynamic_resources_has_state() -> None:
    """
    NodeAffinity.PreFilter's UnschedulableAndUnresolvable ends RunPreFilterPlugins, so DynamicResources.PostFilter, the first
    of its kind, finds no cycle state; that error, "not found", is the message of RunPostFilterPlugins.
    """
    named = {"matchFields": [expression("metadata.name", "In", "n"), expression("metadata.name", "In", "m")]}
    assert judge(wants(named), [node("n"), node("m")]).message == (
        "0/2 nodes are available: pod affinity terms conflict. not found"
    )


@pytest.mark.parametrize(
    ("taint", "toleration", "fits"),
    [
        (("k", "v", "NoSchedule"), {"key": "k", "operator": "Equal", "value": "v", "effect": "NoSchedule"}, True),
        (("k", "v", "NoSchedule"), {"key": "k", "value": "v"}, True),  # Equal is the default, no effect = every effect
        (("k", "v", "NoSchedule"), {"key": "k"}, False),  # Equal with the empty value
        (("k", "", "NoSchedule"), {"key": "k"}, True),
        (("k", "v", "NoSchedule"), {"key": "k", "operator": "Exists"}, True),
        (("k", "v", "NoSchedule"), {"key": "k", "operator": "Exists", "effect": "NoExecute"}, False),
        (("k", "v", "NoExecute"), {"key": "k", "operator": "Exists", "effect": "NoSchedule"}, False),
        (("k", "v", "NoExecute"), {"operator": "Exists"}, True),  # no key: every taint
        (("k", "v", "NoExecute"), {"operator": "Exists", "effect": "NoSchedule"}, False),
        (("k", "v", "NoExecute"), {"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1}, True),
        (("k", "v", "PreferNoSchedule"), {"key": "other", "operator": "Exists"}, True),  # never filters
        (
            ("node.kubernetes.io/not-ready", "", "NoExecute"),
            {"key": "other", "operator": "Exists"},
            True,
        ),  # admission adds it
        (("node.kubernetes.io/not-ready", "", "NoSchedule"), {"key": "other", "operator": "Exists"}, False),
        (
            ("node.kubernetes.io/unreachable", "", "NoExecute"),
            {"key": "node.kubernetes.io/unreachable", "value": "x", "effect": "NoExecute"},
            False,  # the pod spoke of the key itself, so nothing is added
        ),
    ],
)
def test_taints(taint: tuple[str, str, str], toleration: Body, fits: bool) -> None:
    tainted = node(taints=[dict(zip(("key", "value", "effect"), taint, strict=True))])
    assert said(pod(tolerations=[toleration]), tainted) == {"n": None if fits else TAINTED}


@pytest.mark.parametrize(
    ("toleration", "fits"),
    [
        (None, False),
        ({"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}, True),
        ({"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"}, True),
        ({"key": "node.kubernetes.io/unschedulable"}, True),  # Equal "", which is the taint's value
        ({"key": "node.kubernetes.io/unschedulable", "value": "x"}, False),
        ({"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"operator": "Exists"}, True),
    ],
)
def test_a_cordon_is_tolerated_as_a_taint(toleration: Body | None, fits: bool) -> None:
    """node_unschedulable.go Filter."""
    incoming = pod(tolerations=[toleration] if toleration else [])
    assert said(incoming, node(unschedulable=True)) == {"n": None if fits else CORDONED}


def test_the_first_filter_that_fails_names_the_node() -> None:
    """Default plugin order: NodeUnschedulable, NodeName, TaintToleration, NodeAffinity, NodePorts, NodeResourcesFit."""
    taints = [{"key": "k", "effect": "NoSchedule"}]
    incoming = pod(nodeSelector={"x": "y"}, requests={"cpu": "99"})
    nodes = [node("a", unschedulable=True, taints=taints), node("b", taints=taints), node("c"), node("d", labels={"x": "y"})]
    assert said(incoming, *nodes) == {"a": CORDONED, "b": TAINTED, "c": UNFIT, "d": "Insufficient cpu"}
