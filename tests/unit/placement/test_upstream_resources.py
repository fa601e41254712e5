"""
NodeResourcesFit and NodePorts, corner by corner, with the answer kube-scheduler 1.36's source gives.

Sources: plugins noderesources/fit.go (fitsRequest), nodeports; component-helpers resource/helpers.go (PodRequests,
AggregateContainerRequests, determineEffectiveRequests); core/v1 defaults.go (SetDefaults_ResourceList, SetDefaults_Pod,
defaultPodRequests, defaultHostNetworkPorts); schedutil.IsScalarResourceName.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from placement_upstream import ROOM, Body, bound, judge, node, pod, said

from stallscope.placement.amounts import asked_by

FULL = "Too many pods"
PORTS = "node(s) didn't have free ports for the requested pod ports"


def container(name: str, cpu: str | None = None, *, stays: bool = False, **resources: Body) -> Body:
    requests = {"requests": {"cpu": cpu}} if cpu else {}
    return {
        "name": name,
        "image": "i",
        "resources": {**requests, **resources},
        **({"restartPolicy": "Always"} if stays else {}),
    }


def fits(incoming: Body, *, cpu: str, on: list[Body] | None = None, **room: str) -> bool:
    return bool(judge(incoming, [node(room={**ROOM, "cpu": cpu, **room})], on or []).feasible)


@pytest.mark.parametrize(
    ("main", "first", "needs"),
    [
        (["1", "1"], [], 2000),
        (["1"], [("3", False)], 3000),  # init containers run alone: the larger
        (["1"], [("2", False), ("3", False)], 3000),
        (["1"], [("1", True)], 2000),  # a sidecar stays: it adds
        (["1"], [("2", True), ("2", False)], 4000),  # the init container runs beside the sidecar before it
        (["1"], [("2", False), ("2", True)], 3000),  # a sidecar that comes later does not count for it
        (["1"], [("1", True), ("1", True), ("1", False)], 3000),
        (["500m"], [("1", True), ("2", False), ("1", True)], 3000),
    ],
)
def test_init_containers_and_sidecars(main: list[str], first: list[tuple[str, bool]], needs: int) -> None:
    incoming = pod(
        containers=[container(f"c{i}", cpu) for i, cpu in enumerate(main)],
        initContainers=[container(f"i{i}", cpu, stays=stays) for i, (cpu, stays) in enumerate(first)],
    )
    assert fits(incoming, cpu=f"{needs}m")
    assert not fits(incoming, cpu=f"{needs - 1}m")


def test_overhead_comes_on_top() -> None:
    incoming = pod(requests={"cpu": "1"}, overhead={"cpu": "250m"})
    assert fits(incoming, cpu="1250m")
    assert not fits(incoming, cpu="1249m")


def test_a_limit_without_a_request_is_the_request() -> None:
    assert not fits(pod(limits={"cpu": "2"}), cpu="1")
    assert fits(pod(limits={"cpu": "2"}, requests={"cpu": "1"}), cpu="1")
    assert not fits(pod(containers=[container("c")], initContainers=[container("i", limits={"cpu": "2"})]), cpu="1")


@pytest.mark.parametrize(
    ("level", "needs"),
    [
        ({"requests": {"cpu": "4"}}, 4000),
        ({"limits": {"cpu": "4"}}, 2000),  # the containers' sum is the pod's request where they ask
        ({"limits": {"memory": "1Gi"}}, 2000),
        ({"requests": {"memory": "1Gi"}}, 2000),
    ],
)
def test_pod_level_resources(level: Body, needs: int) -> None:
    incoming = pod(containers=[container("a", "1"), container("b", "1")], resources=level)
    assert fits(incoming, cpu=f"{needs}m")
    assert not fits(incoming, cpu=f"{needs - 1}m")


def test_a_pod_level_limit_is_the_request_where_no_container_asks() -> None:
    assert not fits(pod(resources={"limits": {"cpu": "4"}}), cpu="3")
    assert fits(pod(resources={"limits": {"cpu": "4"}}), cpu="4")


def test_amounts_are_rounded_up_one_by_one() -> None:
    """SetDefaults_ResourceList rounds each amount to thousandths when the pod is stored, before anything is added."""
    assert not fits(pod(containers=[container(c, "0.0001") for c in "abc"]), cpu="2m")
    assert fits(pod(containers=[container(c, "0.0001") for c in "abc"]), cpu="3m")
    assert not fits(pod(requests={"memory": "0.5"}), cpu="1", memory="0")


def test_zero_asks_for_nothing_even_of_a_node_that_is_over_capacity() -> None:
    over = [bound("n", requests={"cpu": "9"})]
    assert fits(pod(requests={"cpu": "0"}), cpu="1", on=over)
    assert not fits(pod(requests={"cpu": "1m"}), cpu="1", on=over)


@pytest.mark.parametrize(
    ("asks", "room", "why"),
    [
        ({"example.com/x": "1"}, {}, "Insufficient example.com/x"),
        ({"example.com/x": "0"}, {}, None),
        ({"example.com/x": "1"}, {"example.com/x": "1"}, None),
        ({"ephemeral-storage": "9Gi"}, {}, "Insufficient ephemeral-storage"),
        ({"hugepages-2Mi": "4Mi", "cpu": "1"}, {"hugepages-2Mi": "2Mi"}, "Insufficient hugepages-2Mi"),
        ({"hugepages-2Mi": "4Mi", "cpu": "1"}, {}, "Insufficient hugepages-2Mi"),
    ],
)
def test_other_resources(asks: Body, room: Body, why: str | None) -> None:
    limits = {k: v for k, v in asks.items() if k not in ("cpu", "ephemeral-storage")}
    assert said(pod(requests=asks, limits=limits), node(room={**ROOM, **room})) == {"n": why}


def test_a_resource_no_node_states_is_zero_to_nodes_that_state_how_many_pods_they_take() -> None:
    bare = node(room={"cpu": "8", "memory": "8Gi", "pods": "110"})
    assert said(pod(requests={"ephemeral-storage": "1"}), bare) == {"n": "Insufficient ephemeral-storage"}


def test_every_short_resource_is_named_and_the_pod_count_first() -> None:
    tight = node(room={**ROOM, "cpu": "1", "memory": "1Gi", "pods": "1"})
    found = judge(pod(requests={"cpu": "2", "memory": "2Gi"}), [tight], [bound("n")])
    assert found.failures[0].reasons == (FULL, "Insufficient cpu", "Insufficient memory")


def test_pods_that_are_being_deleted_hold_their_room_and_finished_ones_do_not() -> None:
    """framework.NodeInfo counts terminating pods; the scheduler's informer leaves out Succeeded and Failed ones."""
    small = node(room={**ROOM, "pods": "1"})
    assert said(pod(), small, on=[bound("n", deleted=True)]) == {"n": FULL}
    assert said(pod(), small, on=[bound("n", status={"phase": "Succeeded"})]) == {"n": None}
    assert said(pod(), small, on=[bound("gone")]) == {"n": None}


