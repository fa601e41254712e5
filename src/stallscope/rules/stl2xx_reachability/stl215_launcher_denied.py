"""STL215: the launcher may not reach its workers (ssh), or workers not their head."""

from __future__ import annotations

from collections.abc import Iterable

from stallscope.findings import Finding, Severity
from stallscope.judge.result import Judgement
from stallscope.model.traffic import FlowKind
from stallscope.rules.base import Report
from stallscope.rules.support.flows import denial_findings, under_witness

_REPORT = Report("STL215", "launcher-denied", Severity.ERROR, fixable=True)


def check(judgement: Judgement) -> Iterable[Finding]:
    return denial_findings(
        _REPORT,
        judgement,
        FlowKind.LAUNCHER,
        sees="'ORTE was unable to reliably start one or more daemons', 'ssh: connect to host ... timed out', or "
        "workers that wait for the head for ever",
        help="allow the pods of this job to reach each other on all TCP ports",
        keep=under_witness,
    )


RULE = _REPORT.rule(
    check,
    what="A policy denies a connection that starts the ranks: launcher to worker (ssh), mpirun's daemons back to the "
    "launcher, Ray workers to the head.",
    why="The ranks are never started, while the worker pods are Running and hold their GPUs.",
    bad="""\
podSelector: {matchLabels: {training.kubeflow.org/job-role: worker}}
ingress:
  - from:
      - podSelector: {matchLabels: {training.kubeflow.org/job-role: worker}}    # the launcher is missing
""",
    good="""\
podSelector: {matchLabels: {training.kubeflow.org/job-name: llm}}
ingress:
  - from:
      - podSelector: {matchLabels: {training.kubeflow.org/job-name: llm}}       # launcher included
""",
    fix="Select the whole job, not a role, on both sides.",
    sources=(
        "https://github.com/kubeflow/mpi-operator/issues/470",
        "https://github.com/ray-project/ray/pull/32831",
    ),
)
