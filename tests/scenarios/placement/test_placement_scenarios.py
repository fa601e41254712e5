"""
The traps of the placement reference, each a small cluster and job with what was measured on the real scheduler.

A scenario names its source; expected.json holds only what that source says (or what follows from it by counting).
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from stallscope.model.topology import HOSTNAME, ZONE, Topology, bound_pods, node_from_body
from stallscope.placement.compilation import compile_pods
from stallscope.placement.deadlock import half_start
from stallscope.placement.exclusive import with_exclusive_topology
from stallscope.placement.facts import affinity_facts, affinity_pins_nothing, spread_facts, unlabelled_nodes
from stallscope.placement.feasible import first_failures_summary
from stallscope.placement.gangs import GangSpec, TopologyRequest
from stallscope.placement.group import GroupOutcome, PodRequest, Settings, judge_group
from stallscope.placement.problem import build_problem
from stallscope.placement.reach import reach
from stallscope.placement.rooms import zones_that_hold
from stallscope.placement.settings import Owner
from stallscope.placement.spec_only import spec_only
from stallscope.placement.state import build_cluster

HERE = Path(__file__).resolve().parent
SCENARIOS = sorted(p.parent.name for p in HERE.glob("*/scenario.yaml"))
NAMESPACE = "train"


@dataclass(frozen=True, slots=True)
class Scenario:
    topology: Topology
    pods: list[PodRequest]
    settings: Settings
    gang: GangSpec | None
    expected: dict[str, Any]


def load(name: str) -> Scenario:
    body = yaml.safe_load((HERE / name / "scenario.yaml").read_text(encoding="utf-8"))
    nodes = [n for group in body["nodes"] for n in nodes_of(group, body.get("node_labels", {}))]
    for index, node in enumerate(nodes):
        node["metadata"]["name"] = node["metadata"]["labels"][HOSTNAME] = f"n{index}"
    pods = [p for role in body["pods"] for p in pods_of(role)]
    if "exclusive" in body:
        groups = {p.name: r["group"] for r in body["pods"] for p in pods if p.klass == r["role"]}
        pods = with_exclusive_topology(pods, body["exclusive"], groups)
    settings = Settings(
        owners=tuple(Owner(namespace=NAMESPACE, selector=s) for s in body.get("services", ())),
        default_spread=tuple(body["default_spread"]) if "default_spread" in body else None,
    )
    return Scenario(
        topology=Topology(
            nodes=tuple(map(node_from_body, nodes)),
            bound_pods=bound_pods([bound(b, i, nodes) for i, b in enumerate(body.get("bound", ()))]),
        ),
        pods=pods,
        settings=settings,
        gang=gang_of(body["gang"]) if "gang" in body else None,
        expected=json.loads((HERE / name / "expected.json").read_text(encoding="utf-8")),
    )


def nodes_of(group: dict[str, Any], labels: dict[str, str]) -> list[dict[str, Any]]:
    allocatable = {"cpu": group.get("cpu", "96"), "memory": "1000Gi", "pods": "110"}
    if group.get("gpus"):
        allocatable["nvidia.com/gpu"] = str(group["gpus"])
    own = {**labels, HOSTNAME: "", **({ZONE: group["zone"]} if group["zone"] else {})}
    taints = [{"key": group["taint"], "value": "present", "effect": "NoSchedule"}] if "taint" in group else []
    return [
        {"metadata": {"labels": dict(own)}, "spec": {"taints": taints}, "status": {"allocatable": allocatable}}
        for _ in range(group["count"])
    ]


def pods_of(role: dict[str, Any]) -> list[PodRequest]:
    requests = {"cpu": role.get("cpu", "8" if role.get("gpus") else "2"), "memory": "4Gi"}
    if role.get("gpus"):
        requests["nvidia.com/gpu"] = str(role["gpus"])
    spec = {"containers": [{"name": "c", "resources": {"requests": requests}}], **role.get("spec", {})}
    return [
        PodRequest(
            name=(name := f"llm-{role['role']}-{i}"),
            klass=role["role"],
            body={
                "metadata": {
                    "name": name,
                    "namespace": NAMESPACE,
                    "labels": {"job": "llm", "role": role["role"], "index": str(i)},
                },
                "spec": spec,
            },
        )
        for i in range(role["count"])
    ]


def bound(entry: dict[str, Any], index: int, nodes: list[dict[str, Any]]) -> dict[str, Any]:
    home = next(n for n in nodes if n["metadata"]["labels"].get(ZONE) == entry["zone"])
    return {
        "metadata": {"name": f"old-{index}", "namespace": NAMESPACE, "labels": entry["labels"]},
        "spec": {
            "nodeName": home["metadata"]["name"],
            "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}],
        },
    }


def gang_of(body: dict[str, Any]) -> GangSpec:
    topologies = (TopologyRequest(key=body["topology"]),) if "topology" in body else ()
    count = body.get("min_count")
    return GangSpec(system="native", all_or_nothing=count is not None, min_count=count, topologies=topologies)


def judged(scenario: Scenario) -> GroupOutcome:
    return judge_group(scenario.pods, scenario.topology, settings=scenario.settings, gang=scenario.gang)


@pytest.mark.parametrize("name", SCENARIOS)
def test_outcome(name: str) -> None:
    scenario = load(name)
    outcome = judged(scenario)
    assert outcome.exhaustive
    for claim in ("may_split", "may_start_whole", "must_start_whole"):
        if claim in scenario.expected:
            assert getattr(outcome, claim) is scenario.expected[claim], claim
    if "zone_sets" in scenario.expected:
        assert sorted(map(sorted, outcome.zone_sets)) == scenario.expected["zone_sets"]
    assert (outcome.locked is not None) is not outcome.must_start_whole
    if outcome.may_split:
        assert outcome.worst is not None
        assert len(zone_counts(scenario, outcome.worst.nodes)) > 1


@pytest.mark.parametrize("name", [n for n in SCENARIOS if "bound" in load(n).expected])
def test_numbers_of_bound_pods(name: str) -> None:
    scenario = load(name)
    if scenario.gang is None:
        problem = build_problem(compile_pods(scenario.pods), build_cluster(scenario.topology), scenario.settings)
        ends = reach(problem, [p.name for p in scenario.pods]).ends
        assert sorted({e.low for e in ends} | {e.high for e in ends}) == scenario.expected["bound"]
    outcome = judged(scenario)
    for placement in (outcome.worst, outcome.locked):
        if placement is not None:
            assert len(placement.nodes) - len(placement.pending) in scenario.expected["bound"]


@pytest.mark.parametrize("name", [n for n in SCENARIOS if "likely_zones" in load(n).expected])
def test_likely_outcome(name: str) -> None:
    scenario = load(name)
    outcome = judged(scenario)
    assert outcome.likely is not None
    assert zone_counts(scenario, outcome.likely.nodes) == scenario.expected["likely_zones"]
    for model, share in scenario.expected.get("odds", {}).items():
        assert outcome.odds[model] == share


def zone_counts(scenario: Scenario, nodes: Any) -> dict[str, int]:
    zone = {n.name: n.zone for n in scenario.topology.nodes}
    return dict(Counter(zone[n] for n in nodes.values() if n is not None))


@pytest.mark.parametrize("name", [n for n in SCENARIOS if {"message", "message_is"} & load(n).expected.keys()])
def test_words_of_the_scheduler(name: str) -> None:
    scenario = load(name)
    (found,) = judged(scenario).infeasible.values()
    if "message" in scenario.expected:
        assert first_failures_summary(found) == scenario.expected["message"]
    else:
        assert found.message == scenario.expected["message_is"]


@pytest.mark.parametrize("name", SCENARIOS)
def test_facts(name: str) -> None:
    scenario, expected = load(name), load(name).expected
    if "open_terms" in expected:
        assert {f.klass: list(f.without) for f in affinity_pins_nothing(scenario.pods)} == expected["open_terms"]
    if "waits_for_ever" in expected:
        assert sorted(f.klass for f in affinity_facts(scenario.pods) if f.waits_for_ever) == expected["waits_for_ever"]
    if "spread" in expected:
        (fact,) = spread_facts(scenario.pods, scenario.topology)
        for field, value in expected["spread"].items():
            found = getattr(fact, field)
            assert (list(found) if isinstance(found, tuple) else found) == value
    if "unlabelled" in expected:
        assert len(unlabelled_nodes(scenario.topology)) == expected["unlabelled"]
    if "holds" in expected:
        assert {z: not m for z, m in zones_that_hold(scenario.pods, scenario.topology).items()} == expected["holds"]
    if "spec_only" in expected:
        assert spec_only(scenario.pods).can_split == expected["spec_only"]


@pytest.mark.parametrize("name", [n for n in SCENARIOS if "half_start" in load(n).expected])
def test_two_copies(name: str) -> None:
    scenario = load(name)
    found = half_start(scenario.pods, scenario.topology)
    assert found.possible is scenario.expected["half_start"]
    assert (found.witness is not None) is scenario.expected["half_start"]


@pytest.mark.parametrize("name", [n for n in SCENARIOS if "one_per_node" in load(n).expected])
def test_one_pod_a_node(name: str) -> None:
    outcome = judged(load(name))
    for placement in (outcome.worst, outcome.likely):
        assert placement is not None
        assert max(Counter(n for n in placement.nodes.values() if n).values()) == 1
