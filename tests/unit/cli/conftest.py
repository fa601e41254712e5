"""A directory with one job, and two rules that find something in it: the real pipeline, without the real rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from stallscope.cli.main import run
from stallscope.findings import Finding, Label, Severity
from stallscope.judge.result import Judgement
from stallscope.rules import registry
from stallscope.rules.base import Rule

JOB = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata:
  name: llm
  namespace: train
spec:
  pytorchReplicaSpecs:
    Master:
      replicas: 1
      template:
        spec:
          containers:
            - name: pytorch
              image: trainer
    Worker:
      replicas: 2
      template:
        spec:
          containers:
            - name: pytorch
              image: trainer
"""


def rule(id: str, slug: str, severity: Severity, *route: str | int, fixable: bool = False) -> Rule:
    """A rule that finds something at a route of every job."""

    def check(judgement: Judgement) -> Iterator[Finding]:
        for judged in judgement.jobs:
            label = Label(location=judged.job.source.at(*route), text="here", primary=True)
            yield Finding(
                rule=id, slug=slug, severity=severity, message=f"{slug} found", labels=(label,), subject=judged.job.ref,
                fixable=fixable,
            )  # fmt: skip

    return Rule(
        id=id, slug=slug, severity=severity, what="What it finds. More.", why="Why.", bad="", good="", fix="Fix it.",
        check=check, fixable=fixable,
    )  # fmt: skip


@pytest.fixture(autouse=True)
def rules(monkeypatch) -> None:
    found = (
        rule("STL201", "peer-denied", Severity.ERROR, "metadata", "name", fixable=True),
        rule("STL302", "shm-too-small", Severity.WARNING, "spec", "pytorchReplicaSpecs", "Worker"),
        Rule(
            id="STL990", slug="unused-suppression", severity=Severity.WARNING, what="A suppression matches nothing.",
            why="", bad="", good="", fix="Remove it.", check=lambda _: (),
        ),
    )  # fmt: skip
    monkeypatch.setattr(registry, "RULES", found)


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch) -> Path:
    for name in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE", "GITHUB_STEP_SUMMARY", "STALLSCOPE_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "job.yaml").write_text(JOB)
    return tmp_path


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str


@pytest.fixture
def stallscope(capsys) -> Callable[..., Done]:
    def call(*args: str, prog: str = "stallscope") -> Done:
        code = run(list(args), prog)
        out, err = capsys.readouterr()
        return Done(code, out, err)

    return call
