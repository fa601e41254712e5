"""What a declared gang or queue already guarantees, so that a finding does not ask for it again."""

from __future__ import annotations

from stallscope.model.topology import REGION
from stallscope.model.workload import TrainingJob
from stallscope.rules.support.containers import ranked_roles

_KUEUE_REQUIRED = "kueue.x-k8s.io/podset-required-topology"
_KUEUE_GROUP = "kueue.x-k8s.io/podset-group-name"


def kept_together(job: TrainingJob) -> bool:
    """
    True when the declared gang places all ranks in one topology domain, a zone or smaller. Kueue assigns a domain per
    PodSet, so several roles need one group name (kueue docs, "Topology Aware Scheduling", podset-group-name).
    """
    gang = job.gang
    if gang is None or gang.mode != "required" or not gang.topology_key or gang.topology_key == REGION:
        return False
    if gang.system != "kueue":
        return True
    roles = ranked_roles(job)
    if not all(_KUEUE_REQUIRED in r.template.annotations for r in roles):
        return False
    groups = {r.template.annotations.get(_KUEUE_GROUP, r.name) for r in roles}
    return len(groups) <= 1
