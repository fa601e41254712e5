"""STL217: a port that the job's own components use among themselves is closed."""

from __future__ import annotations

from collections.abc import Iterable

from stallscope.findings import Finding, Severity
from stallscope.judge.result import Judgement
from stallscope.model.traffic import FlowKind
from stallscope.rules.base import Report
from stallscope.rules.support.flows import denial_findings, under_witness

_REPORT = Report("STL217", "service-port-denied", Severity.ERROR, fixable=True)


def check(judgement: Judgement) -> Iterable[Finding]:
    return denial_findings(
        _REPORT,
        judgement,
        FlowKind.SERVICE,
        sees="the component that needs the port retries for ever: 'Waiting for GCS', 'Connection timed out', a client that "
        "never gets its job started",
        help="allow all TCP ports among the pods of this job instead of a list of single ports",
        keep=under_witness,
    )


RULE = _REPORT.rule(
    check,
    what="A policy denies a port that components of the job need among themselves: Ray's GCS, client, object manager and "
    "worker ports, parameter servers, a status server. A warning for a Service of the files that the job only names in a "
    "variable or on its command line (a data cache, a tracker).",
    why="Lists of single ports always miss one. The job starts and then waits for the missing one.",
    bad="""\
ingress:
  - from: [{podSelector: {matchLabels: {ray.io/cluster: llm}}}]
    ports: [{port: 6379}, {port: 8265}]          # client 10001 and worker ports are missing
""",
    good="""\
ingress:
  - from: [{podSelector: {matchLabels: {ray.io/cluster: llm}}}]
""",
    fix="Admit the job's own pods on every TCP port.",
    sources=(
        "https://github.com/ray-project/ray/pull/32831",
        "https://github.com/GoogleCloudPlatform/ai-on-gke/pull/413",
        "https://github.com/kubeflow/trainer/issues/3120",
    ),
)
