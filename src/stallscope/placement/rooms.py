"""Which zones can hold a whole job now, and what is missing in the others: the basis of a pin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from stallscope.model.quantity import format_quantity
from stallscope.model.topology import ZONE, Node, Taint, Topology, is_accelerator
from stallscope.placement.amounts import CPU, PODS
from stallscope.placement.compilation import compile_pods
from stallscope.placement.outcome import Placement, PodRequest
from stallscope.placement.podspec import PodSpec
from stallscope.placement.problem import Problem, build_problem
from stallscope.placement.reach import reach
from stallscope.placement.settings import DEFAULT_SETTINGS, Settings
from stallscope.placement.snapshot import snapshot_of
from stallscope.placement.terms import RequiredNodes
from stallscope.placement.tolerations import FILTERING_EFFECTS, Toleration


@dataclass(frozen=True, slots=True, kw_only=True)
class ZoneRoom:
    """
    What happens when every pod is pinned to `zone`. `holds`: some outcome binds all pods (`placement`); `certain`: every
    outcome does. `missing` says what is short otherwise, one line each. `tolerated`: GPU taints the answer assumes the
    pods tolerate, beyond those they already do.
    """

    zone: str
    holds: bool
    certain: bool
    missing: tuple[str, ...] = ()
    tolerated: tuple[Taint, ...] = ()
    placement: Placement | None = None


def zones_that_hold(
    pods: Sequence[PodRequest], topology: Topology, *, settings: Settings = DEFAULT_SETTINGS
) -> Mapping[str, tuple[str, ...]]:
    """Zone -> what is missing there for the whole job; empty when the zone holds it (see `zone_rooms`)."""
    return {zone: room.missing for zone, room in zone_rooms(pods, topology, settings=settings).items()}


def zone_rooms(
    pods: Sequence[PodRequest],
    topology: Topology,
    *,
    settings: Settings = DEFAULT_SETTINGS,
    tolerate_gpu_taints: bool = True,
) -> dict[str, ZoneRoom]:
    """
    Per zone, the job judged as if each pod had ``nodeSelector {zone}`` and, when `tolerate_gpu_taints`, the tolerations
    for the zone's accelerator nodes: what patch P1 of reference/placement.md §4 would make of it.
    """
    specs = compile_pods(pods)
    names = [p.name for p in pods]
    labels = [p.klass or p.name for p in pods]
    zones = sorted({z for n in topology.nodes if (z := n.labels.get(settings.zone_key))})
    taints = gpu_taints(topology, settings.zone_key) if tolerate_gpu_taints else {}
    cluster = snapshot_of(topology)
    rooms = {}
    for zone in zones:
        missing_taints = taints.get(zone, ())
        pinned = _pinned(specs, zone, settings.zone_key, missing_taints)
        problem = build_problem(pinned, cluster, settings)
        found = reach(problem, names)
        whole = next((w for w in found.witnesses if not w.pending), None)
        new = tuple(t for t in missing_taints if any(not _tolerates(s, t) for s in specs))
        rooms[zone] = ZoneRoom(
            zone=zone,
            holds=whole is not None,
            certain=found.must_start_whole,
            missing=() if whole is not None else _missing(problem, labels, found.witnesses, names),
            tolerated=new,
            placement=whole,
        )
    return rooms


def _pinned(specs: Sequence[PodSpec], zone: str, key: str, taints: Sequence[Taint]) -> list[PodSpec]:
    extra = tuple(Toleration(t.key, "Exists", "", t.effect) for t in taints)
    done: dict[tuple[int, int], tuple[RequiredNodes, tuple[Toleration, ...]]] = {}
    result = []
    for spec in specs:
        same = (id(spec.nodes), id(spec.tolerations))
        if same not in done:
            selector = tuple(sorted({**dict(spec.nodes.selector), key: zone}.items()))
            clash = dict(spec.nodes.selector).get(key, zone) != zone
            terms = () if clash else spec.nodes.terms
            done[same] = (RequiredNodes(selector, terms), spec.tolerations + extra)
        nodes, tolerations = done[same]
        result.append(replace(spec, nodes=nodes, tolerations=tolerations))
    return result


def _tolerates(spec: PodSpec, taint: Taint) -> bool:
    return any(t.tolerates(taint) for t in spec.tolerations)


def _missing(
    problem: Problem, labels: Sequence[str], witnesses: Sequence[Placement], names: Sequence[str]
) -> tuple[str, ...]:
    """Resources whose sum is short, else the class whose pods do not fit node by node, else the terms between pods."""
    lines: list[str] = []
    for chosen in problem.classes:
        label = labels[chosen.members[0]]
        open_ = [k for k in problem.kinds if k.allowed[chosen.index]]
        if not open_:
            lines.append(f"no node admits {label} (taints, selectors or volumes)")
            continue
        room = sum(
            len(k.nodes) * (1 if k.single is not None else problem.most(k, problem.empty, chosen.index)) for k in open_
        )
        if room < chosen.size:
            lines.append(_short(problem, chosen.index, label, room))
    lines += [line for line in _sums(problem) if line not in lines]
    if not lines:
        best = min(witnesses, key=lambda w: len(w.pending), default=None)
        waits = len(best.pending) if best else len(names)
        lines.append(
            f"{waits} of {len(names)} pods stay Pending: the roles take each other's room or their own terms forbid it"
        )
    return tuple(lines)


def _short(problem: Problem, chosen: int, label: str, room: int) -> str:
    """``room for 2 of 4 worker (each needs 8 nvidia.com/gpu, 8 cpu on one node)``."""
    needs = problem.classes[chosen].spec.requests
    each = ", ".join(f"{_shown(r, a)} {r}" for r, a in sorted(needs.items(), key=lambda i: (not is_accelerator(i[0]), i[0])))
    return f"room for {room} of {problem.classes[chosen].size} {label} (each needs {each or 'a pod slot'} on one node)"


def _sums(problem: Problem) -> list[str]:
    """Resources of which the zone has less free, in sum, than the job asks for."""
    lines = []
    usable = {i for k in problem.kinds if any(k.allowed) for i in k.nodes}
    for position, resource in enumerate(problem.resources):
        wanted = sum(c.size * problem.needs[c.index][position] for c in problem.classes)
        free = sum(max(problem.single[i].free[position], 0) for i in usable)
        if wanted > free and resource != PODS:
            lines.append(f"{resource}: {_shown(resource, wanted)} needed, {_shown(resource, free)} free")
    return lines


def _shown(resource: str, amount: int) -> str:
    return format_quantity(Fraction(amount, 1000) if resource == CPU else Fraction(amount))


def has_accelerator(node: Node) -> bool:
    return any(amount and is_accelerator(resource) for resource, amount in node.allocatable.items())


def gpu_taints(topology: Topology, zone_key: str = ZONE) -> dict[str, tuple[Taint, ...]]:
    """
    Zone -> the taints that keep pods off its accelerator nodes (NoSchedule, NoExecute), in order of first sight. Taints
    of a node that is failing or cordoned (``node.kubernetes.io/``) are no property of the hardware and are left out.
    """
    found: dict[str, dict[Taint, None]] = {}
    for node in topology.nodes:
        looks = has_accelerator(node) or (not topology.capacity_known and any(_names_gpu(t) for t in node.taints))
        if looks:
            zone = node.labels.get(zone_key, "")
            for taint in node.taints:
                if taint.effect in FILTERING_EFFECTS and not taint.key.startswith("node.kubernetes.io/"):
                    found.setdefault(zone, {})[taint] = None
    return {zone: tuple(taints) for zone, taints in sorted(found.items())}


def _names_gpu(taint: Taint) -> bool:
    return "gpu" in taint.key.lower() or is_accelerator(taint.key)
