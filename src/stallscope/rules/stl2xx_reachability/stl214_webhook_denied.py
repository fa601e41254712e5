"""STL214: the API server may not reach the operator's admission webhook."""

from __future__ import annotations

from collections.abc import Iterable

from stallscope.findings import Finding, Severity
from stallscope.judge.result import Judgement
from stallscope.model.traffic import FlowKind
from stallscope.rules.base import Report
from stallscope.rules.support.flows import denial_findings

_REPORT = Report("STL214", "webhook-denied", Severity.ERROR)


def check(judgement: Judgement) -> Iterable[Finding]:
    return denial_findings(
        _REPORT,
        judgement,
        FlowKind.WEBHOOK,
        sees="'failed calling webhook ... context deadline exceeded' on kubectl apply, and no pod ever appears",
        help="add an ingress rule for the webhook port without 'from': the API server is no pod, so no selector matches it",
        optional=Severity.ERROR,
    )


RULE = _REPORT.rule(
    check,
    what="A policy on the operator's pods denies the API server the webhook port.",
    why="Jobs of the kind cannot be created or changed at all: no pods will appear. Rules with namespaceSelector or "
    "podSelector never match the API server, which is not a pod.",
    bad="""\
podSelector: {matchLabels: {app: training-operator}}
ingress:
  - from:
      - namespaceSelector: {}          # pods only
    ports: [{port: 9443}]
""",
    good="""\
podSelector: {matchLabels: {app: training-operator}}
ingress:
  - ports: [{port: 9443}]              # from anywhere
""",
    fix="Open the webhook port without a peer restriction, or with the API server's address block (Cilium: fromEntities: "
    "[kube-apiserver]).",
    sources=(
        "https://github.com/kubeflow/community-distribution/issues/3580",
        "https://github.com/kubeflow/community-distribution/pull/3322",
    ),
)
