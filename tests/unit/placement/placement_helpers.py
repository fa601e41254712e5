"""Small clusters and pods for the placement unit tests."""

from __future__ import annotations

from typing import Any

from stallscope.model.topology import HOSTNAME, ZONE, Topology, bound_pods, node_from_body
from stallscope.placement.group import PodRequest

Body = dict[str, Any]
TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
TOLERATION = {"key": "nvidia.com/gpu", "operator": "Exists"}


def node(
    name: str, zone: str = "a", *, gpus: int = 0, cpu: str = "96", taints: list[Body] | None = None, **more: Any
) -> Body:
    allocatable = {"cpu": cpu, "memory": "1000Gi", "pods": "110", **({"nvidia.com/gpu": str(gpus)} if gpus else {})}
    labels = {HOSTNAME: name, **({ZONE: zone} if zone else {}), **more.pop("labels", {})}
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": taints or [], **more},
        "status": {"allocatable": allocatable},
    }


def pod_body(name: str = "p", *, labels: Body | None = None, gpus: int = 0, cpu: str = "1", **spec: Any) -> Body:
    requests = {"cpu": cpu, **({"nvidia.com/gpu": str(gpus)} if gpus else {})}
    container = {"name": "c", "resources": {"requests": requests}}
    return {
        "metadata": {"name": name, "namespace": "t", "labels": labels or {"job": "x"}},
        "spec": {"containers": [container], **spec},
    }


def topology(*nodes: Body, bound: list[Body] | None = None, **more: Any) -> Topology:
    return Topology(nodes=tuple(map(node_from_body, nodes)), bound_pods=bound_pods(bound or []), **more)


def zones(gpus: int = 8, **counts: int) -> Topology:
    """``zones(a=2, b=8)``: so many GPU nodes a zone."""
    return topology(*(node(f"{z}{i}", z, gpus=gpus) for z, n in counts.items() for i in range(n)))


def requests(count: int, *, role: str = "worker", gpus: int = 8, **spec: Any) -> list[PodRequest]:
    body = pod_body("", gpus=gpus, **spec)["spec"]
    return [
        PodRequest(
            name=f"{role}-{i}",
            klass=role,
            body={"metadata": {"name": f"{role}-{i}", "namespace": "t", "labels": {"job": "x", "role": role}}, "spec": body},
        )
        for i in range(count)
    ]


def affine_to(labels: Body, key: str = ZONE, which: str = "podAffinity") -> Body:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": labels}}
    return {which: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
