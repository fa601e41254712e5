"""Expected figures are those worked out in the write-up of the model: 7B parameters in bf16, 8 nodes (S = 14 GB)."""

from __future__ import annotations

import pytest

from stallscope.collective.cost import Algorithm, Spot, StepModel, classify, step_cost
from stallscope.collective.edges import binary_tree, crossings, double_binary_tree, interleaved, ring
from stallscope.collective.links import DEFAULT_PROFILE, EGRESS_PRICES, Link, LinkClass, LinkProfile

SEVEN_B = StepModel(gradient_bytes=14e9, compute_seconds=1.0)
CONTIGUOUS = [Spot(node=f"n{i}", zone="a" if i < 4 else "b") for i in range(8)]
INTERLEAVED = [Spot(node=f"n{i}", zone="ab"[i % 2]) for i in range(8)]
ONE_ZONE = [Spot(node=f"n{i}", zone="a") for i in range(8)]


def test_ring_edges_close_the_circle():
    assert ring(4) == ((0, 1), (1, 2), (2, 3), (3, 0))
    assert ring(1) == ()


def test_tree_has_one_parent_per_rank_but_the_root():
    assert binary_tree(4) == ((0, 1), (0, 2), (1, 3))
    first, second = double_binary_tree(4)
    assert len(first) == len(second) == 3
    assert {c for _, c in second} == {2, 3, 0}


@pytest.mark.parametrize(("zones", "expected"), [("aaaabbbb", 2), ("abababab", 8), ("aaaaaaaa", 0), ("aa bb", 0)])
def test_crossing_edges(zones, expected):
    labels = ["" if z == " " else z for z in zones]
    edges = ring(len(labels)) if " " not in zones else [(1, 2), (2, 3)]
    assert crossings(edges, labels) == expected


def test_interleaving_is_more_changes_than_grouping_needs():
    assert interleaved("abab")
    assert not interleaved("aabb")
    assert not interleaved("aabbcc")
    assert interleaved("abcabc")
    assert not interleaved("aaaa")


@pytest.mark.parametrize(
    ("spots", "gigabytes", "dollars"), [(CONTIGUOUS, 49.0, 0.98), (INTERLEAVED, 196.0, 3.92), (ONE_ZONE, 0.0, 0.0)]
)
def test_cross_zone_bytes_and_bill_of_the_7b_example(spots, gigabytes, dollars):
    cost = step_cost(spots, SEVEN_B, DEFAULT_PROFILE)
    assert cost.cross_zone_bytes / 1e9 == pytest.approx(gigabytes)
    assert cost.cross_zone_bytes / 1e9 * EGRESS_PRICES["aws"].per_gb == pytest.approx(dollars)


def test_ring_time_is_bytes_over_the_slowest_edge_plus_latency():
    profile = LinkProfile(
        name="round figures",
        node=Link(bandwidth=1e12, latency=0),
        zone=Link(bandwidth=4e9, latency=1e-4),
        cross_zone=Link(bandwidth=1e9, latency=1e-3),
    )
    model = StepModel(gradient_bytes=4e9, compute_seconds=3.0)
    spots = [Spot(node=f"n{i}", zone="aabb"[i]) for i in range(4)]
    # 2 x 3 steps of 1 GB at 1 GB/s and 1 ms each.
    split = step_cost(spots, model, profile)
    assert split.communication_seconds == pytest.approx(6 * (1.0 + 0.001))
    assert split.slowest is LinkClass.CROSS_ZONE
    assert split.idle_share == pytest.approx(6.006 / 9.006)
    together = step_cost([Spot(node=f"n{i}", zone="a") for i in range(4)], model, profile)
    assert together.communication_seconds == pytest.approx(6 * (0.25 + 0.0001))


def test_overlap_hides_communication_but_not_bytes():
    hidden = step_cost(CONTIGUOUS, StepModel(gradient_bytes=14e9, compute_seconds=1.0, overlap=1.0), DEFAULT_PROFILE)
    assert hidden.idle_share == 0
    assert hidden.cross_zone_bytes == pytest.approx(49e9)


def test_ranks_of_one_node_need_no_network():
    cost = step_cost([Spot(node="n0", zone="a")] * 8, SEVEN_B, DEFAULT_PROFILE)
    assert cost.cross_zone_edges == 0
    assert cost.slowest is LinkClass.NODE


def test_fsdp_moves_three_passes():
    model = StepModel(gradient_bytes=14e9, compute_seconds=1.0, passes=3)
    assert step_cost(CONTIGUOUS, model, DEFAULT_PROFILE).cross_zone_bytes == pytest.approx(2 * 3 * 7 / 8 * 14e9)


def test_tree_moves_the_data_once_up_and_once_down_in_halves():
    model = StepModel(gradient_bytes=8e9, compute_seconds=1.0, algorithm=Algorithm.TREE)
    cost = step_cost(ONE_ZONE, model, DEFAULT_PROFILE)
    assert cost.communication_seconds == pytest.approx(2 * 3 * 60e-6 + 8e9 / 5e9)


def test_unknown_zone_is_never_called_cross_zone():
    assert classify(Spot(node="x", zone=""), Spot(node="y", zone="b")) is LinkClass.ZONE
