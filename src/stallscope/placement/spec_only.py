"""What the manifests alone decide about a split, when no nodes are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stallscope.placement.outcome import PodRequest
from stallscope.placement.podspec import PodSpec, compile_pod
from stallscope.placement.zonepins import ZonePin, co_locates, zone_pin

YES, NO, UNKNOWN = "yes", "no", "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecAnswer:
    """
    `can_split` is ``yes`` (nothing in the specs keeps the pods in one zone), ``no``, or ``unknown``; `why` one sentence.
    `zones` is the single zone all pods are pinned to, if any; `caveats` say what the answer assumes.
    """

    can_split: str
    why: str
    zones: frozenset[str] | None = None
    caveats: tuple[str, ...] = ()


_LEFTOVERS = "assumes no pod with the same labels is already bound (an older run decides the zone: kubernetes#24995)"


def spec_only(pods: Sequence[PodRequest]) -> SpecAnswer:
    """
    Whether the scheduler could put two of the pods in different zones as far as their specs say.

    Sources: node affinity terms are ORed (nodeaffinity.go); required podAffinity and its first-pod rule
    (interpodaffinity/filtering.go); reference/placement.md §2.2, §2.3.
    """
    specs = _distinct(pods)
    if len(pods) < 2:
        return SpecAnswer(can_split=NO, why="the job is one pod")
    pins = [zone_pin(s) for s in specs]
    return _pinned(specs, pins) or _together(pods, specs) or _spread(specs, pins, len(pods)) or _rest(specs, pins)


def _distinct(pods: Sequence[PodRequest]) -> list[PodSpec]:
    """One spec per kind of pod: pods of one role share their body but for the name and index labels."""
    seen: dict[object, PodSpec] = {}
    for pod in pods:
        spec = compile_pod(pod.body)
        key = (pod.klass, spec.namespace, spec.nodes, spec.node_name, spec.affinity, spec.anti_affinity, spec.spread)
        seen.setdefault(key, spec)
    return list(seen.values())


def _pinned(specs: Sequence[PodSpec], pins: Sequence[ZonePin]) -> SpecAnswer | None:
    named = [p.zones for p in pins]
    nodes = [p.nodes for p in pins]
    if all(n is not None and len(n) == 1 for n in nodes) and len(set(nodes)) == 1:
        return SpecAnswer(can_split=NO, why="every pod names the same node")
    if any(z is not None and not z for z in named):
        return SpecAnswer(can_split=UNKNOWN, why="the node selector and node affinity of a pod exclude each other")
    single = {next(iter(z)) for z in named if z is not None and len(z) == 1}
    if len(single) > 1:
        return SpecAnswer(can_split=YES, why=f"roles are pinned to different zones: {', '.join(sorted(single))}")
    if all(z is not None and len(z) == 1 for z in named):
        zone = next(iter(single))
        return SpecAnswer(can_split=NO, why=f"every pod is pinned to zone {zone}", zones=frozenset({zone}))
    return None


def _together(pods: Sequence[PodRequest], specs: Sequence[PodSpec]) -> SpecAnswer | None:
    """Required pod affinity that keeps all pods in one domain, by induction over the order of binding."""
    attract = [_attracted_by(s, specs) for s in specs]
    free = [i for i, a in enumerate(attract) if a is None]
    held = [set(a) for a in attract if a is not None]
    if not held:
        return None
    if not free:
        return SpecAnswer(can_split=NO, why="required pod affinity holds all pods in one zone", caveats=(_LEFTOVERS,))
    if len(free) == 1 and _count(pods, specs, free[0]) == 1 and all(h == {free[0]} for h in held):
        return SpecAnswer(
            can_split=NO,
            why=f"every other pod requires the zone of {specs[free[0]].name or 'the one free pod'}",
            caveats=(_LEFTOVERS,),
        )
    return None


def _attracted_by(spec: PodSpec, specs: Sequence[PodSpec]) -> tuple[int, ...] | None:
    """Which of the specs satisfy a co-locating affinity of `spec`; None when it has none."""
    terms = [t for t in spec.affinity if co_locates(t.topology_key)]
    if not terms:
        return None
    labels = {"kubernetes.io/metadata.name": spec.namespace}
    return tuple(
        i for i, other in enumerate(specs) if all(t.matches(other.namespace, other.labels, labels) for t in spec.affinity)
    )


def _count(pods: Sequence[PodRequest], specs: Sequence[PodSpec], index: int) -> int:
    return sum(compile_pod(p.body).nodes == specs[index].nodes and p.klass == _klass(pods, specs[index]) for p in pods)


def _klass(pods: Sequence[PodRequest], spec: PodSpec) -> str:
    return next((p.klass for p in pods if compile_pod(p.body).name == spec.name), "")


def _spread(specs: Sequence[PodSpec], pins: Sequence[ZonePin], size: int) -> SpecAnswer | None:
    for spec, pin in zip(specs, pins, strict=True):
        for constraint in spec.spread:
            several = pin.zones is None or len(pin.zones) > 1
            if constraint.hard and co_locates(constraint.topology_key) and constraint.counts(spec.labels) and several:
                if constraint.topology_key.endswith("hostname") or constraint.max_skew >= size:
                    continue
                why = f"a spread constraint over {constraint.topology_key} with maxSkew {constraint.max_skew} forces a split"
                return SpecAnswer(can_split=YES, why=f"{why} (or leaves pods Pending) where two zones are eligible")
    return None


def _rest(specs: Sequence[PodSpec], pins: Sequence[ZonePin]) -> SpecAnswer:
    if any(p.open_terms for p in pins):
        return SpecAnswer(
            can_split=YES, why="node affinity terms are ORed and one of them names no zone, so nothing is pinned"
        )
    zones = sorted(frozenset().union(*(p.zones for p in pins if p.zones is not None)))
    if zones and all(p.zones is not None for p in pins):
        return SpecAnswer(can_split=YES, why=f"the pods may use any of the zones {', '.join(zones)}")
    labels = sorted({k for p in pins for k in p.other})
    if labels and all(p.other for p in pins):
        return SpecAnswer(can_split=UNKNOWN, why=f"whether {', '.join(labels)} pins one zone depends on the nodes")
    if zones:
        return SpecAnswer(can_split=YES, why=f"only some roles are limited to zone {', '.join(zones)}")
    return SpecAnswer(can_split=YES, why="nothing in the specs keeps the pods in one zone")
