"""
Every job kind: a manifest that can be split, its patch under each strategy, and what must then hold. Zone a has four free
GPU nodes, zone b six, zone c only CPU nodes; every job needs three or four GPU nodes, so a pin goes to zone b.
"""

from __future__ import annotations

import copy
import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from stallscope.cli import fixrun, fixviews, pipeline
from stallscope.cli.options import InputOptions
from stallscope.judge.result import Answer, JobJudgement
from stallscope.model.workload import RoleKind
from stallscope.remedy.model import Choices, Strategy

HERE = Path(__file__).parent
KINDS = sorted(p.stem for p in (HERE / "kinds").glob("*.yaml"))
#: The GPU nodes are tainted and these carry no toleration: they cannot start at all before the fix.
STUCK = {"trainjob"}
ZONE = "topology.kubernetes.io/zone"
MOVED = (RoleKind.COORDINATOR, RoleKind.WORKER, RoleKind.SERVER)


def fix(kind: str, strategy: str, **choices: Any) -> fixrun.Run:
    options = InputOptions(paths=(str(HERE / "kinds" / f"{kind}.yaml"),), nodes=(str(HERE / "nodes.yaml"),))
    gate = pipeline.gate(select=("STL1",))
    return fixrun.run(options, gate, Choices(strategy=Strategy(strategy), **choices))


def job_of(run: fixrun.Run) -> JobJudgement:
    [judged] = run.fixed.after.judgement.jobs
    return judged


#: podSpecOverrides of Trainer v2.0 know no affinity.
CASES = [(k, s) for k in KINDS for s in ("pin", "portable") if (k, s) != ("trainjob-spec-overrides", "portable")]


@pytest.fixture(scope="module", params=CASES, ids="-".join)
def case(request: pytest.FixtureRequest) -> tuple[str, str, fixrun.Run]:
    kind, strategy = request.param
    return kind, strategy, fix(kind, strategy)


def test_the_job_could_be_split_and_no_longer_can(case: tuple[str, str, fixrun.Run]) -> None:
    kind, strategy, run = case
    [before] = run.report.jobs
    assert before.can_split is (Answer.NO if kind in STUCK else Answer.YES)
    after = job_of(run)
    assert after.can_split is Answer.NO
    assert after.placement is not None
    assert after.placement.must_start_whole
    zones = {"pin": {frozenset({"zone-b"})}, "portable": {frozenset({"zone-a"}), frozenset({"zone-b"})}}
    assert set(after.placement.zone_sets) == zones[strategy]
    assert [p.failed for p in run.fixed.proofs] == [()]


def test_every_role_that_moves_gradients_is_bound(case: tuple[str, str, fixrun.Run]) -> None:
    _, strategy, run = case
    for role in job_of(run).job.roles:
        if role.kind not in MOVED or not role.replicas:
            continue
        spec = role.template.spec
        if strategy == "pin":
            assert spec["nodeSelector"][ZONE] == "zone-b"
        else:
            required = "requiredDuringSchedulingIgnoredDuringExecution"
            terms = spec["affinity"]["podAffinity"][required]
            assert any(t["topologyKey"] == ZONE for t in terms)
            for term in spec["affinity"]["nodeAffinity"][required]["nodeSelectorTerms"]:
                assert {"key": ZONE, "operator": "In", "values": ["zone-a", "zone-b"]} in term["matchExpressions"]


def test_no_line_is_lost(case: tuple[str, str, fixrun.Run]) -> None:
    *_, run = case
    [change] = run.changes
    rest = iter(change.after.splitlines())
    assert [line for line in (change.before or "").splitlines() if line not in rest] == []


def test_json_patches_make_the_same_manifest(case: tuple[str, str, fixrun.Run]) -> None:
    *_, run = case
    [change] = run.changes
    data = json.loads(fixviews.view(run, "jsonpatch"))
    assert data["create"] == []
    documents = list(yaml.safe_load_all(change.before))
    for patch in data["patches"]:
        index = next(i for i, d in enumerate(documents) if d["kind"] == patch["kind"])
        documents[index] = apply_json_patch(documents[index], patch["patch"])
    assert documents == list(yaml.safe_load_all(change.after))


def test_json_patches_refuse_another_manifest(case: tuple[str, str, fixrun.Run]) -> None:
    *_, run = case
    [patch] = json.loads(fixviews.view(run, "jsonpatch"))["patches"]
    documents = list(yaml.safe_load_all(run.changes[0].before))
    body = next(d for d in documents if d["kind"] == patch["kind"])
    body["metadata"]["name"] = "other"
    with pytest.raises(AssertionError, match="test"):
        apply_json_patch(body, patch["patch"])


def test_kustomize_makes_the_same_manifest(case: tuple[str, str, fixrun.Run], tmp_path: Path) -> None:
    *_, run = case
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed")
    [change] = run.changes
    (tmp_path / "job.yaml").write_text(change.before or "")
    component = tmp_path / "fix"
    component.mkdir()
    for name, text in fixviews.component(run).items():
        (component / name).write_text(text)
    (tmp_path / "kustomization.yaml").write_text("resources: [job.yaml]\ncomponents: [fix]\n")
    made = subprocess.run(["kubectl", "kustomize", "."], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    assert by_name(yaml.safe_load_all(made.stdout)) == by_name(yaml.safe_load_all(change.after))


def test_overrides_without_affinity_are_refused_by_name() -> None:
    run = fix("trainjob-spec-overrides", "portable")
    assert run.changes == ()
    [left] = run.fixed.unfixed
    assert "affinity cannot be patched from TrainJob train/llm" in left.reason


def by_name(documents: Iterator[Any]) -> dict[tuple[str, str], Any]:
    return {(d["kind"], d["metadata"]["name"]): d for d in documents}


def apply_json_patch(document: Any, operations: list[dict[str, Any]]) -> Any:
    """RFC 6902 add, replace and test, written for this test alone."""
    document = copy.deepcopy(document)
    for operation in operations:
        tokens = [t.replace("~1", "/").replace("~0", "~") for t in operation["path"].split("/")[1:]]
        parent = document
        for token in tokens[:-1]:
            parent = parent[int(token)] if isinstance(parent, list) else parent[token]
        last: Any = tokens[-1]
        if isinstance(parent, list) and last != "-":
            last = int(last)
        match operation["op"]:
            case "test":
                assert parent[last] == operation["value"], f"test {operation['path']}"
            case "replace":
                assert last in parent or isinstance(last, int), f"replace {operation['path']}"
                parent[last] = copy.deepcopy(operation["value"])
            case "add" if isinstance(parent, list):
                at = len(parent) if last == "-" else last
                parent.insert(at, copy.deepcopy(operation["value"]))
            case "add":
                parent[last] = copy.deepcopy(operation["value"])
            case other:
                raise AssertionError(f"unknown operation {other}")
    return document
