"""What the tests against kube-scheduler's source share: one pod, some nodes, and what each node says of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from stallscope.model.topology import HOSTNAME, ZONE, Topology, bound_pods, node_from_body
from stallscope.placement.feasible import Feasibility, feasible

Body = dict[str, Any]
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
ROOM = {"cpu": "8", "memory": "8Gi", "ephemeral-storage": "8Gi", "pods": "110"}


def node(name: str = "n", zone: str | None = "a", *, room: Body | None = None, **spec: Any) -> Body:
    """A node with `room` for allocatable; `labels` come on top of hostname and zone, the rest of `spec` is its spec."""
    labels = {HOSTNAME: name, **({} if zone is None else {ZONE: zone}), **spec.pop("labels", {})}
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": {"allocatable": ROOM if room is None else room},
    }


def pod(name: str = "incoming", *, namespace: str = "t", labels: Body | None = None, **spec: Any) -> Body:
    """A pod that asks for nothing unless `requests`, `limits` or `containers` are given."""
    resources = {k: spec.pop(k) for k in ("requests", "limits") if k in spec}
    spec.setdefault("containers", [{"name": "c", "image": "i", "resources": resources}])
    return {"metadata": {"name": name, "namespace": namespace, "labels": labels or {}}, "spec": spec}


def bound(home: str, *, name: str = "old", **more: Any) -> Body:
    """The same, already on node `home`; `deleted` and `status` as on a live pod."""
    deleted, status = more.pop("deleted", False), more.pop("status", None)
    body = pod(name, nodeName=home, **more)
    if deleted:
        body["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return {**body, "status": status} if status else body


def judge(
    incoming: Body, nodes: Iterable[Body], bodies: Iterable[Body] = (), namespaces: Mapping[str, Body] | None = None
) -> Feasibility:
    return feasible(
        incoming,
        Topology(nodes=tuple(map(node_from_body, nodes)), bound_pods=bound_pods(bodies), namespaces=namespaces or {}),
    )


def said(
    incoming: Body, *nodes: Body, on: Iterable[Body] = (), namespaces: Mapping[str, Body] | None = None
) -> dict[str, str | None]:
    """Node name -> why it refuses the pod, None = feasible."""
    found = judge(incoming, nodes, on, namespaces)
    reasons: dict[str, str | None] = {f.node: f.message for f in found.failures}
    return {**dict.fromkeys(found.feasible), **reasons}
