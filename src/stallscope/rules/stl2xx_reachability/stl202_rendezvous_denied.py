"""STL202: ranks may not reach the rendezvous port of rank 0."""

from __future__ import annotations

from collections.abc import Iterable

from stallscope.findings import Finding, Severity
from stallscope.judge.result import Judgement
from stallscope.model.traffic import FlowKind
from stallscope.rules.base import Report
from stallscope.rules.support.flows import denial_findings, under_witness

_REPORT = Report("STL202", "rendezvous-denied", Severity.ERROR, fixable=True)


def check(judgement: Judgement) -> Iterable[Finding]:
    return denial_findings(
        _REPORT,
        judgement,
        FlowKind.RENDEZVOUS,
        sees="init_process_group hangs, then 'The client socket has timed out after ... while trying to connect to (host, "
        "port)'; the coordinator logs nothing at all",
        help="allow all TCP ports among the pods of this job; the rendezvous port alone is not enough (STL203)",
        keep=under_witness,
    )


RULE = _REPORT.rule(
    check,
    what="A network policy denies the connection of a rank to the rendezvous port of the coordinator.",
    why="Initialisation (init_process_group) never returns. The job holds all its GPUs until a timeout of up to half "
    "an hour, restarts, and does it again.",
    bad="""\
kind: NetworkPolicy
spec:
  podSelector:
    matchLabels: {training.kubeflow.org/replica-type: master}
  policyTypes: [Ingress]
  ingress: []                      # nobody may enter
""",
    good="""\
kind: NetworkPolicy
spec:
  podSelector:
    matchLabels: {training.kubeflow.org/job-name: llm}
  policyTypes: [Ingress]
  ingress:
    - from:
        - podSelector:
            matchLabels: {training.kubeflow.org/job-name: llm}
""",
    fix="Allow the job's pods to reach each other on every TCP port.",
    sources=(
        "https://github.com/ray-project/kuberay/pull/1282",
        "https://github.com/kubeflow/trainer/issues/1636",
    ),
)
