"""Selectors, node terms and merged label keys against the API's documented semantics."""

from __future__ import annotations

import pytest

from stallscope.model.labels import Requirement
from stallscope.placement.podspec import compile_pod
from stallscope.placement.terms import NodeTerm, RequiredNodes, node_requirement_holds

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


@pytest.mark.parametrize(
    ("operator", "value", "label", "expected"),
    [
        ("Gt", "5", "6", True),
        ("Gt", "5", "5", False),
        ("Lt", "7", "x", False),
        ("Lt", "7", " 6", False),
        ("Gt", "1", "1_0", False),
        ("Gt", "1", "99999999999999999999", False),
        ("Lt", "-1", "-2", True),
    ],
)
def test_gt_and_lt_are_gos_integers(operator: str, value: str, label: str, expected: bool) -> None:
    assert node_requirement_holds(Requirement("k", operator, (value,)), {"k": label}) is expected


def test_an_empty_term_matches_nothing_and_terms_are_ored() -> None:
    empty, any_gpu = NodeTerm(), NodeTerm((Requirement("gpu", "Exists"),))
    assert not RequiredNodes(terms=(empty,)).matches({"gpu": "1"}, "n")
    assert RequiredNodes(terms=(empty, any_gpu)).matches({"gpu": "1"}, "n")
    assert not RequiredNodes(terms=()).matches({"gpu": "1"}, "n")


def test_node_selector_and_affinity_are_both_required() -> None:
    both = RequiredNodes((("zone", "a"),), (NodeTerm((Requirement("gpu", "Exists"),)),))
    assert both.matches({"zone": "a", "gpu": ""}, "n")
    assert not both.matches({"zone": "b", "gpu": ""}, "n")
    assert not both.matches({"zone": "a"}, "n")


def test_names_pin_only_when_every_term_names_nodes() -> None:
    one = NodeTerm((), (Requirement("metadata.name", "In", ("n1",)),))
    two = NodeTerm((), (Requirement("metadata.name", "In", ("n2",)),))
    contradiction = NodeTerm((), (*one.fields, *two.fields))
    free = NodeTerm((Requirement("gpu", "Exists"),))
    assert RequiredNodes(terms=(one, two)).pinned_names() == {"n1", "n2"}
    assert RequiredNodes(terms=(one, free)).pinned_names() is None
    assert RequiredNodes(terms=(contradiction,)).pinned_names() == frozenset()


def affine(term: dict[str, object]) -> object:
    body = {
        "metadata": {"name": "p", "namespace": "own", "labels": {"job": "x", "rev": "7"}},
        "spec": {"affinity": {"podAffinity": {REQUIRED: [{"topologyKey": "zone", **term}]}}},
    }
    return compile_pod(body).affinity[0]


@pytest.mark.parametrize(
    ("term", "own", "other"),
    [
        ({"labelSelector": {}}, True, False),
        ({"labelSelector": {}, "namespaces": ["other"]}, False, True),
        ({"labelSelector": {}, "namespaceSelector": {}}, True, True),
        ({"labelSelector": {}, "namespaceSelector": {"matchLabels": {"team": "ml"}}}, False, True),
        ({}, False, False),
    ],
)
def test_namespaces_a_term_sees(term: dict[str, object], own: bool, other: bool) -> None:
    found = affine(term)
    assert found.matches("own", {"job": "x"}, {}) is own  # type: ignore[attr-defined]
    assert found.matches("other", {"job": "x"}, {"team": "ml"}) is other  # type: ignore[attr-defined]


def test_label_keys_are_merged_with_the_pods_values() -> None:
    found = affine({"labelSelector": {"matchLabels": {"job": "x"}}, "matchLabelKeys": ["rev", "absent"]})
    assert found.matches("own", {"job": "x", "rev": "7"}, {})  # type: ignore[attr-defined]
    assert not found.matches("own", {"job": "x", "rev": "6"}, {})  # type: ignore[attr-defined]
    apart = affine({"labelSelector": {"matchLabels": {"job": "x"}}, "mismatchLabelKeys": ["rev"]})
    assert not apart.matches("own", {"job": "x", "rev": "7"}, {})  # type: ignore[attr-defined]
    assert apart.matches("own", {"job": "x"}, {})  # type: ignore[attr-defined]
