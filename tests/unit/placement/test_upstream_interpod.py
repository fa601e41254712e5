"""
InterPodAffinity, corner by corner, with the answer kube-scheduler 1.36's source gives.

Sources: plugins interpodaffinity/filtering.go (PreFilter, satisfyPodAffinity, satisfyPodAntiAffinity,
satisfyExistingPodsAntiAffinity), plugin.go (mergeAffinityTermNamespacesIfNotEmpty, GetNamespaceLabelsSnapshot), framework
AffinityTerm.Matches and getNamespacesFromPodAffinityTerm; pod registry strategy.go
(applyMatchLabelKeysAndMismatchLabelKeys).
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from placement_helpers import node as gpu_node
from placement_helpers import pod_body, topology
from placement_upstream import REQUIRED, Body, bound, node, pod, said

from stallscope.model.topology import HOSTNAME, ZONE
from stallscope.placement.group import PodRequest, judge_group

AWAY = "node(s) didn't match pod affinity rules"
APART = "node(s) didn't match pod anti-affinity rules"
UNWANTED = "node(s) didn't satisfy existing pods anti-affinity rules"
A, B = node("a1", "a"), node("b1", "b")
NAMESPACES = {"t": {"team": "x"}, "u": {"team": "y"}, "v": {}}
MINE = {"matchLabels": {"job": "x"}}
NOT_X = {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["x"]}]}


def term(key: str = ZONE, **more: Any) -> Body:
    return {"topologyKey": key, "labelSelector": MINE, **more}


def near(*terms: Body, **more: Any) -> Body:
    return pod(affinity={"podAffinity": {REQUIRED: list(terms)}}, **more)


def far(*terms: Body) -> Body:
    return {"podAntiAffinity": {REQUIRED: list(terms)}}


def apart(*terms: Body, **more: Any) -> Body:
    return pod(affinity=far(*terms), **more)


def old(home: str, **more: Any) -> Body:
    return bound(home, **{"labels": {"job": "x"}, **more})


def answers(incoming: Body, *on: Body) -> dict[str, str | None]:
    return said(incoming, A, B, on=on, namespaces=NAMESPACES)


def test_affinity_and_anti_affinity() -> None:
    assert answers(near(term()), old("a1")) == {"a1": None, "b1": AWAY}
    assert answers(apart(term()), old("a1")) == {"a1": APART, "b1": None}


def test_the_first_pod_of_a_group_that_wants_itself_may_go_anywhere_with_the_key() -> None:
    me = {"labels": {"job": "x"}}
    assert answers(near(term(), **me)) == {"a1": None, "b1": None}
    assert answers(near(term())) == {"a1": AWAY, "b1": AWAY}  # it does not match itself
    assert said(near(term(), **me), A, node("n", None)) == {"a1": None, "n": AWAY}
    assert answers(near(term(), **me), old("a1")) == {"a1": None, "b1": AWAY}  # not the first


def test_the_first_pod_must_match_all_its_terms() -> None:
    """affinityCounts counts only pods that match every term; the pod itself is held to the same."""
    other = term(labelSelector={"matchLabels": {"role": "m"}})
    assert answers(near(term(), other, labels={"job": "x"})) == {"a1": AWAY, "b1": AWAY}
    assert answers(near(term(), other, labels={"job": "x", "role": "m"}), old("a1")) == {"a1": None, "b1": None}
    whole = old("a1", labels={"job": "x", "role": "m"})
    assert answers(near(term(), other, labels={"job": "x", "role": "m"}), whole) == {"a1": None, "b1": AWAY}


def test_a_matching_pod_on_a_node_without_the_key_attracts_nobody() -> None:
    """Its node adds no topology pair, so the group still counts as empty and the first-pod rule applies."""
    nodes = [A, node("n", None)]
    assert said(near(term(), labels={"job": "x"}), *nodes, on=[old("n")]) == {"a1": None, "n": AWAY}
    assert said(near(term()), *nodes, on=[old("n")]) == {"a1": AWAY, "n": AWAY}


def test_terms_over_several_keys_need_a_pod_in_each_domain() -> None:
    nodes = [node("a1", "a", labels={"rack": "r1"}), node("a2", "a", labels={"rack": "r2"}), node("a3", "a")]
    both = near(term(), term("rack"))
    assert said(both, *nodes, on=[old("a1")]) == {"a1": None, "a2": AWAY, "a3": AWAY}


def test_anti_affinity_does_not_mind_a_missing_key() -> None:
    nodes = [node("a1", "a"), node("n", None)]
    assert said(apart(term()), *nodes, on=[old("a1"), old("n", name="o2")]) == {"a1": APART, "n": None}


def test_a_pod_being_deleted_still_attracts_and_repels() -> None:
    assert answers(near(term()), old("a1", deleted=True)) == {"a1": None, "b1": AWAY}
    assert answers(apart(term()), old("a1", deleted=True)) == {"a1": APART, "b1": None}


def test_pods_on_unknown_nodes_are_not_seen() -> None:
    assert answers(near(term()), old("gone")) == {"a1": AWAY, "b1": AWAY}
    assert answers(pod(labels={"job": "x"}), old("gone", affinity=far(term(HOSTNAME)))) == {"a1": None, "b1": None}


@pytest.mark.parametrize(
    ("more", "sees"),
    [
        ({}, "t"),  # no namespaces, no selector: the pod's own
        ({"namespaces": []}, "t"),
        ({"namespaces": ["u"]}, "u"),  # then no longer its own
        ({"namespaces": ["t", "u"]}, "tu"),
        ({"namespaceSelector": {}}, "tuv"),  # the empty selector: all
        ({"namespaceSelector": {"matchLabels": {"team": "y"}}}, "u"),
        ({"namespaceSelector": {"matchLabels": {"team": "y"}}, "namespaces": ["v"]}, "uv"),
        ({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "v"}}}, "v"),
        ({"namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "Exists"}]}}, "tu"),
    ],
)
def test_namespaces(more: Body, sees: str) -> None:
    for name in "tuv":
        seen = name in sees
        assert answers(near(term(**more)), old("a1", namespace=name))["a1"] == (None if seen else AWAY)
        assert answers(apart(term(**more)), old("a1", namespace=name))["a1"] == (APART if seen else None)


@pytest.mark.parametrize(
    "expression",
    [
        {"key": "team", "operator": "NotIn", "values": ["x"]},
        {"key": "team", "operator": "DoesNotExist"},
        {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["t"]},
    ],
)
def test_a_selector_that_only_excludes_namespaces_sees_all_of_them_from_the_incoming_pod(expression: Body) -> None:
    """
    kubernetes#141526 (a regression of 1.34, open): the selector should be replaced once its namespaces are known, but a
    copy of the term is changed, so it is still tried on no labels at all, which NotIn and DoesNotExist accept.
    """
    selecting = term(namespaceSelector={"matchExpressions": [expression]})
    for name in "tuv":
        assert answers(near(selecting), old("a1", namespace=name)) == {"a1": None, "b1": AWAY}
        assert answers(apart(selecting), old("a1", namespace=name)) == {"a1": APART, "b1": None}
    assert answers(near(selecting, labels={"job": "x"})) == {"a1": None, "b1": None}  # it matches itself, too


def test_the_selector_of_a_bound_pod_is_tried_on_the_namespace_s_labels() -> None:
    """getExistingAntiAffinityCounts passes the labels of the incoming pod's namespace: excluding works."""
    excluding = term(
        HOSTNAME, namespaceSelector={"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["x"]}]}
    )
    for name, refused in (("t", False), ("u", True), ("v", True)):
        incoming = pod(namespace=name, labels={"job": "x"})
        answer = answers(incoming, old("a1", namespace="v", labels={}, affinity=far(excluding)))
        assert answer == {"a1": UNWANTED if refused else None, "b1": None}


def test_a_group_in_two_namespaces_follows_the_same_rule_in_both_directions() -> None:
    """
    `m` in namespace u keeps away, as the one being placed, from every namespace, x included; once it is bound the same
    term spares namespace t. So the order of creation decides whether both fit on the one node.
    """
    excluding = term(
        HOSTNAME, namespaceSelector={"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["x"]}]}
    )
    m = pod_body("m", labels={"role": "m"}, affinity=far(excluding))
    m["metadata"]["namespace"] = "u"
    picky, plain = PodRequest(name="m", klass="m", body=m), PodRequest(name="w", klass="w", body=pod_body("w"))
    cluster = topology(gpu_node("n"), namespaces=NAMESPACES)
    assert judge_group([picky, plain], cluster, likelihood=False).must_start_whole
    assert not judge_group([plain, picky], cluster, likelihood=False).may_start_whole


@pytest.mark.parametrize(("selector", "seen"), [(None, False), ({}, True), ({"matchLabels": {}}, True)])
def test_an_absent_label_selector_matches_nobody_and_an_empty_one_everybody(selector: Body | None, seen: bool) -> None:
    body = {"topologyKey": ZONE, **({} if selector is None else {"labelSelector": selector})}
    assert answers(near(body), old("a1"))["a1"] == (None if seen else AWAY)
    assert answers(apart(body), old("a1"))["a1"] == (APART if seen else None)


@pytest.mark.parametrize(
    ("keys", "labels", "seen"),
    [
        ({"matchLabelKeys": ["ver"]}, {"ver": "1"}, True),
        ({"matchLabelKeys": ["ver"]}, {"ver": "2"}, False),
        ({"matchLabelKeys": ["ver"]}, {}, True),  # a key the pod lacks is ignored
        ({"mismatchLabelKeys": ["ver"]}, {"ver": "1"}, False),
        ({"mismatchLabelKeys": ["ver"]}, {"ver": "2"}, True),
        ({"mismatchLabelKeys": ["ver"]}, {}, True),
    ],
)
def test_match_label_keys(keys: Body, labels: Body, seen: bool) -> None:
    there = old("a1", labels={"job": "x", "ver": "1"})
    assert answers(near(term(**keys), labels=labels), there)["a1"] == (None if seen else AWAY)
    theirs = old("a1", labels={"ver": "1"}, affinity=far(term(mismatchLabelKeys=["ver"])))
    assert answers(pod(labels={"job": "x", "ver": "1"}), theirs)["a1"] is None
    assert answers(pod(labels={"job": "x", "ver": "2"}), theirs)["a1"] == UNWANTED


def test_mismatch_label_keys_also_see_pods_without_the_label() -> None:
    """NotIn holds where the key is absent."""
    assert answers(apart(term(mismatchLabelKeys=["ver"]), labels={"ver": "1"}), old("a1"))["a1"] == APART


def test_reasons_come_affinity_first_then_own_then_others_anti_affinity() -> None:
    both = {"podAffinity": {REQUIRED: [term()]}, **far(term(HOSTNAME))}
    repelling = old("a1", affinity=far(term(HOSTNAME, labelSelector={})))
    incoming = pod(affinity=both)
    assert answers(incoming, repelling) == {"a1": APART, "b1": AWAY}
    assert answers(near(term()), repelling) == {"a1": UNWANTED, "b1": AWAY}
