"""STL203: the policy opens the rendezvous port and nothing else: the classic wrong fix."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stallscope.findings import Finding, Severity
from stallscope.judge.result import JobJudgement, Judgement
from stallscope.model.traffic import FlowKind
from stallscope.rules.base import Report
from stallscope.rules.support.flows import (
    Denial,
    confidence_of,
    denial_key,
    denial_labels,
    denial_notes,
    denials,
    only_rendezvous,
    pair_text,
    under_witness,
)
from stallscope.rules.support.policies import ports_place, zone_conditional
from stallscope.rules.support.words import label, unique

_REPORT = Report("STL203", "only-rendezvous-port-open", Severity.ERROR, fixable=True)


def check(judgement: Judgement) -> Iterable[Finding]:
    for judged in judgement.jobs:
        for denial in denials(judged, FlowKind.COLLECTIVE):
            if under_witness(judged, denial) and not zone_conditional(judgement, judged, denial.policies):
                yield from _one(judgement, judged, denial)


def _one(judgement: Judgement, judged: JobJudgement, denial: Denial) -> Iterator[Finding]:
    opened = only_rendezvous(judged, denial)
    if opened is None:
        return
    rule, port = opened
    place = ports_place(judgement, rule)
    labels = [label(place, f"opens port {port} and no other", primary=True)]
    labels += [label(x.location, x.text) for x in denial_labels(judgement, judged, denial)]
    yield _REPORT.finding(
        f"{pair_text(denial.first)}: {rule.policy} opens only the rendezvous port {port}",
        unique(labels),
        subject=judged.job.ref,
        key=denial_key(denial),
        confidence=confidence_of(judged, denial),
        notes=(
            "NCCL and Gloo open further connections between all ranks, on ports chosen at run time (32768-60999)",
            *denial_notes(judgement, denial),
            "what you will see: init_process_group succeeds, then the first collective hangs: 'Connection timed out' in "
            "NCCL's log or 'Gloo connectFullMesh failed', and 'Watchdog caught collective operation timeout'",
        ),
        help="remove the port restriction between pods of this job: allow all TCP ports among them",
    )


RULE = _REPORT.rule(
    check,
    what="A policy admits the ranks of a job to the rendezvous port, and nothing admits them to the ports on which NCCL and "
    "Gloo listen.",
    why="It is the fix everybody tries first, and it makes things worse: the job gets past init and hangs in the first "
    "collective, where nothing points to a policy any more.",
    bad="""\
ingress:
  - from:
      - podSelector: {matchLabels: {training.kubeflow.org/job-name: llm}}
    ports:
      - {protocol: TCP, port: 23456}
""",
    good="""\
ingress:
  - from:
      - podSelector: {matchLabels: {training.kubeflow.org/job-name: llm}}
""",
    fix="Leave the ports out for traffic among the pods of the job. The ports cannot be pinned; the peers can.",
    sources=(
        "https://github.com/NVIDIA/nccl/issues/388",
        "https://github.com/kubeflow/trainer/issues/1634",
        "https://github.com/ray-project/ray/pull/32831",
        "https://github.com/kubeflow/pytorch-operator/issues/191",
    ),
)
