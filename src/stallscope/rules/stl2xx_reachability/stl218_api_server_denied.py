"""STL218: a role that needs the Kubernetes API may not reach it."""

from __future__ import annotations

from collections.abc import Iterable

from stallscope.findings import Finding, Severity
from stallscope.judge.result import JobJudgement, Judgement
from stallscope.model.traffic import FlowKind
from stallscope.rules.base import Report
from stallscope.rules.support.flows import Denial, denial_findings

_REPORT = Report("STL218", "api-server-denied", Severity.WARNING, fixable=True)


def check(judgement: Judgement) -> Iterable[Finding]:
    for cilium, of_this in ((True, _of_cilium), (False, _of_others)):
        yield from denial_findings(
            _REPORT,
            judgement,
            FlowKind.API_SERVER,
            sees="'dial tcp ...:443: i/o timeout' in the launcher or submitter, which then restarts until its backoff limit",
            help="allow egress to the API server's address on 443 and 6443 (Cilium: toEntities: [kube-apiserver])",
            fixable=None if cilium else False,  # others admit it by address only, which no manifest holds
            keep=of_this,
        )


def _of_cilium(_judged: JobJudgement, denial: Denial) -> bool:
    return all(ref.policy.startswith("Cilium") for ref in denial.policies)


def _of_others(judged: JobJudgement, denial: Denial) -> bool:
    return not _of_cilium(judged, denial)


RULE = _REPORT.rule(
    check,
    what="An egress policy denies the API server to a role that uses it: mpirun by kubectl exec (MPIJob v1), Ray's "
    "autoscaler, a submitter.",
    why="The role cannot start or scale the ranks. Selectors never match the API server: it is not a pod.",
    bad="""\
policyTypes: [Egress]
egress:
  - to: [{podSelector: {}}]
""",
    good="""\
policyTypes: [Egress]
egress:
  - to: [{podSelector: {}}]
  - to: [{ipBlock: {cidr: 10.0.0.1/32}}]         # the API server
    ports: [{port: 443}, {port: 6443}]
""",
    fix="Allow the API server's address, or the entity kube-apiserver in Cilium. Policies are judged after Service "
    "translation: the port behind the Service counts.",
    sources=("https://kubernetes.io/docs/concepts/services-networking/network-policies/",),
)
