"""Which labels are part of a Cilium identity: reference/policy.md §0.1 and §0.6."""

from __future__ import annotations

import pytest

from stallscope.policy.identity import excludes_topology, filter_labels

ZONE = "topology.kubernetes.io/zone"


@pytest.mark.parametrize(
    ("version", "excluded"),
    [
        ((1, 17, 16), False),
        ((1, 18), False),
        ((1, 18, 6), False),
        ((1, 18, 7), True),
        ((1, 18, 10), True),
        ((1, 19), True),
        ((1, 19, 0), True),
        ((1, 20, 0), True),
        ((), True),
    ],
)
def test_topology_labels_left_identity_in_1_18_7_and_1_19(version: tuple[int, ...], excluded: bool) -> None:
    assert excludes_topology(version) is excluded
    assert (ZONE in filter_labels({ZONE: "a"}, version)) is not excluded


@pytest.mark.parametrize(
    "key",
    [
        "training.kubeflow.org/replica-index",
        "leaderworkerset.sigs.k8s.io/worker-index",
        "jobset.sigs.k8s.io/restart-attempt",
        "kueue.x-k8s.io/queue-name",
        "app",
        "app.kubernetes.io/name",
    ],
)
def test_kept(key: str) -> None:
    assert filter_labels({key: "x"}, (1, 19, 4)) == {key: "x"}


@pytest.mark.parametrize(
    "key",
    [
        "batch.kubernetes.io/job-completion-index",
        "batch.kubernetes.io/controller-uid",
        "apps.kubernetes.io/pod-index",
        "statefulset.kubernetes.io/pod-name",
        "controller-uid",
        "pod-template-hash",
        "controller-revision-hash",
        "kubernetes.io/anything",
        "io.kubernetes.anything",
        "k8s.io/anything",
        "annotation.x",
        "etcd_node",
        "x.beta.kubernetes.io/y",
    ],
)
def test_left_out(key: str) -> None:
    assert filter_labels({key: "x"}, (1, 17, 16)) == {}


def test_an_inclusive_pattern_makes_the_list_inclusive() -> None:
    labels = {ZONE: "a", "app": "job", "team": "ml", "app.kubernetes.io/name": "x"}
    kept = filter_labels(labels, (1, 19, 4), r"topology\.kubernetes\.io/zone app")
    assert set(kept) == {ZONE, "app", "app.kubernetes.io/name"}


def test_an_ignoring_pattern_only_removes() -> None:
    kept = filter_labels(
        {"app": "job", "training.kubeflow.org/replica-index": "7"}, (1, 19, 4), "!training.kubeflow.org/replica-index"
    )
    assert set(kept) == {"app"}


def test_a_pattern_that_does_not_compile_is_no_traceback() -> None:
    assert filter_labels({"app": "job"}, (1, 19, 4), "![") == {"app": "job"}
