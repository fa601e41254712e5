"""Nodes, zones and what already runs there. Parsed once from plain Kubernetes bodies; the judgement reads only these."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

from stallscope.model.quantity import parse_quantity
from stallscope.model.source import Location, as_list, as_map, as_str, as_str_map, dig

ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
HOSTNAME = "kubernetes.io/hostname"

#: Extended resources that mean "accelerator"; others end in a vendor domain and are matched by `is_accelerator`.
GPU_RESOURCES = ("nvidia.com/gpu", "amd.com/gpu", "google.com/tpu", "habana.ai/gaudi", "gpu.intel.com/i915")


def is_accelerator(resource: str) -> bool:
    """True for resources that name a GPU or similar (including MIG slices ``nvidia.com/mig-1g.5gb``)."""
    return resource in GPU_RESOURCES or resource.startswith("nvidia.com/mig-") or resource == "aws.amazon.com/neuron"


class Taint(NamedTuple):
    key: str
    value: str
    effect: str

    def __str__(self) -> str:
        return f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One node. `allocatable` amounts are exact; a resource absent there is absent on the node."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    allocatable: Mapping[str, Fraction] = field(default_factory=dict)
    location: Location | None = field(default=None, compare=False)

    @property
    def zone(self) -> str:
        """The zone, or the empty string when the node carries no zone label."""
        return self.labels.get(ZONE, "")


class BoundPod(NamedTuple):
    """A pod that already occupies a node: `body` is the plain pod (metadata, spec)."""

    namespace: str
    name: str
    node: str
    labels: Mapping[str, str]
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """
    The cluster a job would run on. `capacity_known` is false when nodes carry labels but no allocatable (a kind
    config): capacity is then not judged. `source` says where it came from, for the report.
    """

    nodes: tuple[Node, ...]
    bound_pods: tuple[BoundPod, ...] = ()
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    capacity_known: bool = True
    source: str = ""

    @property
    def zones(self) -> tuple[str, ...]:
        """Zone names, sorted; nodes without the label add nothing."""
        return tuple(sorted({n.zone for n in self.nodes if n.zone}))


def node_from_body(body: Mapping[str, Any], location: Location | None = None) -> Node:
    """A node from a plain ``v1 Node`` body; ill-typed parts are skipped."""
    taints = tuple(
        Taint(as_str(t.get("key")), as_str(t.get("value")), as_str(t.get("effect")))
        for t in map(as_map, as_list(dig(body, "spec", "taints")))
    )
    allocatable = as_map(dig(body, "status", "allocatable")) or as_map(dig(body, "status", "capacity"))
    amounts = {k: q for k, v in allocatable.items() if (q := parse_quantity(v)) is not None}
    return Node(
        name=as_str(dig(body, "metadata", "name")),
        labels=as_str_map(dig(body, "metadata", "labels")),
        taints=taints,
        unschedulable=dig(body, "spec", "unschedulable") is True,
        allocatable=amounts,
        location=location,
    )


def bound_pods(bodies: Iterable[Mapping[str, Any]]) -> tuple[BoundPod, ...]:
    """The pods among `bodies` that occupy a node: bound and not finished (Succeeded and Failed pods hold nothing)."""
    found = []
    for body in bodies:
        metadata, spec = as_map(body.get("metadata")), as_map(body.get("spec"))
        node = as_str(spec.get("nodeName"))
        if node and dig(body, "status", "phase") not in ("Succeeded", "Failed"):
            found.append(
                BoundPod(
                    namespace=as_str(metadata.get("namespace"), "default"),
                    name=as_str(metadata.get("name")),
                    node=node,
                    labels=as_str_map(metadata.get("labels")),
                    body=body,
                )
            )
    return tuple(found)
