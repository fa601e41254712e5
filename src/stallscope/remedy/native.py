"""
P3: the gang or queue that the job uses already gets the zone as its topology (reference: placement.md §1 and §4).

Only with evidence in the input that the topology exists: a request for a level nobody defined keeps the job from starting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from stallscope.errors import PatchRefused
from stallscope.judge.result import Judgement
from stallscope.model.kube import KubeObject
from stallscope.model.source import as_list, as_str, dig
from stallscope.model.topology import ZONE
from stallscope.model.workload import TrainingJob
from stallscope.remedy import templates
from stallscope.remedy.hypernodes import highest_zonal_tier
from stallscope.remedy.roles import movable
from stallscope.remedy.workbench import Bench

_REQUIRED = "kueue.x-k8s.io/podset-required-topology"
_GROUP = "kueue.x-k8s.io/podset-group-name"
_OTHERS = ("kueue.x-k8s.io/podset-preferred-topology", "kueue.x-k8s.io/podset-unconstrained-topology")


@dataclass(frozen=True, slots=True, kw_only=True)
class Native:
    """What was done and what stands behind it."""

    title: str
    assumptions: tuple[str, ...] = ()
    unproved: tuple[str, ...] = ()


def plan_native(bench: Bench, job: TrainingJob, judgement: Judgement, *, certain: bool) -> Native:
    """
    Record the operations on `bench`. `certain`: assume nothing that the input does not show. Raises PatchRefused with the
    reason when the job uses no such system, or it cannot be used for this.
    """
    if job.gang is None:
        raise PatchRefused("the job is in no queue or gang that knows topology")
    planner = _PLANNERS.get(job.gang.system)
    if planner is None:
        raise PatchRefused(f"{job.gang.system} knows no topology")
    return planner(bench, job, judgement, certain)


def _kueue(bench: Bench, job: TrainingJob, judgement: Judgement, certain: bool) -> Native:
    """
    One PodSet asks for its topology alone; two need one group name, which Kueue allows for exactly two PodSets of which one
    is a single pod (kueue pkg/controller/jobframework ValidatePodSetGroupingTopology).
    """
    roles = movable(job)
    assumptions = _kueue_topology(judgement, certain)
    if any(other in r.template.annotations for r in roles for other in _OTHERS):
        raise PatchRefused("a pod template asks Kueue for another topology already; change that annotation by hand")
    values = {_REQUIRED: ZONE}
    if len(roles) == 2 and min(r.replicas for r in roles) == 1:
        values[_GROUP] = _group_name(job)
    elif len(roles) > 1:
        sizes = ", ".join(f"{r.name} {r.replicas}" for r in roles)
        raise PatchRefused(f"Kueue keeps only two PodSets together, one of them of one pod; this job has {sizes}")
    for role in roles:
        templates.metadata_set(bench, role, "annotations", values)
    return Native(
        title=f"ask Kueue for one zone ({_REQUIRED.partition('/')[2]})",
        assumptions=assumptions,
        unproved=("Kueue's own assignment was not run: it admits the job once one zone has the quota and the nodes",),
    )


def _group_name(job: TrainingJob) -> str:
    """Kueue refuses a group name that is a number."""
    return f"job-{job.name}" if job.name.isdecimal() else job.name


def _kueue_topology(judgement: Judgement, certain: bool) -> tuple[str, ...]:
    flavors = list(_of(judgement, "kueue.x-k8s.io", "ResourceFlavor"))
    topologies = {t.name: t for t in _of(judgement, "kueue.x-k8s.io", "Topology")}
    used = [topologies.get(as_str(f.get("spec", "topologyName"))) for f in flavors if f.get("spec", "topologyName")]
    if any(ZONE in _levels(t) for t in used if t is not None):
        return ()
    if flavors and not used:
        raise PatchRefused("no ResourceFlavor of the input has a topologyName: topology-aware scheduling is not set up")
    if used and all(t is not None for t in used):
        raise PatchRefused(f"no Topology used by the flavors has the level {ZONE}")
    if certain:
        raise PatchRefused("the input holds no ResourceFlavor and Topology that show the zone as a level")
    return (f"the flavor that admits the job has a Topology with the level {ZONE}",)


def _levels(topology: KubeObject) -> tuple[str, ...]:
    return tuple(as_str(dig(level, "nodeLabel")) for level in as_list(topology.get("spec", "levels")))


def _volcano(bench: Bench, job: TrainingJob, judgement: Judgement, _certain: bool) -> Native:
    """``spec.networkTopology`` of a Volcano Job, at the highest tier whose HyperNodes stay within one zone."""
    if job.source.group != "batch.volcano.sh":
        raise PatchRefused("its operator writes the Volcano PodGroup; networkTopology cannot be set from this manifest")
    nodes = judgement.topology.nodes if judgement.topology else ()
    tier = highest_zonal_tier(list(_of(judgement, "topology.volcano.sh", "HyperNode")), nodes)
    if tier is None:
        raise PatchRefused("the input holds no HyperNodes (with their nodes) from which a tier within one zone follows")
    route = ("spec", "networkTopology")
    if as_str(bench.get(job.source, *route, "mode"), "hard") == "soft":
        bench.replace(job.source, (*route, "mode"), "hard")
    bench.set(job.source, (*route, "mode"), "hard")
    bench.set(job.source, (*route, "highestTierAllowed"), tier)
    return Native(
        title=f"ask Volcano for one zone (networkTopology hard, tier {tier} at most)",
        unproved=("Volcano's own scheduling was not run",),
    )


def _kai(bench: Bench, job: TrainingJob, judgement: Judgement, _certain: bool) -> Native:
    """Annotations of the workload that name a Topology and the level that must hold all its pods."""
    found = next((t for t in _of(judgement, "kai.scheduler", "Topology") if ZONE in _levels(t)), None)
    if found is None:
        raise PatchRefused(f"the input holds no KAI Topology with the level {ZONE}")
    for key, value in {"kai.scheduler/topology": found.name, "kai.scheduler/topology-required-placement": ZONE}.items():
        bench.set(job.source, ("metadata", "annotations", key), value)
    return Native(title="ask KAI for one zone", unproved=("KAI's own scheduling was not run",))


def _podgroup(bench: Bench, job: TrainingJob, judgement: Judgement, certain: bool) -> Native:
    """
    ``schedulingConstraints.topology`` of the native PodGroup. With policy basic the first pod would lock the zone (measured,
    placement.md §2.7), so a gang is required.
    """
    if certain:
        raise PatchRefused("the feature gate for PodGroup topology is off by default (alpha in 1.36)")
    names = {as_str(dig(r.template.spec, "schedulingGroup", "podGroupName")) for r in movable(job)}
    groups = [g for g in _of(judgement, "scheduling.k8s.io", "PodGroup") if g.name in names and g.namespace == job.namespace]
    if len(names) != 1 or len(groups) != 1:
        raise PatchRefused("the roles are in different PodGroups, or theirs is not in the input")
    group = groups[0]
    if group.get("spec", "schedulingPolicy", "gang") is None:
        raise PatchRefused(f"PodGroup {group.name} is no gang: with a topology alone the first pod locks the zone")
    bench.append(group, ("spec", "schedulingConstraints", "topology"), {"key": ZONE})
    return Native(
        title=f"give PodGroup {group.name} the zone as its topology",
        assumptions=("feature gate TopologyAwareWorkloadScheduling is on (alpha in 1.36)",),
        unproved=("the scheduler's gang placement was not run",),
    )


def _of(judgement: Judgement, group: str, kind: str) -> Iterator[KubeObject]:
    return (o for o in judgement.inputs.objects if o.kind == kind and o.group == group)


_PLANNERS: Mapping[str, Callable[[Bench, TrainingJob, Judgement, bool], Native]] = {
    "kueue": _kueue,
    "volcano": _volcano,
    "kai": _kai,
    "native": _podgroup,
}
