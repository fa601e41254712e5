"""STL212: per-pod labels give every pod of a large job a Cilium identity of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stallscope.findings import Confidence, Finding, Severity
from stallscope.judge.result import JobJudgement, Judgement
from stallscope.policy.engine import EngineOptions
from stallscope.policy.insight import identity_exploding_keys
from stallscope.rules.base import Report
from stallscope.rules.support.words import label, listed

_REPORT = Report("STL212", "identity-explosion", Severity.WARNING)
#: Cilium: about 65k identities a cluster; 16384 policy map entries an endpoint by default (bpf-policy-map-max).
_MAP, _CLUSTER = 16_384, 65_535
_NOTABLE = 256


def check(judgement: Judgement) -> Iterable[Finding]:
    for judged in judgement.jobs:
        yield from _one(judged, judgement.policies.options)


def _one(judged: JobJudgement, options: EngineOptions) -> Iterator[Finding]:
    job = judged.job
    if len(job.pods) < _NOTABLE:
        return
    identities, exploding = identity_exploding_keys([p.labels for p in job.pods], options)
    if identities < _NOTABLE:
        return
    keys = [found.key for found in exploding]
    largest = max(job.roles, key=lambda r: r.replicas)
    place = job.source.at(*largest.replicas_route) if largest.replicas_route else job.source.at()
    yield _REPORT.finding(
        f"{job.ref} needs {identities} Cilium identities for {len(job.pods)} pods, because {listed(keys) or 'a label'} "
        "differs from pod to pod",
        (label(place, f"{len(job.pods)} pods in all", primary=True),),
        subject=job.ref,
        severity=Severity.WARNING if identities * 4 >= _MAP else Severity.INFO,
        confidence=Confidence.DEPENDS,
        notes=(
            f"a policy that admits the job's pods puts at least {identities} entries into each pod's policy map "
            f"(default limit {_MAP}); a cluster holds about {_CLUSTER} identities",
            f"{_MAP // identities} such jobs at once fill a policy map that admits them all",
            "what you will see near the limits: new pods without network for minutes, and drops that follow no rule",
        ),
        help=f"leave the labels out of identity in the agent's option: labels: {' '.join('!' + k for k in keys)}".rstrip(),
    )


RULE = _REPORT.rule(
    check,
    what="With Cilium, labels that differ per pod (replica-index, worker-index, job-index) are part of identity and give "
    "a large job hundreds or thousands of identities. Info from 256 on, a warning from a quarter of the default policy map "
    "on.",
    why="Policy maps and the identity space are limited per endpoint and per cluster. Near the limits, connections between "
    "ranks are dropped although every rule allows them.",
    bad="""\
# cilium-config: labels not set; PyTorchJob with 4,096 workers
""",
    good="""\
# cilium-config
labels: "!training.kubeflow.org/replica-index"
""",
    fix="Exclude the per-pod labels from identity. Write only exclusions ('!'): one inclusion makes the list inclusive.",
    sources=(
        "https://docs.cilium.io/en/stable/operations/performance/scalability/identity-relevant-labels/",
        "https://github.com/cilium/cilium/issues/27866",
        "https://github.com/cilium/cilium/issues/34512",
    ),
)
