"""A remedy that does not hold in the judgement of the patched texts is taken back, and said so."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest

from stallscope.analysis import analyse
from stallscope.findings import Finding, Label, Severity
from stallscope.judge.result import Answer, Judgement
from stallscope.load.inputs import load_text
from stallscope.load.stream import parse_stream
from stallscope.model.source import Location
from stallscope.remedy import rounds
from stallscope.remedy.model import Choices, Plan, Remedy
from stallscope.remedy.ops import SetKey

JOB = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: llm, namespace: train}
spec:
  pytorchReplicaSpecs:
    Worker:
      replicas: 2
      template:
        spec:
          containers: [{name: pytorch, image: x, command: [torchrun, t.py]}]
"""
REF = "PyTorchJob train/llm"


@dataclass
class Judged:
    judgement: Judgement
    findings: tuple[Finding, ...]


def parse(text: str) -> list[Any]:
    documents, _ = parse_stream(text)
    return [d.value for d in documents]


def judge(texts: Any) -> Judged:
    found = analyse(load_text(texts))
    return Judged(found.judgement, found.findings)


def remedy(slug: str, *route: str | int, value: Any = "v") -> Remedy:
    op = SetKey(file="job.yaml", document=0, route=route, value=value)
    return Remedy(slug=slug, title=slug, job=REF, rules=("STL101",), ops=(op,))


def run(monkeypatch: pytest.MonkeyPatch, *remedies: Remedy, judge: Any = judge) -> rounds.Fixed:
    """`fix` with a planner that always proposes the same remedies, less those it was told to skip."""

    def plan(_j: Any, _f: Any, _c: Any, *, skip: Any) -> Plan:
        return Plan(tuple(r for r in remedies if (r.job, rounds.family(r)) not in skip))

    monkeypatch.setattr(rounds, "plan", plan)
    texts = {"job.yaml": JOB}
    return rounds.fix(texts, judge(texts), judge, parse, Choices())


def test_a_patch_that_cannot_be_made_is_reported_with_its_snippet(monkeypatch: pytest.MonkeyPatch) -> None:
    fixed = run(monkeypatch, remedy("pin-zone", "kind", value="Other"))
    assert fixed.texts == {"job.yaml": JOB}
    [left] = fixed.unfixed
    assert left.reason == "pin-zone: kind is already set to something else"
    assert left.hint == "# in job.yaml, at the document:\nkind: Other"


def test_a_remedy_that_makes_it_worse_is_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    def worse(texts: Any) -> Judged:
        found = judge(texts)
        if "stall" not in texts["job.yaml"]:
            return found
        job = replace(found.judgement.jobs[0], can_split=Answer.YES)
        return Judged(replace(found.judgement, jobs=(job,)), found.findings)

    monkeypatch.setattr(rounds, "ROUNDS", 3)
    good = judge({"job.yaml": JOB}).judgement
    assert good.jobs[0].can_split is not Answer.NO
    fixed = run(monkeypatch, remedy("pin-zone", "metadata", "labels", "stall"), judge=worse)
    assert fixed.texts == {"job.yaml": JOB}
    assert fixed.remedies == ()
    assert fixed.unfixed[0].reason == "tried: pin-zone; not kept: the job can still be split"


def test_a_new_error_is_a_reason_to_take_it_back(monkeypatch: pytest.MonkeyPatch) -> None:
    def noisy(texts: Any) -> Judged:
        found = judge(texts)
        place = Label(location=Location(file="job.yaml"), text="", primary=True)
        new = Finding(rule="STL999", slug="x", severity=Severity.ERROR, message="worse", labels=(place,), subject=REF)
        return Judged(found.judgement, (*found.findings, *((new,) if "stall" in texts["job.yaml"] else ())))

    monkeypatch.setattr(rounds, "ROUNDS", 2)
    fixed = run(monkeypatch, remedy("mesh-opt-out", "metadata", "labels", "stall"), judge=noisy)
    assert fixed.texts == {"job.yaml": JOB}
    assert "newly found: STL999: worse" in fixed.unfixed[0].reason
