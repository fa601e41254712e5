"""
Which zones can hold a whole job, and what a role needs to run there. Asked of the placement engine itself, with the job's
pods changed as a pin would change them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from stallscope.errors import PatchRefused
from stallscope.judge.pods import pod_requests
from stallscope.model.quantity import parse_quantity
from stallscope.model.source import as_list, as_map, as_str, dig
from stallscope.model.topology import ZONE, Node, Taint, Topology
from stallscope.model.workload import Role, TrainingJob
from stallscope.placement.feasible import feasible
from stallscope.placement.podspec import PodSpec, compile_pod
from stallscope.placement.tolerations import FILTERING_EFFECTS, Toleration, parse_tolerations, untolerated
from stallscope.placement.zonepins import ZONE_KEYS
from stallscope.remedy.model import Coordinator
from stallscope.remedy.roles import accelerated, accelerator_resources, movable, tolerations
from stallscope.remedy.settle import settled
from stallscope.remedy.specedits import JobEdits, SpecEdit, trial_pods

#: Words in a taint that say "accelerators live here" (nvidia.com/gpu, sku=gpu on AKS, google.com/tpu).
_ACCELERATOR_WORDS = ("gpu", "tpu", "accelerator", "gaudi", "neuron")


@dataclass(frozen=True, slots=True, kw_only=True)
class ZoneFit:
    """
    What a zone offers a job pinned to it: it `holds` every pod in every order, or `why_not`. `tolerations` are what each
    role lacks there, `pin` are the edits of a pin that works. `free` counts free accelerators (0 where capacity is unknown).
    """

    zone: str
    holds: bool
    why_not: str = ""
    tolerations: Mapping[str, tuple[Mapping[str, Any], ...]] = field(default_factory=dict)
    free: Fraction = Fraction(0)
    pin: JobEdits | None = None


def fit_zones(job: TrainingJob, topology: Topology, coordinator: Coordinator, *, force: bool = False) -> tuple[ZoneFit, ...]:
    """
    Every zone, best first: those that hold the job, those the manifest names already, by free accelerators, by name.
    `force`: a zone that the manifest pins today may be replaced.
    """
    needs = accelerator_resources(job.roles)
    marked = {n.zone for n in topology.nodes if n.zone and _has_accelerators(n, needs)} if needs else set()
    named = named_zones(job)
    fits = [_fit(job, topology, zone, coordinator, marked, force) for zone in topology.zones]
    return tuple(sorted(fits, key=lambda f: (not f.holds, f.zone not in named, -f.free, f.zone)))


def _fit(
    job: TrainingJob, topology: Topology, zone: str, coordinator: Coordinator, marked: set[str], force: bool
) -> ZoneFit:
    if marked and zone not in marked:
        return ZoneFit(zone=zone, holds=False, why_not="no accelerators there")
    lacking = {r.name: lacking_tolerations(job, r, topology, zone, coordinator) for r in movable(job)}
    free = _free(topology, zone, accelerator_resources(job.roles))
    pin = pin_edits(job, zone, lacking, force=force)
    try:
        edits = settled(job, topology, pin, pinned=True)
    except PatchRefused as refused:
        reason = _why_not(job, pin, topology, zone) or refused.message
        return ZoneFit(zone=zone, holds=False, why_not=reason, tolerations=lacking, free=free)
    return ZoneFit(zone=zone, holds=True, tolerations=lacking, free=free, pin=edits)


def pin_edits(
    job: TrainingJob, zone: str, lacking: Mapping[str, Sequence[Mapping[str, Any]]], *, force: bool = False
) -> JobEdits:
    """The pin itself (P1): nodeSelector on the zone and the tolerations each role lacks."""
    specs = {}
    for role in movable(job):
        replaces = force and dig(role.template.spec, "nodeSelector", ZONE) is not None
        selector = SpecEdit("replace" if replaces else "set", ("nodeSelector", ZONE), zone)
        specs[role.name] = (*(SpecEdit("append", ("tolerations",), t) for t in lacking.get(role.name, ())), selector)
    return JobEdits(specs=specs)


def named_zones(job: TrainingJob) -> frozenset[str]:
    """Zones that the manifest names today, be it in a pin that pins nothing."""
    return frozenset(z for pod in {p.klass: p for p in pod_requests(job)}.values() for z in _zones_in(compile_pod(pod.body)))


def _zones_in(pod: PodSpec) -> frozenset[str]:
    terms = pod.nodes.terms or ()
    by_terms = {v for t in terms for r in t.labels if r.key in ZONE_KEYS and r.operator == "In" for v in r.values}
    return frozenset(by_terms | {v for k, v in pod.nodes.selector if k in ZONE_KEYS})


def lacking_tolerations(
    job: TrainingJob, role: Role, topology: Topology, zone: str, coordinator: Coordinator
) -> tuple[Mapping[str, Any], ...]:
    """
    Tolerations the role needs to run in `zone`, in the words its peers use. None when it can run there without: then a
    CPU pool takes it, unless the user wants it on the GPU nodes.
    """
    if coordinator is Coordinator.CPU_POOL and not accelerated(role):
        return ()
    spec = role.template.spec
    affinity = {k: v for k, v in as_map(spec.get("affinity")).items() if k == "nodeAffinity"}
    alone = {
        **{k: v for k, v in spec.items() if k != "topologySpreadConstraints"},
        "affinity": affinity,
        "nodeSelector": {**as_map(spec.get("nodeSelector")), ZONE: zone},
    }
    here = replace(topology, nodes=tuple(n for n in topology.nodes if n.zone == zone))
    able = feasible({"metadata": {"namespace": job.namespace}, "spec": alone}, here).feasible
    wants_gpu_nodes = accelerated(role) or coordinator is Coordinator.GPU_NODES
    if any(not wants_gpu_nodes or _is_gpu_node(topology, name) for name in able):
        return ()
    return _for_taints(job, role, gpu_taints(topology, zone))


def gpu_taints(topology: Topology, zone: str) -> tuple[Taint, ...]:
    """Taints of the zone's nodes that say "accelerators": others (maintenance, teams) are nobody's to tolerate."""
    found: dict[Taint, None] = {}
    for node in topology.nodes:
        if node.zone == zone:
            found |= dict.fromkeys(t for t in node.taints if t.effect in FILTERING_EFFECTS and _says_accelerator(t))
    return tuple(found)


def _for_taints(job: TrainingJob, role: Role, taints: Iterable[Taint]) -> tuple[Mapping[str, Any], ...]:
    have = parse_tolerations(role.template.spec)
    peers = [t for r in movable(job) if r.name != role.name for t in tolerations(r)]
    found: list[Mapping[str, Any]] = []
    for taint in taints:
        if untolerated([taint], (*have, *(_parsed(f) for f in found))) is None:
            continue
        copied = next((t for t in peers if as_str(dig(t, "key")) and _parsed(t).tolerates(taint)), None)
        found.append(dict(copied) if copied is not None else _toleration(taint))
    return tuple(found)


def follow_peers(job: TrainingJob, role: Role) -> tuple[Mapping[str, Any], ...]:
    """Without nodes: the accelerator tolerations that the accelerated peers have and the role lacks."""
    if accelerated(role):
        return ()
    have = parse_tolerations(role.template.spec)
    found = []
    for peer in (r for r in movable(job) if accelerated(r)):
        for item in tolerations(peer):
            known = _parsed(item)
            taint = Taint(known.key, known.value, known.effect or "NoSchedule")
            if known.key and _says_accelerator(taint) and untolerated([taint], have) is not None and item not in found:
                found.append(dict(item))
    return tuple(found)


def _parsed(item: Mapping[str, Any]) -> Toleration:
    return parse_tolerations({"tolerations": [item]})[0]


def _toleration(taint: Taint) -> Mapping[str, Any]:
    return {"key": taint.key, "operator": "Exists", "effect": taint.effect}


def _says_accelerator(taint: Taint) -> bool:
    text = f"{taint.key}={taint.value}".lower()
    return any(word in text for word in _ACCELERATOR_WORDS)


def _has_accelerators(node: Node, needs: Iterable[str]) -> bool:
    """By capacity where it is known, else by taints and labels (a kind config)."""
    if any(node.allocatable.get(name) for name in needs):
        return True
    if node.allocatable:
        return False
    words = (*(str(t) for t in node.taints), *node.labels)
    return any(word in text.lower() for text in words for word in _ACCELERATOR_WORDS)


def _is_gpu_node(topology: Topology, name: str) -> bool:
    node = next(n for n in topology.nodes if n.name == name)
    return any(_says_accelerator(t) for t in node.taints) or any(
        any(word in key for word in _ACCELERATOR_WORDS) and amount for key, amount in node.allocatable.items()
    )


def _free(topology: Topology, zone: str, needs: Iterable[str]) -> Fraction:
    nodes = {n.name: n for n in topology.nodes if n.zone == zone}
    total = sum((n.allocatable.get(r, Fraction(0)) for n in nodes.values() for r in needs), Fraction(0))
    for pod in topology.bound_pods:
        if pod.node in nodes:
            for container in as_list(dig(pod.body, "spec", "containers")):
                amounts = as_map(dig(container, "resources", "limits"))
                total -= sum((parse_quantity(amounts.get(r, 0)) or Fraction(0) for r in needs), Fraction(0))
    return total


def _why_not(job: TrainingJob, edits: JobEdits, topology: Topology, zone: str) -> str:
    """The scheduler's words for the first role that fits on no node of the zone; empty when each role fits somewhere."""
    try:
        pods = trial_pods(job, edits)
    except PatchRefused:
        return ""
    for pod in {p.klass: p for p in reversed(pods)}.values():
        answer = feasible(pod.body, topology)
        if not answer.feasible and dig(pod.body, "spec", "nodeSelector", ZONE) == zone:
            in_zone = {n.name for n in topology.nodes if n.zone == zone}
            reasons = sorted({f.message for f in answer.failures if f.node in in_zone})
            return f"{pod.klass} fits on none of its nodes: {'; '.join(reasons)}" if reasons else "no nodes there"
    return f"it does not hold all {len(pods)} pods at once"
