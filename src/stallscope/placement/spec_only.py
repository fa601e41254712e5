"""What the manifests alone decide about a split, when no nodes are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from stallscope.model.topology import HOSTNAME
from stallscope.placement.compilation import compile_pods
from stallscope.placement.outcome import PodRequest
from stallscope.placement.podspec import PodSpec
from stallscope.placement.zonepins import ZonePin, co_locates, zone_pin

YES, NO, UNKNOWN = "yes", "no", "unknown"


class SpecAnswer(NamedTuple):
    """
    `can_split` is ``yes`` (nothing in the specs keeps the pods in one zone), ``no``, or ``unknown``; `why` one sentence.
    `zones` is the single zone all pods are pinned to, if any; `caveats` say what the answer assumes.
    """

    can_split: str
    why: str
    zones: frozenset[str] | None = None
    caveats: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Sort:
    """Pods with one spec, and how many they are."""

    spec: PodSpec
    count: int
    pin: ZonePin


_LEFTOVERS = "assumes no pod with the same labels is already bound (an older run decides the zone: kubernetes#24995)"


def spec_only(pods: Sequence[PodRequest]) -> SpecAnswer:
    """
    Whether the scheduler could put two of the pods in different zones as far as their specs say.

    Sources: node affinity terms are ORed (nodeaffinity.go); required podAffinity and its first-pod rule
    (interpodaffinity/filtering.go); reference/placement.md §2.2, §2.3.
    """
    if len(pods) < 2:
        return SpecAnswer(can_split=NO, why="the job is one pod")
    sorts = _sorts(pods)
    return _pinned(sorts) or _together(sorts) or _spread(sorts, len(pods)) or _rest(sorts)


def _sorts(pods: Sequence[PodRequest]) -> list[_Sort]:
    """Pods of one role share their spec but for the name and index labels."""
    counts: dict[object, int] = {}
    first: dict[object, PodSpec] = {}
    for pod, spec in zip(pods, compile_pods(pods), strict=True):
        key = (pod.klass, spec.namespace, spec.nodes, spec.node_name, spec.affinity, spec.anti_affinity, spec.spread)
        first.setdefault(key, spec)
        counts[key] = counts.get(key, 0) + 1
    return [_Sort(spec, counts[key], zone_pin(spec)) for key, spec in first.items()]


def _pinned(sorts: Sequence[_Sort]) -> SpecAnswer | None:
    nodes = {s.pin.nodes for s in sorts}
    if len(nodes) == 1 and len(next(iter(nodes)) or ()) == 1:
        return SpecAnswer(can_split=NO, why="every pod names the same node")
    named = [s.pin.zones for s in sorts]
    if any(z is not None and not z for z in named):
        return SpecAnswer(can_split=UNKNOWN, why="the node selector and node affinity of a pod exclude each other")
    single = sorted({next(iter(z)) for z in named if z is not None and len(z) == 1})
    if len(single) > 1:
        return SpecAnswer(can_split=YES, why=f"roles are pinned to different zones: {', '.join(single)}")
    if all(z is not None and len(z) == 1 for z in named):
        return SpecAnswer(can_split=NO, why=f"every pod is pinned to zone {single[0]}", zones=frozenset(single))
    return None


def _together(sorts: Sequence[_Sort]) -> SpecAnswer | None:
    """
    Required pod affinity that keeps all pods in one domain, by induction over the order of binding: the first pod is in
    one zone, and each further one needs a pod of the job beside it. A single pod without such affinity is harmless only
    when the others may stand beside nobody else.
    """
    attract = [_attracted_by(s.spec, sorts) for s in sorts]
    free = [i for i, a in enumerate(attract) if a is None]
    if len(free) == len(sorts):
        return None
    if any(a == () for a in attract):
        return SpecAnswer(can_split=UNKNOWN, why="a pod requires the zone of pods outside the job; where they run decides")
    if not free:
        return SpecAnswer(can_split=NO, why="required pod affinity holds all pods in one zone", caveats=(_LEFTOVERS,))
    only = free[0]
    if len(free) == 1 and sorts[only].count == 1 and all(a in (None, (only,)) for a in attract):
        why = f"every other pod requires the zone of {sorts[only].spec.name or 'the one free pod'}"
        return SpecAnswer(can_split=NO, why=why, caveats=(_LEFTOVERS,))
    return None


def _attracted_by(spec: PodSpec, sorts: Sequence[_Sort]) -> tuple[int, ...] | None:
    """Which sorts satisfy the affinity of `spec`; None when it has none that co-locates."""
    if not any(co_locates(t.topology_key) for t in spec.affinity):
        return None
    labels = {"kubernetes.io/metadata.name": spec.namespace}
    return tuple(
        i
        for i, other in enumerate(sorts)
        if all(t.draws(other.spec.namespace, other.spec.labels, labels) for t in spec.affinity)
    )


def _spread(sorts: Sequence[_Sort], size: int) -> SpecAnswer | None:
    for sort in sorts:
        several = sort.pin.zones is None or len(sort.pin.zones) > 1
        for found in sort.spec.spread:
            zonal = co_locates(found.topology_key) and found.topology_key != HOSTNAME
            if several and zonal and found.hard and found.counts(sort.spec.labels) and found.max_skew < size:
                why = f"a spread constraint over {found.topology_key} with maxSkew {found.max_skew} forces a split"
                return SpecAnswer(can_split=YES, why=f"{why}, or leaves pods Pending, where two zones are eligible")
    return None


def _rest(sorts: Sequence[_Sort]) -> SpecAnswer:
    pins = [s.pin for s in sorts]
    if any(p.open_terms for p in pins):
        why = "node affinity terms are ORed and one of them names no zone, so nothing is pinned"
        return SpecAnswer(can_split=YES, why=why)
    zones = sorted({z for p in pins for z in p.zones or ()})
    if zones and all(p.zones is not None for p in pins):
        return SpecAnswer(can_split=YES, why=f"the pods may use any of the zones {', '.join(zones)}")
    labels = sorted({k for p in pins for k in p.other})
    if labels and all(p.other for p in pins):
        return SpecAnswer(can_split=UNKNOWN, why=f"whether {', '.join(labels)} pins one zone depends on the nodes")
    if zones:
        return SpecAnswer(can_split=YES, why=f"only some roles are limited to zone {', '.join(zones)}")
    return SpecAnswer(can_split=YES, why="nothing in the specs keeps the pods in one zone")
