"""A small incident, written by hand, that every renderer is shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pytest

from stallscope.findings import Confidence, Finding, Label, Severity, Suppressed, SuppressedBy
from stallscope.judge.inputs import Problem, ProblemKind
from stallscope.judge.result import Answer, JobJudgement, Witness
from stallscope.model.kube import from_body
from stallscope.model.source import Location, Span
from stallscope.model.workload import PodTemplate, Role, RoleKind, TrainingJob
from stallscope.render.report import Report
from stallscope.rules.base import Rule

POLICY = """\
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata:
  name: zone-boundary
  namespace: train
spec:
  endpointSelector:
    matchLabels:
      app: llm
  ingress:
    - fromEndpoints:
        - matchLabels:
            zone: a
"""

JOB = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata:
  name: llm
  namespace: train
spec:
  pytorchReplicaSpecs:
    Worker:
      template:
        metadata:
          labels:
            zone: b
"""


class Texts:
    """A source cache over texts."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.texts = texts

    def lines(self, file: str) -> Sequence[str] | None:
        return self.texts[file].split("\n") if file in self.texts else None


def place(file: str, line: int, column: int, length: int, route: tuple[str | int, ...] = ()) -> Location:
    return Location(file=file, span=Span(line, column, line, column + length, 0, 0), route=route)


@pytest.fixture
def at() -> Callable[..., Location]:
    return place


@pytest.fixture
def sources() -> Texts:
    return Texts({"policy.yaml": POLICY, "job.yaml": JOB})


@pytest.fixture
def texts() -> type[Texts]:
    return Texts


@pytest.fixture
def denied() -> Finding:
    return Finding(
        rule="STL201",
        slug="peer-denied",
        severity=Severity.ERROR,
        message="worker-1 cannot reach master-0 on TCP 32768",
        labels=(
            Label(location=place("job.yaml", 12, 13, 4, ("spec", "x")), text="this worker has zone=b"),
            Label(location=place("policy.yaml", 11, 7, 13, ("spec", "ingress", 0)), text="admits zone=a only", primary=True),
        ),
        subject="PyTorchJob train/llm",
        key="collective",
        notes=("witness: worker-1 lands in zone b",),
        help="admit every rank on all TCP ports",
        fixable=True,
    )


@pytest.fixture
def split() -> Finding:
    return Finding(
        rule="STL101",
        slug="job-can-split",
        severity=Severity.WARNING,
        confidence=Confidence.DEPENDS,
        message="the ranks can land in 2 zones",
        labels=(Label(location=place("job.yaml", 4, 3, 4), text="", primary=True),),
        subject="PyTorchJob train/llm",
    )


@pytest.fixture
def telemetry() -> Finding:
    return Finding(
        rule="STL401",
        slug="no-collective-telemetry",
        severity=Severity.INFO,
        message="nothing reports collectives",
        labels=(),
        subject="PyTorchJob train/llm",
    )


@pytest.fixture
def rule() -> Rule:
    return Rule(
        id="STL201",
        slug="peer-denied",
        severity=Severity.ERROR,
        what="A policy denies a connection. The job needs it.",
        why="The ring waits for ever.",
        bad="ports: [29500]\n",
        good="ports: []\n",
        fix="Admit the job's own pods.",
        check=lambda _judgement: (),
        fixable=True,
        sources=("https://docs.cilium.io",),
    )


@pytest.fixture
def job() -> JobJudgement:
    source = from_body(
        {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "llm", "namespace": "train"}},
        file="job.yaml",
    )
    role = Role(name="Worker", kind=RoleKind.WORKER, replicas=2, template=PodTemplate(source=source, route=("spec",)))
    return JobJudgement(
        job=TrainingJob(
            kind="PyTorchJob", name="llm", namespace="train", source=source, roles=(role,), pods=(), world_size=2
        ),
        can_split=Answer.YES,
        why="no rule keeps the ranks in one zone",
        witness=Witness(nodes={"worker-0": "n1", "worker-1": None}, zones={"n1": "a"}),
    )


@pytest.fixture
def report(denied: Finding, split: Finding, telemetry: Finding, rule: Rule, job: JobJudgement) -> Report:
    accepted = Finding(
        rule="STL302",
        slug="shm-too-small",
        severity=Severity.WARNING,
        message="/dev/shm is 64 MiB",
        labels=(Label(location=place("job.yaml", 9, 7, 8), text="", primary=True),),
        subject="PyTorchJob train/llm",
    )
    return Report(
        version="0.1.0",
        jobs=(job,),
        findings=(telemetry, split, denied),
        suppressed=(
            Suppressed(
                finding=accepted, by=SuppressedBy.COMMENT, reason="one GPU a pod", location=place("job.yaml", 8, 5, 20)
            ),
            Suppressed(finding=accepted, by=SuppressedBy.BASELINE),
        ),
        problems=(
            Problem(
                kind=ProblemKind.UNRENDERED,
                message="a Helm template",
                hint="render it",
                location=place("chart/job.yaml", 1, 1, 2),
            ),
        ),
        unjudged=("host network of PyTorchJob train/llm",),
        rules={"STL201": rule},
        policies=11,
        edges=36,
        files=3,
        stale=1,
        seconds=0.207,
    )
