"""STL111: the gang waits for more pods than the job has, or lets the job start without all of its ranks."""

from __future__ import annotations

from collections.abc import Iterable

from stallscope.findings import Confidence, Finding, Severity
from stallscope.judge.result import Judgement
from stallscope.model.workload import RoleKind, TrainingJob
from stallscope.rules.base import Report
from stallscope.rules.support.containers import ranked_pods
from stallscope.rules.support.words import count, label

_REPORT = Report("STL111", "gang-size-mismatch", Severity.ERROR)


def check(judgement: Judgement) -> Iterable[Finding]:
    for judged in judgement.jobs:
        found = _one(judged.job)
        if found is not None:
            yield found


def _one(job: TrainingJob) -> Finding | None:
    gang = job.gang
    if gang is None or gang.min_count is None or not job.distributed or not job.pods:
        return None
    place = gang.location or job.source.at()
    late = _late(job)
    if late and len(job.pods) - late < gang.min_count <= len(job.pods):
        return _REPORT.finding(
            f"the gang of {job.ref} waits for {count(gang.min_count, 'pod')}, but the launcher is created only after the "
            f"other {len(job.pods) - late} run",
            (
                label(place, f"at least {gang.min_count} pods must be there", primary=True),
                label(job.source.at("spec", "launcherCreationPolicy"), "the launcher comes last"),
            ),
            subject=job.ref,
            key="order",
            notes=(
                f"what you will see: '{len(job.pods) - late}/{gang.min_count} tasks in gang unschedulable: pod group is not "
                "ready', workers Pending, no launcher",
            ),
            help=f"set the gang's minimum to {len(job.pods) - late}, or launcherCreationPolicy to AtStartup",
        )
    if gang.min_count > len(job.pods):
        return _REPORT.finding(
            f"the gang of {job.ref} waits for {count(gang.min_count, 'pod')}, but the job creates {len(job.pods)}",
            (label(place, f"at least {gang.min_count} pods must be there", primary=True),),
            subject=job.ref,
            key="more",
            notes=(
                f"what you will see: '{len(job.pods)}/{gang.min_count} tasks in gang unschedulable: pod group is not ready'"
                ", although there is room",
            ),
            help=f"set the gang's minimum to {len(job.pods)}",
        )
    ranked = ranked_pods(job)
    if gang.min_count < ranked and not _elastic(job):
        return _REPORT.finding(
            f"the gang of {job.ref} lets {count(gang.min_count, 'pod')} start, but no step is made without all {ranked}",
            (label(place, f"{gang.min_count} of {ranked} are enough for the scheduler", primary=True),),
            subject=job.ref,
            key="fewer",
            severity=Severity.WARNING,
            confidence=Confidence.DEPENDS,
            notes=(
                "with less room than the whole job needs, some pods hold GPUs and wait for the others; two such jobs can "
                "block each other for ever",
                "what you will see: pods Running at the rendezvous, the rest Pending, no step",
            ),
            help=f"set the gang's minimum to {len(job.pods)}",
        )
    return None


def _late(job: TrainingJob) -> int:
    """Pods the controller creates only after the others are ready (mpi-operator, launcherCreationPolicy)."""
    if job.source.get("spec", "launcherCreationPolicy") != "WaitForWorkersReady":
        return 0
    return sum(r.replicas for r in job.roles if r.kind is RoleKind.LAUNCHER)


def _elastic(job: TrainingJob) -> bool:
    """Elastic jobs are made to start with fewer ranks."""
    return job.source.get("spec", "elasticPolicy") is not None


RULE = _REPORT.rule(
    check,
    what="The declared gang (PodGroup, minAvailable, minMember) waits for more pods than the job creates, or for a pod that "
    "is created only after the others run (error), or is "
    "content with fewer than the ranks of a job that is not elastic (warning).",
    why="Too many: the job never starts, although there is room. Too few: it starts in part and holds idle GPUs.",
    bad="""\
kind: Job                       # batch.volcano.sh/v1alpha1
spec:
  minAvailable: 2               # master and one of eight workers
  tasks:
    - {name: master, replicas: 1}
    - {name: worker, replicas: 8}
""",
    good="""\
kind: Job
spec:
  minAvailable: 9
  tasks:
    - {name: master, replicas: 1}
    - {name: worker, replicas: 8}
""",
    fix="Set the minimum to the number of pods the job creates at its start; leave it out where the default is the sum.",
    sources=(
        "https://github.com/kubedl-io/kubedl/issues/180",
        "https://github.com/volcano-sh/volcano/issues/3373",
        "https://volcano.sh/en/docs/vcjob/",
    ),
)
