"""What bound pods hold is worked out once a shape: whatever changes the answer must change the shape."""

from __future__ import annotations

import itertools
from typing import Any

from stallscope.model.topology import Topology, bound_pods, node_from_body
from stallscope.placement.group import PodRequest, judge_group
from stallscope.placement.holding import Known, held_by
from stallscope.placement.snapshot import snapshot_of

ONE = {"requests": {"cpu": "1"}}
TWO = {"requests": {"cpu": "2"}}
PORT = [{"containerPort": 80}]


def container(**parts: Any) -> dict[str, Any]:
    return {"name": "c", **parts}


def resized(reason: str | None, **status: Any) -> dict[str, Any]:
    conditions = [{"type": "Ready", "reason": "now"}, *([{"type": "PodResizePending", "reason": reason}] if reason else [])]
    return {"spec": {"containers": [container(resources=ONE)]}, "status": {"conditions": conditions, **status}}


#: Pods no two of which hold the same, for one field each.
PODS: list[dict[str, Any]] = [
    {"spec": {"containers": []}},
    {"spec": {"containers": [None]}},
    {"spec": {"containers": [container(resources=ONE)]}},
    {"spec": {"containers": [container(resources=TWO)]}},
    {"spec": {"containers": [container(resources=ONE)] * 3}},
    {"spec": {"containers": [container(resources=ONE)], "overhead": {"cpu": "7"}}},
    {"spec": {"containers": [container(resources=ONE)], "resources": {"requests": {"cpu": "5"}}}},
    {
        "spec": {
            "containers": [container(resources=ONE)],
            "initContainers": [container(resources={"requests": {"cpu": "9"}})],
        }
    },
    {
        "spec": {
            "initContainers": [container(resources=TWO, restartPolicy="Always")],
            "containers": [container(resources=TWO)],
        }
    },
    {"spec": {"containers": [container(ports=PORT)], "hostNetwork": True}},
    {"spec": {"containers": [container(ports=[{"containerPort": 80, "hostPort": 81}])]}},
    resized("Deferred", containerStatuses=[{"name": "c", "resources": {"requests": {"cpu": "4"}}}]),
    resized("Infeasible", containerStatuses=[{"name": "c", "resources": {"requests": {"cpu": "500m"}}}]),
    resized(None, containerStatuses=[{"name": "c", "resources": ONE, "allocatedResources": {"cpu": "6"}}]),
]


def test_pods_that_hold_different_things_are_told_apart() -> None:
    known: Known = {}
    together = [held_by(pod, known) for pod in PODS]
    assert together == [held_by(pod, {}) for pod in PODS]
    assert len(known) == len(PODS)
    same = [(a, b) for a, b in itertools.combinations(range(len(PODS)), 2) if together[a] == together[b]]
    assert not same


def test_pods_of_one_shape_are_worked_out_once() -> None:
    """Name, image, environment and times differ from pod to pod and decide nothing."""
    known: Known = {}
    for i in range(3):
        spec = {"containers": [container(resources=ONE, image=f"image-{i}", env=[{"name": "A", "value": str(i)}])]}
        ready = {"type": "Ready", "lastTransitionTime": f"2025-01-0{i + 1}"}
        held_by({"metadata": {"name": f"p{i}"}, "spec": spec, "status": {"conditions": [ready]}}, known)
    assert len(known) == 1


def topology() -> Topology:
    node = {"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "3", "memory": "8Gi", "pods": "9"}}}
    pod = {"metadata": {"name": "d"}, "spec": {"nodeName": "n", "containers": [container(resources=ONE)]}}
    return Topology(nodes=(node_from_body(node),), bound_pods=bound_pods([pod]))


def test_the_snapshot_of_a_topology_is_shared_and_stays_as_it_is() -> None:
    """Three cores, one taken: of two pods that want two, one waits, and saying why binds the other to a copy."""
    cluster = topology()
    shared = snapshot_of(cluster)
    spec = {"containers": [container(resources=TWO)]}
    outcome = judge_group(
        [PodRequest(name=f"p{i}", body={"metadata": {"name": f"p{i}"}, "spec": spec}) for i in (0, 1)], cluster
    )
    assert list(outcome.waiting) == ["p1"]
    assert snapshot_of(cluster) is shared
    assert (shared.nodes[0].used, len(shared.nodes[0].pods)) == ({"cpu": 1000}, 1)
    assert snapshot_of(topology()) is not shared
