"""What a declared gang or queue already guarantees, so that a finding does not ask for it again."""

from __future__ import annotations

from stallscope.model.kube import KubeObject
from stallscope.model.source import as_list, dig
from stallscope.model.topology import REGION, Topology
from stallscope.model.workload import TrainingJob
from stallscope.placement.exclusive import JOBSET_ANNOTATION, LWS_ANNOTATION
from stallscope.placement.zonepins import co_locates
from stallscope.rules.support.containers import ranked_roles

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


def kept_together(job: TrainingJob, topology: Topology | None) -> bool:
    """True when something declared on the job places all its ranks in one topology domain, a zone or smaller."""
    return _by_gang(job, topology) or _by_exclusive_topology(job, topology)


def _by_gang(job: TrainingJob, topology: Topology | None) -> bool:
    """
    A required topology of the gang or queue. Kueue assigns a domain per PodSet, so several roles need one group name
    (kueue docs, "Topology Aware Scheduling", podset-group-name).
    """
    gang = job.gang
    if gang is None or gang.mode != "required" or not _inside_a_zone(gang.topology_key, topology):
        return False
    if gang.system != "kueue":
        return True
    roles = ranked_roles(job)
    if not all(_KUEUE_REQUIRED in r.template.annotations for r in roles):
        return False
    groups = {r.template.annotations.get(_KUEUE_GROUP, r.name) for r in roles}
    return len(groups) <= 1


def _by_exclusive_topology(job: TrainingJob, topology: Topology | None) -> bool:
    """
    Exclusive placement puts one LeaderWorkerSet group, or one child Job of a JobSet, into one domain of its own; a JobSet of
    several child Jobs is thereby torn apart (STL109).
    """
    source = job.source
    if source.kind == "LeaderWorkerSet":
        return _inside_a_zone(source.annotations.get(LWS_ANNOTATION, ""), topology)
    if source.kind == "JobSet":
        return child_jobs(source) == 1 and _inside_a_zone(source.annotations.get(JOBSET_ANNOTATION, ""), topology)
    return False


def _inside_a_zone(key: str, topology: Topology | None) -> bool:
    """
    Whether a domain of `key` lies in one zone: as the nodes show when they carry it, else by its name. A name that nobody
    knows (a rack label, a Volcano tier) counts as smaller than a zone; regions and node pools do not.
    """
    if not key:
        return False
    zones: dict[str, set[str]] = {}
    for node in topology.nodes if topology else ():
        if key in node.labels:
            zones.setdefault(node.labels[key], set()).add(node.zone)
    if zones:
        return all(len(z) == 1 for z in zones.values())
    return co_locates(key) or key not in _WIDE


def child_jobs(jobset: KubeObject) -> int:
    """How many Jobs a JobSet creates: the sum of the replicas of its replicatedJobs (default 1 each)."""
    counts = (dig(item, "replicas", default=1) for item in as_list(jobset.get("spec", "replicatedJobs")))
    return sum(n for n in counts if isinstance(n, int) and n > 0)
