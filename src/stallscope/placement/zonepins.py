"""Zones a pod spec limits itself to, read from nodeSelector, node affinity and node names alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from stallscope.model.labels import Requirement
from stallscope.model.topology import HOSTNAME, REGION, ZONE
from stallscope.placement.podspec import PodSpec

#: Labels that name the zone: the standard one, its beta name, and AWS's account-independent id.
ZONE_KEYS = (ZONE, "failure-domain.beta.kubernetes.io/zone", "topology.k8s.aws/zone-id")
#: Topology keys whose domains lie inside one zone (reference/placement.md §5, "GKE TAS, EKS, OCI labels").
INSIDE_A_ZONE = (
    "cloud.google.com/gce-topology-block",
    "cloud.google.com/gce-topology-subblock",
    "cloud.google.com/gce-topology-host",
    "topology.k8s.aws/network-node-layer-",
    "oci.oraclecloud.com/rdma.",
    "fabric.topograph.run/tier-",
    "network.topology.nvidia.com/",
    "accelerator.topograph.run/domain",
    "nvidia.com/gpu.clique",
)
#: Labels that say what a node is, not where: they exist in every zone that has such nodes.
_WHAT_NOT_WHERE = (
    "kubernetes.io/os",
    "kubernetes.io/arch",
    "node.kubernetes.io/instance-type",
    "beta.kubernetes.io/",
    "cloud.google.com/gke-accelerator",
    "cloud.google.com/gke-tpu",
    "nvidia.com/",
    "amd.com/",
    "feature.node.kubernetes.io/",
    "node-role.kubernetes.io/",
    REGION,
)


class ZonePin(NamedTuple):
    """
    `zones` None: the spec names none. `open_terms` counts ORed node affinity terms without a zone although others have
    one: then the named zones pin nothing. `nodes`: the only nodes named. `other` are labels that may or may not be zonal.
    """

    zones: frozenset[str] | None = None
    open_terms: int = 0
    nodes: frozenset[str] | None = None
    other: tuple[str, ...] = ()


def co_locates(key: str) -> bool:
    """Whether two pods in one domain of `key` are in one zone for certain."""
    return key in ZONE_KEYS or key == HOSTNAME or key.startswith(INSIDE_A_ZONE)


def zone_pin(pod: PodSpec) -> ZonePin:
    selector = dict(pod.nodes.selector)
    by_selector = {k: selector[k] for k in ZONE_KEYS if k in selector}
    zones = frozenset(by_selector.values()) if by_selector else None
    if by_selector and len(zones or ()) > 1:
        zones = frozenset({by_selector.get(ZONE, sorted(by_selector.values())[0])})
    open_terms = 0
    if pod.nodes.terms is not None:
        named = [_zones_of(t.labels) for t in pod.nodes.terms]
        open_terms = sum(n is None for n in named) if any(n is not None for n in named) else 0
        if all(n is not None for n in named) and named:
            union = frozenset().union(*(n for n in named if n is not None))
            zones = union if zones is None else zones & union
    return ZonePin(zones, open_terms if zones is None else 0, _nodes(pod), _other(pod))


def _zones_of(requirements: Iterable[Requirement]) -> frozenset[str] | None:
    zones: frozenset[str] | None = None
    for r in requirements:
        if r.key in ZONE_KEYS and r.operator == "In":
            zones = frozenset(r.values) if zones is None else zones & frozenset(r.values)
    return zones


def _nodes(pod: PodSpec) -> frozenset[str] | None:
    """Names the pod is limited to, by nodeName, the hostname label or matchFields."""
    if pod.node_name:
        return frozenset({pod.node_name})
    selector: Mapping[str, str] = dict(pod.nodes.selector)
    if HOSTNAME in selector:
        return frozenset({selector[HOSTNAME]})
    return pod.nodes.pinned_names()


def _other(pod: PodSpec) -> tuple[str, ...]:
    """Labels in the pod's node requirements that could be zonal (a node pool, a reservation)."""
    keys = {k for k, _ in pod.nodes.selector}
    for term in pod.nodes.terms or ():
        keys |= {r.key for r in term.labels if r.operator in ("In", "Exists", "Gt", "Lt")}
    known = (*ZONE_KEYS, HOSTNAME)
    return tuple(sorted(k for k in keys if k not in known and not k.startswith(_WHAT_NOT_WHERE)))
