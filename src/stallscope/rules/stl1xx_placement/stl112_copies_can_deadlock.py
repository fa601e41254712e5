"""STL112: two copies of the job, submitted together, can each hold part of the nodes so that neither starts."""

from __future__ import annotations

from collections.abc import Iterable

from stallscope.findings import Confidence, Finding, Severity
from stallscope.judge.gang import declared_gang
from stallscope.judge.pods import pod_requests
from stallscope.judge.result import Judgement
from stallscope.placement.deadlock import half_start
from stallscope.rules.base import Report
from stallscope.rules.support.containers import accelerators, ranked_pods, ranked_roles
from stallscope.rules.support.words import label

_REPORT = Report("STL112", "copies-can-deadlock", Severity.INFO)
#: Beyond this many pods the search for a witness costs more than the advice is worth.
MOST_PODS = 128


def check(judgement: Judgement) -> Iterable[Finding]:
    topology = judgement.topology
    if topology is None or not topology.capacity_known:
        return
    for judged in judgement.jobs:
        job, outcome = judged.job, judged.placement
        if not 2 <= ranked_pods(job) <= len(job.pods) <= MOST_PODS or outcome is None or not outcome.may_start_whole:
            continue
        if not any(accelerators(r) for r in ranked_roles(job)):
            continue
        found = half_start(pod_requests(job), topology, gang=declared_gang(job))
        if found.possible:
            yield _REPORT.finding(
                f"two copies of {job.ref} submitted together can each hold part of the nodes, and neither starts",
                (label(job.source.at("spec"), "nothing makes its pods start all together or not at all", primary=True),),
                subject=job.ref,
                confidence=Confidence.DEPENDS,
                notes=(
                    found.why,
                    "what you will see: some pods of both jobs Running and waiting in init_process_group, the rest Pending; "
                    "no event says so",
                ),
                help="queue or gang-schedule it: Kueue, Volcano, coscheduling, or a native PodGroup with gang policy",
            )


RULE = _REPORT.rule(
    check,
    what="The node list has room for one copy of the job but not for two, and nothing makes a copy's pods start all "
    "together or not at all. A retry, a second experiment or a sweep then deadlocks.",
    why="Both copies hold GPUs and wait for ranks that cannot be scheduled. The GPUs are billed and idle until someone "
    "deletes one of the jobs.",
    bad="""\
kind: PyTorchJob              # 4 x 8 GPUs on a pool of 6 nodes, default scheduler
""",
    good="""\
kind: PyTorchJob
metadata:
  labels:
    kueue.x-k8s.io/queue-name: team-a     # admitted as a whole
""",
    fix="Use the gang or queue your cluster has: Kueue with topology-aware scheduling or waitForPodsReady, Volcano "
    "minAvailable, a coscheduling PodGroup, or the native PodGroup with gang.minCount.",
    sources=("https://github.com/kubernetes/enhancements/tree/master/keps/sig-scheduling/4671-gang-scheduling",),
)
