"""STL214: the API server may not reach the operator's admission webhook."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stallscope.findings import Confidence, Finding, Severity
from stallscope.judge.result import FlowJudgement, JobJudgement, Judgement
from stallscope.judge.webhooks import admission_flows
from stallscope.model.traffic import FlowKind, Outcome
from stallscope.rules.base import Report
from stallscope.rules.support.flows import denial_findings
from stallscope.rules.support.words import label, unique

_REPORT = Report("STL214", "webhook-denied", Severity.ERROR)
_EXCLUDE = "traffic.sidecar.istio.io/excludeInboundPorts"


def check(judgement: Judgement) -> Iterable[Finding]:
    yield from denial_findings(
        _REPORT,
        judgement,
        FlowKind.WEBHOOK,
        sees="'failed calling webhook ... context deadline exceeded' on kubectl apply, and no pod ever appears",
        help="add an ingress rule for the webhook port without 'from': the API server is no pod, so no selector matches it",
    )
    for judged in judgement.jobs:
        yield from _through_sidecar(judgement, judged)


def _through_sidecar(judgement: Judgement, judged: JobJudgement) -> Iterator[Finding]:
    """The operator's own sidecar stands between the API server and the webhook: it answers late, or with EOF."""
    for flow in judged.flows:
        if flow.flow.kind is FlowKind.WEBHOOK and flow.verdict.outcome is Outcome.PROXIED and flow.verdict.by_mesh:
            yield _proxied(judgement, judged, flow)
            return


def _proxied(judgement: Judgement, judged: JobJudgement, flow: FlowJudgement) -> Finding:
    number = flow.port.first
    known = admission_flows(judged.job, judgement.inputs.objects, judgement.policies.options.namespaces)
    end = next((e for f, e in known.items() if f == flow.flow), None)
    place = end.place if end else None
    return _REPORT.finding(
        f"the API server reaches the webhook of {judged.job.ref} on TCP {number} only through a mesh proxy: "
        f"{flow.verdict.reason}",
        unique(
            [
                label(place or judged.job.source.at(), "no inbound port is kept out of the proxy", primary=True),
                label(judged.job.source.at(), "this job waits for its answer"),
            ]
        ),
        subject=judged.job.ref,
        key=f"proxied:{number}",
        severity=Severity.WARNING,
        confidence=Confidence.DEPENDS,
        notes=(
            flow.flow.reason,
            "the API server is in no mesh: its calls meet the proxy without mTLS, and wait for it at every start",
            "what you will see: 'failed calling webhook ... EOF' on kubectl apply, and no pod ever appears",
        ),
        help=f'put the annotation {_EXCLUDE}: "{number}" on the operator\'s pod template',
    )


RULE = _REPORT.rule(
    check,
    what="A policy on the operator's pods denies the API server the webhook port, or (a warning) a mesh sidecar stands "
    "before it. Which webhooks a job needs is read from the webhook configurations among the files, else guessed from the "
    "operator's Deployment; a webhook with failurePolicy: Ignore gives a warning.",
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
