"""The declared gang of a job, as the placement model takes it: who must start together, who must share a domain."""

from __future__ import annotations

from dataclasses import replace

from stallscope.model.workload import TrainingJob
from stallscope.placement.gangs import GangSpec, gang_spec, labelled_groups

#: Kueue joins PodSets that carry the same name into one domain (kueue docs, "Topology Aware Scheduling").
KUEUE_GROUP = "kueue.x-k8s.io/podset-group-name"
KUEUE_REQUIRED = "kueue.x-k8s.io/podset-required-topology"
KUEUE_PREFERRED = "kueue.x-k8s.io/podset-preferred-topology"


def declared_gang(job: TrainingJob) -> GangSpec | None:
    """
    The gang of `job`, or None. Kueue places each PodSet (role) with a topology annotation by itself unless a group name
    joins them; without one it only counts quota, which binds no pod and so is no gang for the scheduler.
    """
    if job.gang is None:
        return None
    if job.gang.system == "volcano":  # its topology is a tier of HyperNodes, no node label
        return gang_spec(replace(job.gang, topology_key=""))
    if job.gang.system != "kueue":
        return gang_spec(job.gang)
    if not job.gang.topology_key:
        return None
    spec = gang_spec(job.gang, labelled_groups(_podsets(job)))
    return spec._replace(all_or_nothing=False) if job.gang.mode != "required" else spec


def _podsets(job: TrainingJob) -> dict[str, list[str]]:
    """Pod names by PodSet (or joined PodSets) of the roles that ask for a topology."""
    groups: dict[str, list[str]] = {}
    for role in job.roles:
        notes = role.template.annotations
        if KUEUE_REQUIRED in notes or KUEUE_PREFERRED in notes:
            groups.setdefault(notes.get(KUEUE_GROUP, role.name), []).extend(p.name for p in job.pods_of(role.name))
    return groups