@pytest.mark.parametrize(
    ("status", "condition", "held"),
    [
        ({}, None, 2000),  # no resources in the status: the spec counts
        ({"resources": {"requests": {"cpu": "3"}}}, None, 3000),  # a shrink that has not happened yet
        ({"resources": {"requests": {"cpu": "1"}}}, None, 2000),  # growing: what is asked for
        ({"resources": {"requests": {"cpu": "1"}}, "allocatedResources": {"cpu": "3"}}, None, 3000),
        ({"resources": {"requests": {"cpu": "1"}}}, "Deferred", 2000),
        ({"resources": {"requests": {"cpu": "1"}}}, "Infeasible", 1000),  # will never be granted
        ({"allocatedResources": {"cpu": "3"}}, None, 2000),  # looked at only beside `resources`
    ],
)
def test_a_bound_pod_that_is_being_resized(status: Body, condition: str | None, held: int) -> None:
    """KEP-1287, helpers.go determineEffectiveRequests."""
    conditions = [{"type": "PodResizePending", "status": "True", "reason": condition}] if condition else []
    body = {"phase": "Running", "conditions": conditions, "containerStatuses": [{"name": "c", **status}]}
    old = [bound("n", requests={"cpu": "2"}, status=body)]
    free = 8000 - held
    assert fits(pod(requests={"cpu": f"{free}m"}), cpu="8", on=old)
    assert not fits(pod(requests={"cpu": f"{free + 1}m"}), cpu="8", on=old)


