"""What rules and remedies ask: zones with room, GPU taints, twin jobs, exclusive topology, specs alone, scores."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from placement_helpers import TAINT, TOLERATION, affine_to, node, pod_body, requests, topology, zones

from stallscope.model.topology import HOSTNAME, ZONE, Node, Taint
from stallscope.placement.deadlock import half_start, twin
from stallscope.placement.exclusive import JOBSET_KEY, with_exclusive_topology
from stallscope.placement.facts import affinity_facts, spread_facts, spread_forces_split
from stallscope.placement.feasible import feasible_by_class
from stallscope.placement.gangs import GangSpec
from stallscope.placement.group import judge_group
from stallscope.placement.rooms import gpu_taints, zone_rooms, zones_that_hold
from stallscope.placement.scoring import balanced_allocation, least_allocated, normal_affinity, normal_spread
from stallscope.placement.settings import spread_defaults
from stallscope.placement.spec_only import spec_only
from stallscope.placement.ties import Lcg, interleaved, uniform

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def test_missing_gpus_are_counted_per_zone() -> None:
    missing = zones_that_hold(requests(4), zones(a=4, b=2))
    assert missing["a"] == ()
    assert missing["b"] == (
        "room for 2 of 4 worker (each needs 8 nvidia.com/gpu, 1 cpu on one node)",
        "nvidia.com/gpu: 32 needed, 16 free",
    )


def test_enough_gpus_in_sum_but_not_on_one_node() -> None:
    (line,) = zones_that_hold(requests(2, gpus=8), zones(gpus=4, a=4))["a"]
    assert line == "room for 0 of 2 worker (each needs 8 nvidia.com/gpu, 1 cpu on one node)"


def test_the_pin_is_judged_with_the_toleration_it_would_bring() -> None:
    tainted = topology(*(node(f"n{i}", "a", gpus=8, taints=[TAINT]) for i in range(2)))
    room = zone_rooms(requests(2), tainted)["a"]
    assert room.holds
    assert room.certain
    assert room.tolerated == (Taint("nvidia.com/gpu", "present", "NoSchedule"),)
    assert not zone_rooms(requests(2), tainted, tolerate_gpu_taints=False)["a"].holds
    assert zone_rooms(requests(2, tolerations=[TOLERATION]), tainted)["a"].tolerated == ()


def test_taints_of_accelerator_nodes_by_zone() -> None:
    found = gpu_taints(
        topology(
            node("n1", "a", gpus=8, taints=[TAINT, {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]),
            node("n2", "b", taints=[{"key": "dedicated", "value": "web", "effect": "NoSchedule"}]),
            node("n3", "b", gpus=8, taints=[{"key": "soft", "effect": "PreferNoSchedule"}]),
        )
    )
    assert found == {"a": (Taint("nvidia.com/gpu", "present", "NoSchedule"),)}


def test_a_twin_has_its_own_names_labels_and_selectors() -> None:
    label = "training.kubeflow.org/job-name"
    (pod,) = requests(1, affinity=affine_to({label: "llm"}))
    pod.body["metadata"]["labels"][label] = "llm"
    (other,) = twin([pod])
    assert (other.name, other.body["metadata"]["labels"][label]) == ("worker-0-copy", "llm-copy")
    term = other.body["spec"]["affinity"]["podAffinity"][REQUIRED][0]
    assert term["labelSelector"]["matchLabels"] == {label: "llm-copy"}
    assert pod.body["spec"]["affinity"]["podAffinity"][REQUIRED][0]["labelSelector"]["matchLabels"] == {label: "llm"}


@pytest.mark.parametrize(("nodes", "possible"), [(6, True), (7, False), (8, False)])
def test_two_copies_on_so_many_nodes(nodes: int, possible: bool) -> None:
    # two jobs of 4 full-node pods: both starve when 2n - 2 = 6 nodes can be shared 3 and 3
    assert half_start(requests(4), zones(a=nodes)).possible is possible


def test_a_whole_gang_never_holds_half() -> None:
    assert half_start(requests(4), zones(a=6), gang=GangSpec(system="volcano")).possible is False
    assert half_start(requests(4), zones(a=6), gang=GangSpec(system="volcano", min_count=2)).possible is True


def test_exclusive_groups_keep_other_groups_out() -> None:
    pods = [*requests(1, role="x"), *requests(1, role="y")]
    apart = with_exclusive_topology(pods, ZONE, {"x-0": "j1", "y-0": "j2"})
    assert apart[0].body["metadata"]["labels"][JOBSET_KEY] == "j1"
    assert judge_group(apart, zones(a=2, b=2)).zone_sets == (frozenset({"a", "b"}),)
    assert "affinity" not in pods[0].body["spec"]


def spec_answer(**spec: Any) -> str:
    return spec_only(requests(2, **spec)).can_split


def terms(*values: list[str] | None) -> dict[str, Any]:
    items = [[{"key": ZONE, "operator": "In", "values": v}] if v else [{"key": "gpu", "operator": "Exists"}] for v in values]
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": i} for i in items]}}}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, "yes"),
        ({"nodeSelector": {ZONE: "a"}}, "no"),
        ({"affinity": terms(["a"])}, "no"),
        ({"affinity": terms(["a"], ["a"])}, "no"),
        ({"affinity": terms(["a"], None)}, "yes"),
        ({"affinity": terms(["a", "b"])}, "yes"),
        ({"affinity": terms(["a", "b"]), "nodeSelector": {ZONE: "a"}}, "no"),
        ({"nodeSelector": {"cloud.example/pool": "gpu"}}, "unknown"),
        ({"nodeSelector": {"node.kubernetes.io/instance-type": "p5.48xlarge"}}, "yes"),
        ({"affinity": affine_to({"job": "x"})}, "no"),
        ({"affinity": affine_to({"job": "x"}, HOSTNAME)}, "no"),
        ({"affinity": affine_to({"job": "x"}, "topology.kubernetes.io/region")}, "yes"),
        ({"affinity": affine_to({"app": "cache"})}, "unknown"),
        ({"nodeName": "n1"}, "no"),
    ],
)
def test_specs_alone(spec: dict[str, Any], expected: str) -> None:
    assert spec_answer(**spec) == expected


def test_specs_of_two_roles() -> None:
    one = requests(1, role="master", nodeSelector={ZONE: "a"})
    assert spec_only([*one, *requests(2, nodeSelector={ZONE: "b"})]).can_split == "yes"
    assert spec_only([*one, *requests(2)]).can_split == "yes"
    free = requests(1, role="master")
    assert spec_only([*free, *requests(2, affinity=affine_to({"role": "master"}))]).can_split == "no"
    assert spec_only([*free, *requests(2, affinity=affine_to({"job": "x"}))]).can_split == "yes"
    assert spec_only(one).can_split == "no"


def test_self_match_and_leftovers() -> None:
    pods = requests(2, affinity=affine_to({"job": "x"}))
    old = pod_body("old", nodeName="a0")
    (fact,) = affinity_facts(pods, topology(node("a0"), bound=[old]))
    assert (fact.attracts, fact.first_may_go_anywhere, fact.waits_for_ever) == (("worker",), True, False)
    assert fact.bound_matches == ("t/old",)


@pytest.mark.parametrize(("skew", "verdict"), [(1, "forces-split"), (2, "permits")])
def test_spread_over_two_full_zones(skew: int, verdict: str) -> None:
    spread = {
        "maxSkew": skew,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"job": "x"}},
    }
    (fact,) = spread_facts(requests(2, topologySpreadConstraints=[spread]), zones(a=2, b=2))
    assert fact.verdict == verdict


def test_resource_scores_by_hand() -> None:
    # cpu 25 of 100 used, memory 50 of 100: free 75 and 50, mean 62; shares 0.25 and 0.5, (1 - 0.125) * 100 = 87
    assert least_allocated((100, 100), (25, 50)) == 62
    assert balanced_allocation((100, 100), (25, 50)) == 87
    assert least_allocated((100, 0), (25, 0)) == 75
    assert least_allocated((100, 100), (101, 0)) == 50


def test_normalised_scores_by_hand() -> None:
    assert normal_spread([4.0, 1.0]) == [25, 100]
    assert normal_spread([0.0, 0.0]) == [100, 100]
    assert normal_affinity([-2.0, 0.0, 2.0]) == [0, 50, 100]


def test_orders_of_nodes() -> None:
    nodes = [Node(name=f"n{i}", labels={ZONE: "a" if i < 3 else "b"}) for i in range(4)]
    ranks = interleaved(nodes, Lcg(0))
    order = [nodes[i].zone for i in sorted(range(4), key=ranks.__getitem__)]
    assert order in (["a", "b", "a", "a"], ["b", "a", "a", "a"])
    assert sorted(uniform(nodes, Lcg(3))) == [0, 1, 2, 3]
    assert uniform(nodes, Lcg(3)) == uniform(nodes, Lcg(3))


def test_scheduler_configuration_with_its_own_default_constraints() -> None:
    hard = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
    args = {"defaultingType": "List", "defaultConstraints": [hard]}
    config = {"profiles": [{"pluginConfig": [{"name": "PodTopologySpread", "args": args}]}]}
    assert spread_defaults(config) == (hard,)
    assert spread_defaults({"profiles": [{"pluginConfig": [{"name": "PodTopologySpread", "args": {}}]}]}) is None
    assert spread_defaults({"profiles": "x"}) is None


def test_one_snapshot_for_all_roles() -> None:
    pods = [*requests(2, role="master", gpus=0, nodeSelector={ZONE: "b"}), *requests(3)]
    found = feasible_by_class([(p.klass, p.body) for p in pods], zones(a=1, b=1))
    assert {k: f.feasible for k, f in found.items()} == {"master": ("b0",), "worker": ("a0", "b0")}


def test_only_spreads_that_hurt_are_listed() -> None:
    def spread(skew: int) -> dict[str, Any]:
        selector = {"matchLabels": {"job": "x"}}
        return {"maxSkew": skew, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}

    pods = requests(3, topologySpreadConstraints=[spread(3), spread(1)])
    assert [f.index for f in spread_forces_split(pods, zones(a=2, b=2))] == [1]
