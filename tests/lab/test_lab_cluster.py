"""The pocket cluster: it connects, it shapes, it is fast, and it is gone afterwards."""

from __future__ import annotations

import socket
import threading
import time

import pytest

from stallscope.collective.links import Link
from stallscope.errors import LabError
from stallscope.lab.kernel import entered
from stallscope.lab.netns import PocketCluster, build, sent_bytes
from stallscope.lab.reach import Reached, all_pairs, measure
from stallscope.lab.shaper import Shape, shape
from stallscope.lab.topology import LabPod, LabSpec, plan

pytestmark = pytest.mark.root


def spec(pods: int, nodes: int, zones: int) -> LabSpec:
    return LabSpec(
        pods=tuple(LabPod(name=f"pod-{i}", node=f"node-{i % nodes}") for i in range(pods)),
        zones={f"node-{i}": f"zone-{i % zones}" for i in range(nodes)},
    )


def transfer(cluster: PocketCluster, source: str, destination: str, size: int) -> float:
    """Bytes/s of one TCP stream."""
    with entered(cluster.pods[destination].fd):
        listener = socket.create_server(("", 5000))
    with entered(cluster.pods[source].fd):
        sender = socket.create_connection((cluster.ips[destination], 5000), timeout=10)
    receiver, _ = listener.accept()
    with listener, sender, receiver:
        thread = threading.Thread(target=sender.sendall, args=(b"x" * size,))
        begin = time.monotonic()
        thread.start()
        left = size
        while left:
            left -= len(receiver.recv(min(left, 1 << 18)))
        seconds = time.monotonic() - begin
        thread.join()
    return size / seconds


def test_every_pair_connects_within_and_across_nodes_and_zones() -> None:
    with build(spec(8, 5, 3)) as cluster:
        found = measure(cluster, all_pairs(cluster.pods, [29500, 40000]))
    assert len(found) == 8 * 7 * 2
    assert {m.reached for m in found.values()} == {Reached.OPEN}


def test_links_carry_the_rate_of_their_class() -> None:
    """40 Mbit/s in a zone, 8 Mbit/s across: 5 and 1 MB/s, less headers (3-4 %) plus one bucket."""
    with build(spec(4, 4, 2)) as cluster:
        shape(cluster, Shape(zone=Link(bandwidth=5e6, latency=0), cross_zone=Link(bandwidth=1e6, latency=0)))
        in_zone = max(transfer(cluster, "pod-0", "pod-2", 1_500_000) for _ in range(3))  # a busy machine only slows
        across = max(transfer(cluster, "pod-0", "pod-1", 400_000) for _ in range(3))
    assert in_zone == pytest.approx(5e6, rel=0.15)
    assert across == pytest.approx(1e6, rel=0.15)


def test_each_sending_pod_has_its_own_cross_zone_rate() -> None:
    """Two senders of zone 0 at once take no longer than one: the limit is a ring edge's, as a single-flow limit is."""
    layout = LabSpec(
        pods=tuple(LabPod(name=f"pod-{i}", node=f"node-{i}") for i in range(4)),
        zones={"node-0": "zone-0", "node-1": "zone-1", "node-2": "zone-0", "node-3": "zone-1"},
    )
    rates: list[float] = []
    with build(layout) as cluster:
        shape(cluster, Shape(zone=Link(bandwidth=50e6, latency=0), cross_zone=Link(bandwidth=1e6, latency=0)))
        threads = [
            threading.Thread(target=lambda pair=pair: rates.append(transfer(cluster, *pair, 300_000)))
            for pair in (("pod-0", "pod-1"), ("pod-2", "pod-3"))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert min(rates) == pytest.approx(1e6, rel=0.2)


def test_interface_counters_see_what_crosses_zones() -> None:
    with build(spec(4, 4, 2)) as cluster:
        trunks = cluster.links_of("trunk")
        before = sent_bytes(trunks)
        transfer(cluster, "pod-0", "pod-1", 1_000_000)
        transfer(cluster, "pod-0", "pod-2", 1_000_000)  # same zone: not on the trunk
        after = sent_bytes(trunks)
    sent = after["zone-0", "zone-1"] - before["zone-0", "zone-1"]
    assert 1_000_000 < sent < 1_100_000  # payload plus at most 10 % headers


@pytest.mark.parametrize(("pods", "nodes", "goal"), [(5, 3, 0.3), (128, 16, 2.0)])
def test_up_and_down_within_the_goal(pods: int, nodes: int, goal: float) -> None:
    """The issue's goals; the best of three, because the machine is shared."""
    ups, downs = [], []
    for _ in range(3):
        begin = time.monotonic()
        cluster = build(spec(pods, nodes, 3))
        shape(cluster, Shape(zone=Link(bandwidth=1e8, latency=0), cross_zone=Link(bandwidth=1e7, latency=0)))
        ups.append(time.monotonic() - begin)
        begin = time.monotonic()
        cluster.close()
        downs.append(time.monotonic() - begin)
    assert min(ups) <= goal
    assert min(downs) <= goal


def test_impossible_specs_are_refused_with_one_line() -> None:
    with pytest.raises(LabError, match="two pods are called 'a'"):
        plan(LabSpec(pods=(LabPod(name="a", node="n"), LabPod(name="a", node="n")), zones={"n": "z"}))
    with pytest.raises(LabError, match="'m', which is not a node"):
        plan(LabSpec(pods=(LabPod(name="a", node="m"),), zones={"n": "z"}))
