"""STL109: exclusive topology over zones puts the child jobs of one training job into different zones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stallscope.findings import Finding, Severity
from stallscope.judge.result import Judgement
from stallscope.model.source import Location, as_list, as_map, as_str, dig
from stallscope.model.workload import TrainingJob
from stallscope.placement.exclusive import JOBSET_ANNOTATION
from stallscope.rules.base import Report
from stallscope.rules.support.containers import ranked_roles
from stallscope.rules.support.scheduling import ZONE_KEYS
from stallscope.rules.support.words import label

_REPORT = Report("STL109", "exclusive-topology-forces-zones", Severity.ERROR)


def check(judgement: Judgement) -> Iterable[Finding]:
    for judged in judgement.jobs:
        job = judged.job
        if job.source.kind == "JobSet":
            yield from _jobset(job)


def _jobset(job: TrainingJob) -> Iterator[Finding]:
    """On the JobSet: every child Job gets a domain of its own. On a replicatedJob: the Jobs of that one."""
    source = job.source
    whole = source.annotations.get(JOBSET_ANNOTATION)
    ranked = {r.name for r in ranked_roles(job)}
    children = [
        (i, _replicas(item), as_str(dig(item, "name")))
        for i, item in enumerate(as_list(source.get("spec", "replicatedJobs")))
    ]
    children = [c for c in children if c[2] in ranked or not ranked & {name for _, _, name in children}]
    total = sum(n for _, n, _ in children)
    if whole in ZONE_KEYS and total > 1:
        yield _finding(job, source.at("metadata", "annotations", JOBSET_ANNOTATION), f"its {total} child Jobs")
    for i, replicas, name in children:
        own = as_map(source.get("spec", "replicatedJobs", i, "template", "metadata", "annotations")).get(JOBSET_ANNOTATION)
        if own in ZONE_KEYS and replicas > 1:
            place = source.at("spec", "replicatedJobs", i, "template", "metadata", "annotations", JOBSET_ANNOTATION)
            yield _finding(job, place, f"the {replicas} Jobs of {name}")


def _replicas(item: object) -> int:
    value = dig(item, "replicas")
    return value if isinstance(value, int) and value >= 0 else 1


def _finding(job: TrainingJob, place: Location, what: str) -> Finding:
    return _REPORT.finding(
        f"exclusive topology forces {what} of {job.ref} into different zones".replace(" of its", ""),
        (label(place, "one zone per child, with anti-affinity to all others", primary=True),),
        subject=job.ref,
        notes=(
            "exclusive placement gives each child a domain of its own: with the zone as domain it is the opposite of "
            "co-location",
            "what you will see: every pod Running, half of the ranks in another zone; or Pending when zones run out",
        ),
        help="use a rack, block or node-pool key for exclusive topology, and pin the zone with nodeSelector",
    )


RULE = _REPORT.rule(
    check,
    what="The exclusive-topology annotation of a JobSet has the zone as its key while the job has two child Jobs or more. "
    "(A LeaderWorkerSet is the other way round: its groups do not talk to each other, so one zone per group is right.)",
    why="Exclusive means one child per domain, with anti-affinity against the others, so the ranks of one job are forced "
    "into as many zones as there are children.",
    bad="""\
metadata:
  annotations:
    alpha.jobset.sigs.k8s.io/exclusive-topology: topology.kubernetes.io/zone
spec:
  replicatedJobs:
    - {name: node, replicas: 2, ...}
""",
    good="""\
metadata:
  annotations:
    alpha.jobset.sigs.k8s.io/exclusive-topology: cloud.google.com/gke-nodepool
""",
    fix="Choose a domain smaller than a zone (rack, block, node pool) and pin the zone for all children.",
    sources=("https://jobset.sigs.k8s.io/docs/concepts/",),
)
