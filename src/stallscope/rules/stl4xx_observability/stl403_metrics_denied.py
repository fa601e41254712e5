"""STL403: Prometheus may not scrape the job."""

from __future__ import annotations

from collections.abc import Iterable

from stallscope.findings import Finding, Severity
from stallscope.judge.result import Judgement
from stallscope.model.traffic import FlowKind
from stallscope.rules.base import Report
from stallscope.rules.support.flows import denial_findings

_REPORT = Report("STL403", "metrics-denied", Severity.WARNING, fixable=True)


def check(judgement: Judgement) -> Iterable[Finding]:
    return denial_findings(
        _REPORT,
        judgement,
        FlowKind.METRICS,
        sees="targets of this job are down in Prometheus ('context deadline exceeded'), and alerts on them never fire",
        help="admit the monitoring namespace on the metrics port",
    )


RULE = _REPORT.rule(
    check,
    what="A policy drops the scrapes of a metrics port that the job exposes.",
    why="The job trains, but blind: when it stalls, no metric shows it.",
    bad="""\
# default deny, only the job's own pods may enter
ingress:
  - from:
      - podSelector: {matchLabels: {app: llm}}
""",
    good="""\
ingress:
  - from:
      - podSelector: {matchLabels: {app: llm}}
  - from:
      - namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: monitoring}}
    ports:
      - port: metrics
""",
    fix="Add an ingress rule for the monitoring namespace and the metrics port.",
)
