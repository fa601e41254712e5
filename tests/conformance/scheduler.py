"""Runs vectors/scheduler: our feasible nodes, messages and possible outcomes against those of the real kube-scheduler."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from result import Result

from stallscope.model.topology import Topology, bound_pods, node_from_body
from stallscope.placement.feasible import feasible
from stallscope.placement.group import GroupOutcome, PodRequest, judge_group

UNLABELLED = "None"


def run_file(path: Path, limit: int = 0) -> Result:
    """
    Agreement over one file. feasibility.jsonl: a verdict per node and one for the message. groups.jsonl: per recorded run,
    whether its zones are among ours, and whether what we exclude (a split, Pending pods, a whole start) did not happen.
    """
    result = Result(path=str(path))
    for case in cases(path, limit):
        result.cases += 1
        if "runs" in case:
            _judge_runs(case, result)
        else:
            _judge_nodes(case, result)
    return result


def cases(path: Path, limit: int = 0) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        for count, line in enumerate(lines, start=1):
            yield json.loads(line)
            if count == limit:
                return


def topology_of(case: Mapping[str, Any]) -> Topology:
    return Topology(
        nodes=tuple(map(node_from_body, case["nodes"])),
        bound_pods=bound_pods(case["pods"]) if "pod" in case else (),
        namespaces={n["name"]: n["labels"] for n in case.get("namespaces", ())},
    )


def _judge_nodes(case: Mapping[str, Any], result: Result) -> None:
    found = feasible(case["pod"], topology_of(case))
    ours, theirs = set(found.feasible), set(case["feasible"])
    for node in case["nodes"]:
        name = node["metadata"]["name"]
        result.verdicts += 1
        if (name in ours) != (name in theirs):
            why = next((f.message for f in found.failures if f.node == name), "feasible")
            result.miss(f"{case['id']} {name}: we say {why}, the scheduler {'feasible' if name in theirs else 'not'}")
    result.verdicts += 1
    if found.message != case["message"]:
        result.miss(f"{case['id']}: message\n      ours:   {found.message}\n      theirs: {case['message']}")


@dataclass(frozen=True, slots=True)
class Run:
    """A recorded run: zones of the bound pods, and how many wait."""

    zones: frozenset[str]
    pending: int


def judged(case: Mapping[str, Any]) -> tuple[GroupOutcome, list[Run]]:
    """Our outcome of a group case, without the scored runs, and the recorded ones."""
    pods = [PodRequest(name=b["metadata"]["name"], body=b) for b in case["pods"]]
    outcome = judge_group(pods, topology_of(case), likelihood=False)
    runs = [
        Run(frozenset("" if z == UNLABELLED else z for z in zones), len(pending))
        for zones, pending in zip(case["zones_used"], case["pending"], strict=True)
    ]
    return outcome, runs


def _judge_runs(case: Mapping[str, Any], result: Result) -> None:
    outcome, runs = judged(case)
    for number, run in enumerate(runs):
        for wrong in disagreements(outcome, run):
            result.verdicts += 1
            if wrong:
                result.miss(f"{case['id']} run {number}: {wrong}")


def disagreements(outcome: GroupOutcome, run: Run) -> tuple[str, ...]:
    """One text a claim, empty where the run does not contradict it."""
    sets = outcome.zone_sets
    return (
        ""
        if not outcome.exhaustive or run.zones in sets
        else f"zones {sorted(run.zones)} not among {list(map(sorted, sets))}",
        "a split happened that we exclude" if len(run.zones) > 1 and not outcome.may_split else "",
        "pods stayed Pending though we say it must start whole" if run.pending and outcome.must_start_whole else "",
        "it started whole though we say it cannot" if not run.pending and not outcome.may_start_whole else "",
    )


@dataclass(slots=True)
class Tightness:
    """How much the group judgement claims: claims that are never made would agree with anything."""

    cases: int = 0
    no_split: int = 0
    runs_without_split: int = 0
    must_start: int = 0
    runs_all_whole: int = 0
    zone_sets: int = 0
    observed_sets: int = 0


def tightness(path: Path) -> Tightness:
    """Claims made on a groups file, and how often the recorded runs alone would allow them."""
    counts = Tightness()
    for case in cases(path):
        outcome, runs = judged(case)
        counts.cases += 1
        counts.no_split += not outcome.may_split
        counts.runs_without_split += all(len(r.zones) < 2 for r in runs)
        counts.must_start += outcome.must_start_whole
        counts.runs_all_whole += all(not r.pending for r in runs)
        counts.zone_sets += len(outcome.zone_sets)
        counts.observed_sets += len({r.zones for r in runs})
    return counts
