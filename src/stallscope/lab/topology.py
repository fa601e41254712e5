"""What to build: pods on nodes in zones, and the address plan that follows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from stallscope.errors import LabError

#: Limits of the address plan 10.<zone>.<node>.<pod> and of the machine (reference lab.md §3 measured 512 pods).
MAX_ZONES, MAX_NODES_PER_ZONE, MAX_PODS_PER_NODE = 200, 250, 250


@dataclass(frozen=True, slots=True, kw_only=True)
class LabPod:
    """
    A pod of the pocket cluster. `name` is unique; `host_names` are the DNS names that resolve to it; `rank` the first
    rank it hosts, None when it hosts none.
    """

    name: str
    node: str
    host_names: tuple[str, ...] = ()
    rank: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LabSpec:
    """`zones` maps each node to its zone; a node without zone label gets the zone ``(no zone)``."""

    pods: tuple[LabPod, ...]
    zones: Mapping[str, str]

    def zone_of(self, pod: str) -> str:
        return self.zones[next(p.node for p in self.pods if p.name == pod)]


@dataclass(frozen=True, slots=True)
class PodPlace:
    """Where one pod sits: `slot` counts pods of its node from 0."""

    pod: LabPod
    ip: str
    slot: int


@dataclass(frozen=True, slots=True)
class NodePlace:
    """One node: `prefix` is its /24, `ip` its own address, `index` its number in its zone from 1."""

    name: str
    zone: str
    index: int
    prefix: str
    ip: str
    pods: tuple[PodPlace, ...]


@dataclass(frozen=True, slots=True)
class ZonePlace:
    """One zone: `prefix` is its /16."""

    name: str
    index: int
    prefix: str
    ip: str
    nodes: tuple[NodePlace, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The whole address plan. `ips` maps pod names to addresses."""

    zones: tuple[ZonePlace, ...]
    ips: Mapping[str, str] = field(default_factory=dict)

    @property
    def nodes(self) -> tuple[NodePlace, ...]:
        return tuple(n for z in self.zones for n in z.nodes)

    @property
    def pods(self) -> tuple[PodPlace, ...]:
        return tuple(p for n in self.nodes for p in n.pods)


def plan(spec: LabSpec) -> Plan:
    """
    Addresses for `spec`: zone z, node n, pod p get 10.z.n.(p+2), so that one route covers a node and one a zone.

    Raises LabError when two pods share a name, a pod's node is unknown, or the plan's limits are exceeded.
    """
    names = [p.name for p in spec.pods]
    if len(set(names)) != len(names):
        raise LabError(f"two pods are called {next(n for n in names if names.count(n) > 1)!r}")
    unknown = next((p for p in spec.pods if p.node not in spec.zones), None)
    if unknown:
        raise LabError(f"pod {unknown.name} is placed on {unknown.node!r}, which is not a node of the topology")
    used = {p.node for p in spec.pods}
    zone_names = sorted({spec.zones[n] for n in used})
    if len(zone_names) > MAX_ZONES:
        raise LabError(f"{len(zone_names)} zones: the pocket cluster has addresses for {MAX_ZONES}")
    zones = tuple(_zone(spec, name, i + 1, used) for i, name in enumerate(zone_names))
    result = Plan(zones=zones)
    return Plan(zones=zones, ips={p.pod.name: p.ip for p in result.pods})


def _zone(spec: LabSpec, name: str, index: int, used: set[str]) -> ZonePlace:
    members = sorted(n for n in used if spec.zones[n] == name)
    if len(members) > MAX_NODES_PER_ZONE:
        raise LabError(f"zone {name} has {len(members)} nodes: the pocket cluster has addresses for {MAX_NODES_PER_ZONE}")
    nodes = tuple(_node(spec, node, name, index, i + 1) for i, node in enumerate(members))
    return ZonePlace(name, index, f"10.{index}.0.0", f"10.{index}.0.1", nodes)


def _node(spec: LabSpec, name: str, zone: str, zone_index: int, index: int) -> NodePlace:
    base = f"10.{zone_index}.{index}"
    pods = [p for p in spec.pods if p.node == name]
    if len(pods) > MAX_PODS_PER_NODE:
        raise LabError(f"node {name} has {len(pods)} pods: the pocket cluster has addresses for {MAX_PODS_PER_NODE}")
    places = tuple(PodPlace(p, f"{base}.{slot + 2}", slot) for slot, p in enumerate(pods))
    return NodePlace(name, zone, index, f"{base}.0", f"{base}.1", places)