@pytest.mark.parametrize(
    ("mine", "theirs", "free"),
    [
        ({"hostPort": 80}, {"hostPort": 80}, False),
        ({"hostPort": 80}, {"hostPort": 81}, True),
        ({"hostPort": 80, "protocol": "UDP"}, {"hostPort": 80}, True),  # TCP is the default
        ({"hostPort": 80, "hostIP": "10.0.0.1"}, {"hostPort": 80, "hostIP": "10.0.0.2"}, True),
        ({"hostPort": 80, "hostIP": "10.0.0.1"}, {"hostPort": 80}, False),  # no address: all of them
        ({"hostPort": 80}, {"hostPort": 80, "hostIP": "10.0.0.2"}, False),
        ({"hostPort": 80, "hostIP": "0.0.0.0"}, {"hostPort": 80, "hostIP": "10.0.0.2"}, False),  # noqa: S104
        ({"hostPort": 80, "hostIP": "::"}, {"hostPort": 80, "hostIP": "10.0.0.2"}, True),  # only 0.0.0.0 is a wildcard
        ({}, {"hostPort": 80}, True),
    ],
)
def test_host_ports(mine: Body, theirs: Body, free: bool) -> None:
    """framework.HostPortInfo.CheckConflict."""
    port, other = ({"containerPort": 80, **p} for p in (mine, theirs))
    incoming = pod(containers=[{"name": "c", "image": "i", "ports": [port]}])
    old = bound("n", containers=[{"name": "c", "image": "i", "ports": [other]}])
    assert said(incoming, node(), on=[old]) == {"n": None if free else PORTS}


def test_ports_of_sidecars_and_of_the_host_network() -> None:
    """Only init containers that stay hold ports; on the host network each container port is one."""
    ports = [{"containerPort": 80, "hostPort": 80}]
    incoming = pod(containers=[{"name": "c", "image": "i", "ports": ports}])
    for stays in (True, False):
        first = {"name": "i", "image": "i", "ports": ports, **({"restartPolicy": "Always"} if stays else {})}
        old = bound("n", initContainers=[first])
        assert said(incoming, node(), on=[old]) == {"n": PORTS if stays else None}
    old = bound("n", hostNetwork=True, containers=[{"name": "c", "image": "i", "ports": [{"containerPort": 80}]}])
    assert said(incoming, node(), on=[old]) == {"n": PORTS}


@pytest.mark.parametrize(
    ("spec", "cpu", "mebibytes"),
    [
        ({}, 100, 200),
        ({"requests": {"cpu": "0"}}, 0, 200),  # said, and nothing
        ({"requests": {"cpu": "1", "memory": "1Gi"}}, 1000, 1024),
        ({"containers": [container("a"), container("b", "1")]}, 1100, 400),
        ({"initContainers": [container("i", "1")]}, 1000, 200),  # silent init containers count as silent ones do
        ({"initContainers": [container("i", stays=True)]}, 200, 400),
        ({"overhead": {"cpu": "1"}}, 1100, 200),
        ({"resources": {"requests": {"cpu": "2", "memory": "2Gi"}}}, 2000, 2048),
        ({"resources": {"limits": {"cpu": "2", "memory": "2Gi"}}}, 2000, 2048),
    ],
)
def test_what_the_scores_assume_of_silent_containers(spec: Body, cpu: int, mebibytes: int) -> None:
    """framework PodInfo.CalculateResource: PodRequests with NonMissingContainerRequests (100m, 200Mi) for each container."""
    assert asked_by(pod(**spec)["spec"]).scoring == (cpu, mebibytes * 1024 * 1024)
