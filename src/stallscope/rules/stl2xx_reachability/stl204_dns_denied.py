"""STL204: the job's pods may not ask the cluster DNS."""

from __future__ import annotations

from collections.abc import Iterable

from stallscope.findings import Finding, Severity
from stallscope.judge.result import Judgement
from stallscope.model.traffic import FlowKind
from stallscope.rules.base import Report
from stallscope.rules.support.flows import denial_findings

_REPORT = Report("STL204", "dns-denied", Severity.ERROR, fixable=True)


def check(judgement: Judgement) -> Iterable[Finding]:
    return denial_findings(
        _REPORT,
        judgement,
        FlowKind.DNS,
        sees="'[c10d] The IPv6 network addresses of (...) cannot be retrieved (gai error: -3 - Temporary failure in name "
        "resolution)' from every rank, for minutes",
        help="allow egress to kube-system pods labelled k8s-app=kube-dns on UDP and TCP 53",
        optional=Severity.INFO,
    )


RULE = _REPORT.rule(
    check,
    what="An egress policy denies the job's pods the cluster DNS: UDP 53 (error) or only TCP 53, which long answers need "
    "(info).",
    why="Ranks address each other by name. Without DNS nobody finds the coordinator, although the direct path is open.",
    bad="""\
policyTypes: [Egress]
egress:
  - to:
      - podSelector: {matchLabels: {app: llm}}
""",
    good="""\
policyTypes: [Egress]
egress:
  - to:
      - podSelector: {matchLabels: {app: llm}}
  - to:
      - namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: kube-system}}
        podSelector: {matchLabels: {k8s-app: kube-dns}}
    ports:
      - {protocol: UDP, port: 53}
      - {protocol: TCP, port: 53}
""",
    fix="Add an egress rule to the cluster DNS for every policy set that isolates egress.",
    sources=(
        "https://github.com/kubeflow/trainer/issues/3120",
        "https://kubernetes.io/docs/concepts/services-networking/network-policies/",
    ),
)
