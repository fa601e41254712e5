"""Whole jobs: claims and their limits, on cases small enough to count by hand."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from placement_helpers import affine_to, node, pod_body, requests, topology, zones

from stallscope.model.topology import HOSTNAME, ZONE
from stallscope.model.workload import Gang
from stallscope.placement.compilation import compile_pods
from stallscope.placement.gangs import GangSpec, TopologyRequest, gang_spec
from stallscope.placement.group import PodRequest, Settings, judge_group
from stallscope.placement.problem import build_problem
from stallscope.placement.reach import reach
from stallscope.placement.state import build_cluster


def test_no_pods_and_no_nodes() -> None:
    assert judge_group([], zones(a=1)).must_start_whole
    nothing = judge_group(requests(2), topology())
    assert not nothing.may_start_whole
    assert nothing.zone_sets == (frozenset(),)


def test_interleaved_ranks_are_the_worst_witness() -> None:
    outcome = judge_group(requests(4), zones(a=4, b=4))
    assert outcome.worst is not None
    assert [n[0] for n in outcome.worst.nodes.values() if n] in (["a", "b", "a", "b"], ["b", "a", "b", "a"])


def test_only_ranks_count_for_a_split() -> None:
    launcher = requests(1, role="launcher", gpus=0, nodeSelector={ZONE: "b"})
    workers = requests(2, nodeSelector={ZONE: "a"})
    pods = [*launcher, *workers]
    assert judge_group(pods, zones(a=2, b=1)).may_split
    outcome = judge_group(pods, zones(a=2, b=1), ranks={p.name for p in workers})
    assert not outcome.may_split
    assert outcome.zone_sets == (frozenset({"a"}),)


def test_nodes_without_a_zone_are_named_as_unjudged() -> None:
    outcome = judge_group(requests(2), topology(node("n", "", gpus=8), node("m", "", gpus=8)))
    assert outcome.zone_sets == (frozenset({""}),)
    assert outcome.unjudged == (f"zone of 2 node(s) without the label {ZONE}",)


def test_another_label_can_be_the_zone() -> None:
    racks = topology(*(node(f"n{i}", "a", gpus=8, labels={"rack": f"r{i}"}) for i in range(2)))
    assert not judge_group(requests(2), racks).may_split
    assert judge_group(requests(2), racks, settings=Settings(zone_key="rack")).zone_sets == (frozenset({"r0", "r1"}),)


def test_a_coordinator_can_take_the_last_full_node() -> None:
    # 2 nodes of 8 GPUs and 96 CPUs; workers need all GPUs and 90 CPUs, the coordinator 10 CPUs: it blocks one node
    coordinator = requests(1, role="master", gpus=0, cpu="10")
    workers = requests(2, cpu="90")
    outcome = judge_group([*coordinator, *workers], zones(a=2))
    assert not outcome.may_start_whole
    assert judge_group([*workers, *coordinator], zones(a=2)).locked is not None
    roomy = judge_group([*coordinator, *workers], zones(a=3))
    assert roomy.must_start_whole


def test_infeasible_pods_come_with_the_schedulers_words() -> None:
    outcome = judge_group(requests(3, gpus=16), zones(a=2))
    assert {k: v.message is not None for k, v in outcome.infeasible.items()} == {"worker-0": True}


def test_waiting_pods_come_with_the_words_of_that_moment() -> None:
    outcome = judge_group(requests(4, affinity=affine_to({"job": "x"})), zones(a=2, b=3))
    assert outcome.locked is not None
    assert len(outcome.locked.pending) == 2
    (found,) = outcome.waiting.values()
    assert found.message is not None
    assert found.message.startswith(
        "0/5 nodes are available: 2 Insufficient nvidia.com/gpu, 3 node(s) didn't match pod affinity rules."
    )


def test_lower_priority_pods_could_be_evicted_and_that_is_said() -> None:
    old = pod_body("old", cpu="96", nodeName="a0")
    outcome = judge_group(requests(1, priority=5), topology(node("a0", gpus=8), bound=[old]))
    assert any("preemption" in name for name in outcome.unjudged)


def test_odds_say_how_many_runs_they_stand_for() -> None:
    outcome = judge_group(requests(2), zones(a=2, b=2))
    assert outcome.odds_runs > 1
    assert set(outcome.odds) == {"zone-interleaved order", "uniform ties"}
    assert judge_group(requests(2), zones(a=2, b=2), likelihood=False).odds == {}


@pytest.mark.parametrize(
    ("free", "sets"), [({"a": 2, "b": 8}, [["b"]]), ({"a": 4, "b": 4}, [["a"], ["b"]]), ({"a": 2, "b": 3}, [[]])]
)
def test_gang_in_one_zone(free: dict[str, int], sets: list[list[str]]) -> None:
    outcome = judge_group(requests(4), zones(**free), gang=Gang(system="kueue", topology_key=ZONE, mode="required"))
    assert list(map(sorted, outcome.zone_sets)) == sets
    assert outcome.must_start_whole is (sets != [[]])


def test_a_preferred_topology_falls_back_to_a_split() -> None:
    wish = Gang(system="kueue", topology_key=ZONE, mode="preferred")
    assert not judge_group(requests(4), zones(a=4, b=4), gang=wish).may_split
    assert judge_group(requests(4), zones(a=2, b=3), gang=wish).zone_sets == (frozenset({"a", "b"}),)


def test_pod_sets_without_a_common_group_may_go_to_two_zones() -> None:
    # Kueue gives each PodSet its own domain unless podset-group-name joins them (reference §1)
    pods = [*requests(2, role="leader"), *requests(2)]
    split = gang_spec(
        Gang(system="kueue", topology_key=ZONE, mode="required"),
        [frozenset({"leader-0", "leader-1"}), frozenset({"worker-0", "worker-1"})],
    )
    assert judge_group(pods, zones(a=2, b=2), gang=split).zone_sets == (frozenset({"a", "b"}),)
    both = judge_group(pods, zones(a=4, b=2), gang=split)
    assert set(both.zone_sets) == {frozenset({"a"}), frozenset({"a", "b"})}
    joined = Gang(system="kueue", topology_key=ZONE, mode="required")
    assert judge_group(pods, zones(a=4, b=2), gang=joined).zone_sets == (frozenset({"a"}),)


def test_a_host_level_topology_needs_one_node() -> None:
    gang = GangSpec(system="kueue", topologies=(TopologyRequest(key=HOSTNAME),))
    assert judge_group(requests(4, gpus=2), zones(a=2), gang=gang).must_start_whole
    assert not judge_group(requests(4, gpus=4), zones(a=2), gang=gang).may_start_whole


def test_min_available_lets_the_rest_wait() -> None:
    volcano = Gang(system="volcano", min_count=2)
    outcome = judge_group(requests(4), zones(a=3), gang=volcano)
    assert outcome.zone_sets == (frozenset({"a"}),)
    assert not outcome.may_start_whole
    assert judge_group(requests(4), zones(a=1), gang=volcano).zone_sets == (frozenset(),)


def test_declared_tiers_without_data_are_unjudged() -> None:
    outcome = judge_group(requests(1), zones(a=1), gang=Gang(system="volcano", mode="hard"))
    assert outcome.unjudged == ("volcano network topology (its tiers are not among the inputs)",)


def test_a_native_pod_group_without_a_count_is_no_gang() -> None:
    assert not gang_spec(Gang(system="native")).all_or_nothing
    assert gang_spec(Gang(system="native", min_count=3)).all_or_nothing


def test_hostname_spread_on_exactly_as_many_nodes() -> None:
    spread = {
        "maxSkew": 1,
        "topologyKey": HOSTNAME,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"job": "x"}},
    }
    outcome = judge_group(requests(6, gpus=1, topologySpreadConstraints=[spread]), zones(a=3, b=3))
    assert outcome.must_start_whole
    assert outcome.worst is not None
    assert len(set(outcome.worst.nodes.values())) == 6


@pytest.mark.parametrize("work", [0, 1])
def test_a_cut_search_still_proves_what_counting_proves(work: int) -> None:
    pods = requests(6)
    problem = build_problem(compile_pods(pods), build_cluster(zones(a=4, b=4)), Settings())
    found = reach(problem, [p.name for p in pods], exact=work, coarse=work)
    assert found.exhaustive
    assert found.must_start_whole
    assert {e.zones for e in found.ends} == {frozenset({"a", "b"})}


def test_a_cut_search_with_terms_claims_nothing_it_cannot_prove() -> None:
    pods = requests(4, affinity=affine_to({"job": "x"}))
    problem = build_problem(compile_pods(pods), build_cluster(zones(a=2, b=8)), Settings())
    found = reach(problem, [p.name for p in pods], exact=0, coarse=0)
    assert not found.must_start_whole
    assert {frozenset({"a"}), frozenset({"b"})} <= {e.zones for e in found.ends}


def test_ranks_with_their_own_labels_are_alike_unless_a_selector_looks() -> None:
    pods = [
        PodRequest(
            name=f"p{i}",
            body={**requests(1)[0].body, "metadata": {"name": f"p{i}", "namespace": "t", "labels": {"i": str(i)}}},
        )
        for i in range(64)
    ]
    problem = build_problem(compile_pods(pods), build_cluster(zones(a=64)), Settings())
    assert len(problem.classes) == 1
