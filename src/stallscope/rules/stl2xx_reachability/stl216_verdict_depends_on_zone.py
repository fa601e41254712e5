"""STL216: whether two ranks may talk depends on the zones in which they land."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from stallscope.findings import Confidence, Finding, Severity
from stallscope.judge.result import Answer, JobJudgement, Judgement
from stallscope.model.kube import KubeObject
from stallscope.model.traffic import FlowKind
from stallscope.rules.base import Report
from stallscope.rules.support.containers import ranked_pods
from stallscope.rules.support.flows import (
    Denial,
    because,
    denial_key,
    denial_labels,
    denial_notes,
    denials,
    pair_text,
    under_witness,
)
from stallscope.rules.support.policies import ZONE_LABELS_SINCE, Mention, zone_mention
from stallscope.rules.support.words import label

_REPORT = Report("STL216", "verdict-depends-on-zone", Severity.WARNING, fixable=True)
_SEES = "what you will see: the same files run on one day and hang at init on the next, depending on where the pods landed"
_KINDS = (FlowKind.COLLECTIVE, FlowKind.RENDEZVOUS, FlowKind.LAUNCHER)


def check(judgement: Judgement) -> Iterable[Finding]:
    zonal = [(p, m) for p in judgement.policies.policies if (m := zone_mention(judgement, p)) is not None]
    for judged in judgement.jobs:
        if judged.witness is None:
            yield from _unplaced(judgement, judged, zonal)
            continue
        for denial in denials(judged, *_KINDS):
            if not under_witness(judged, denial):
                yield _reachable(judgement, judged, denial)


def _reachable(judgement: Judgement, judged: JobJudgement, denial: Denial) -> Finding:
    """Denied in a placement the scheduler may choose, though not in the one shown as witness."""
    return _REPORT.finding(
        f"{pair_text(denial.first)} if the pods land there: {because(denial)}",
        denial_labels(judgement, judged, denial),
        subject=judged.job.ref,
        key=denial_key(denial),
        notes=(*denial_notes(judgement, denial), _SEES),
        help="pin the job to one zone, or admit the job's own pods whatever their zone",
    )


def _unplaced(judgement: Judgement, judged: JobJudgement, zonal: Sequence[tuple[KubeObject, Mention]]) -> Iterator[Finding]:
    """Without nodes: a policy in force looks at zone labels, and the job is not kept in one zone."""
    if judged.can_split is Answer.NO or ranked_pods(judged.job) < 2:
        return
    if judgement.facts.kubernetes_version < ZONE_LABELS_SINCE:
        return
    for policy, hit in zonal:
        if policy.namespace not in ("", judged.job.namespace):
            continue
        yield _REPORT.finding(
            f"whether the ranks of {judged.job.ref} may talk depends on their zones: {policy.ref} selects by {hit.key}",
            (label(hit.location, "known only once the pods are bound to nodes", primary=True),),
            subject=judged.job.ref,
            key=policy.ref,
            confidence=Confidence.DEPENDS,
            notes=(
                "the API server copies zone labels to pods at binding, so a file alone cannot tell; add --nodes FILE",
                _SEES,
            ),
            help="pin the job to one zone, or admit the job's own pods whatever their zone",
        )
        return


RULE = _REPORT.rule(
    check,
    what="Two ranks may talk in one placement and may not in another that the scheduler can choose just as well. Without a "
    "node list: a policy in force selects pods by zone, and the job is not kept in one zone.",
    why="The job works on Monday and hangs on Tuesday, with the same files.",
    bad="""\
ingress:
  - from:
      - podSelector: {matchLabels: {topology.kubernetes.io/zone: zone-a}}
""",
    good="""\
ingress:
  - from:
      - podSelector: {matchLabels: {training.kubeflow.org/job-name: llm}}
""",
    fix="Keep the job in one zone, or admit its pods by the job's label.",
    sources=("https://github.com/kubernetes/enhancements/tree/master/keps/sig-node/4742-pod-topology-labels",),
)
