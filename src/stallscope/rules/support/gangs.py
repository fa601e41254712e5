"""What a declared gang or queue already guarantees, so that a finding does not ask for it again."""

from __future__ import annotations

from stallscope.model.kube import KubeObject
from stallscope.model.source import as_list, dig
from stallscope.model.topology import REGION
from stallscope.model.workload import TrainingJob
from stallscope.rules.support.containers import ranked_roles

JOBSET_EXCLUSIVE = "alpha.jobset.sigs.k8s.io/exclusive-topology"
LWS_EXCLUSIVE = "leaderworkerset.sigs.k8s.io/exclusive-topology"
#: Keys whose domains may span zones: regions, and node pools of regional clusters.
_WIDE = frozenset(
    {
        REGION,
        "cloud.google.com/gke-nodepool",
        "eks.amazonaws.com/nodegroup",
        "kubernetes.azure.com/agentpool",
        "agentpool",
        "karpenter.sh/nodepool",
    }
)
_KUEUE_REQUIRED = "kueue.x-k8s.io/podset-required-topology"
_KUEUE_GROUP = "kueue.x-k8s.io/podset-group-name"


def kept_together(job: TrainingJob) -> bool:
    """True when something declared on the job places all its ranks in one topology domain, a zone or smaller."""
    return _by_gang(job) or _by_exclusive_topology(job)


def _by_gang(job: TrainingJob) -> bool:
    """
    A required topology of the gang or queue. Kueue assigns a domain per PodSet, so several roles need one group name
    (kueue docs, "Topology Aware Scheduling", podset-group-name).
    """
    gang = job.gang
    if gang is None or gang.mode != "required" or not gang.topology_key or gang.topology_key in _WIDE:
        return False
    if gang.system != "kueue":
        return True
    roles = ranked_roles(job)
    if not all(_KUEUE_REQUIRED in r.template.annotations for r in roles):
        return False
    groups = {r.template.annotations.get(_KUEUE_GROUP, r.name) for r in roles}
    return len(groups) <= 1


def _by_exclusive_topology(job: TrainingJob) -> bool:
    """
    Exclusive placement puts one LeaderWorkerSet group, or one child Job of a JobSet, into one domain of its own; a JobSet of
    several child Jobs is thereby torn apart (STL109).
    """
    source = job.source
    if source.kind == "LeaderWorkerSet":
        key = source.annotations.get(LWS_EXCLUSIVE, "")
        return bool(key) and key not in _WIDE
    if source.kind == "JobSet":
        key = source.annotations.get(JOBSET_EXCLUSIVE, "")
        return bool(key) and key not in _WIDE and child_jobs(source) == 1
    return False


def child_jobs(jobset: KubeObject) -> int:
    """How many Jobs a JobSet creates: the sum of the replicas of its replicatedJobs (default 1 each)."""
    counts = (dig(item, "replicas", default=1) for item in as_list(jobset.get("spec", "replicatedJobs")))
    return sum(n for n in counts if isinstance(n, int) and n > 0)
