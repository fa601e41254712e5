"""Tolerations against core/v1 ToleratesTaint and the admission plugin DefaultTolerationSeconds."""

from __future__ import annotations

import pytest

from stallscope.model.topology import Taint
from stallscope.placement.tolerations import Toleration, parse_tolerations, untolerated

GPU = Taint("nvidia.com/gpu", "present", "NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        (Toleration("nvidia.com/gpu", "Exists"), True),
        (Toleration("nvidia.com/gpu", "Equal", "present"), True),
        (Toleration("nvidia.com/gpu", "", "present"), True),
        (Toleration("nvidia.com/gpu", "Equal", "true"), False),
        (Toleration("nvidia.com/gpu", "Equal"), False),
        (Toleration("", "Exists"), True),
        (Toleration("", "Exists", "", "NoExecute"), False),
        (Toleration("nvidia.com/gpu", "Exists", "", "NoSchedule"), True),
        (Toleration("amd.com/gpu", "Exists"), False),
        (Toleration("nvidia.com/gpu", "Matches", "present"), False),
    ],
)
def test_operators_keys_and_effects(toleration: Toleration, expected: bool) -> None:
    assert toleration.tolerates(GPU) is expected


@pytest.mark.parametrize(
    ("operator", "value", "taint", "expected"),
    [
        ("Gt", "5", "6", True),
        ("Gt", "5", "5", False),
        ("Lt", "5", "4", True),
        ("Lt", "5", "6", False),
        ("Gt", "-3", "-2", True),
        ("Gt", "5", "006", False),
        ("Gt", "x", "6", False),
        ("Lt", "5", "", False),
    ],
)
def test_comparisons_when_the_gate_is_on(operator: str, value: str, taint: str, expected: bool) -> None:
    toleration = Toleration("tier", operator, value)
    assert toleration.tolerates(Taint("tier", taint, "NoSchedule"), comparisons=True) is expected
    assert not toleration.tolerates(Taint("tier", taint, "NoSchedule"))


def test_prefer_no_schedule_never_filters() -> None:
    assert untolerated([Taint("a", "", "PreferNoSchedule")], ()) is None


def test_the_first_untolerated_taint_is_named() -> None:
    other = Taint("dedicated", "web", "NoExecute")
    assert untolerated([GPU, other], [Toleration("nvidia.com/gpu", "Exists")]) == other


def test_admission_adds_the_two_failing_node_tolerations() -> None:
    added = parse_tolerations({})
    assert untolerated([Taint("node.kubernetes.io/not-ready", "", "NoExecute")], added) is None
    assert untolerated([Taint("node.kubernetes.io/not-ready", "", "NoSchedule")], added) is not None


def test_a_pod_that_speaks_of_a_failing_node_gets_nothing_added_for_it() -> None:
    own = parse_tolerations(
        {"tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}]}
    )
    assert [t.key for t in own] == ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"]
