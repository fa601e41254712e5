"""``stallscope jobs``: a block a job in text, everything in JSON, and the exit codes of every verb."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stallscope.cli.main import run

ROOT = Path(__file__).parents[2] / "scenarios" / "kinds"


def test_text_names_roles_pods_and_the_meeting_point(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["jobs", str(ROOT / "pytorchjob" / "input.yaml")]) == 0
    text = capsys.readouterr().out
    assert "PyTorchJob train/llm  3 pods, 12 ranks" in text
    assert "llm-worker-0, llm-worker-1" in text
    assert "ranks meet at llm-master-0:23456 (Master 0)" in text
    assert "needs" not in text


def test_flows_are_listed_on_request(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["jobs", "--flows", str(ROOT / "jaxjob" / "input.yaml")]) == 0
    text = capsys.readouterr().out
    assert "needs Worker -> Worker 0  TCP 6666  rendezvous" in text
    assert "needs Worker -> Worker  any of TCP 32768-60999  collective" in text


def test_json_has_every_pod_with_its_labels(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["jobs", str(ROOT / "leaderworkerset" / "input.yaml"), "-o", "json"]) == 0
    (job,) = json.loads(capsys.readouterr().out)["jobs"]
    assert (job["groups"], job["worldSize"], len(job["pods"])) == (3, 5, 5)
    assert job["pods"][4]["labels"]["leaderworkerset.sigs.k8s.io/worker-index"] == "4"


def test_what_cannot_be_listed_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["jobs", str(ROOT / "bad-input" / "input.yaml")]) == 0
    text = capsys.readouterr().out
    assert "problems:" in text
    assert "replicas must be at least 0, found -1" in text
    assert "20,001 pods" in text


def test_nothing_to_list(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.yaml").write_text("apiVersion: v1\nkind: Service\nmetadata: {name: x}\n")
    assert run(["jobs", str(tmp_path)]) == 3
    assert "no training job" in capsys.readouterr().err


def test_only_unsupported_is_no_success(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["jobs", str(ROOT / "unsupported" / "input.yaml")]) == 3
    assert "PodCliqueSet" in capsys.readouterr().out
