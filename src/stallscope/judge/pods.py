"""A job's pods in the two forms the engines read: plain bodies for the scheduler, endpoints for the policies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stallscope.judge.inputs import ClusterFacts
from stallscope.model.source import as_list, as_map, as_str, dig
from stallscope.model.topology import REGION, ZONE, Node
from stallscope.model.traffic import Endpoint, Protocol
from stallscope.model.workload import Pod, Role, TrainingJob
from stallscope.placement.group import PodRequest

#: First release whose API server copies zone and region to pods at binding by default (KEP-4742, beta).
TOPOLOGY_LABELS_SINCE = (1, 35)


def pod_requests(job: TrainingJob) -> tuple[PodRequest, ...]:
    """The job's pods in the order its controller creates them; pods of a role are alike for the scheduler."""
    order = {role.name: (role.creation_order, i) for i, role in enumerate(job.roles)}
    templates = {role.name: role.template for role in job.roles}
    pods = sorted(job.pods, key=lambda p: (*order[p.role], p.index))
    return tuple(
        PodRequest(
            name=pod.name,
            klass=pod.role,
            body={
                "metadata": {
                    "name": pod.name,
                    "namespace": pod.namespace,
                    "labels": dict(pod.labels),
                    "annotations": dict(templates[pod.role].annotations),
                },
                "spec": templates[pod.role].spec,
            },
        )
        for pod in pods
    )


def named_ports(spec: Mapping[str, Any]) -> tuple[tuple[str, Protocol, int], ...]:
    """Named container ports of a pod spec, sidecars (init containers that restart) included."""
    containers = [
        *as_list(spec.get("containers")),
        *(c for c in as_list(spec.get("initContainers")) if dig(c, "restartPolicy") == "Always"),
    ]
    found = []
    for entry in (as_map(p) for c in containers for p in as_list(dig(c, "ports"))):
        name, number = as_str(entry.get("name")), entry.get("containerPort")
        protocol = as_str(entry.get("protocol"), "TCP")
        if name and isinstance(number, int) and protocol in Protocol.__members__:
            found.append((name, Protocol(protocol), number))
    return tuple(found)


def endpoint(pod: Pod, role: Role, node: Node | None, facts: ClusterFacts, *, zone: str | None = None) -> Endpoint:
    """
    The pod as a policy engine sees it once bound to `node` (``None``: not placed). `zone` overrides the node's zone, to
    ask about a class of placements instead of one.
    """
    labels = dict(pod.labels)
    if facts.kubernetes_version >= TOPOLOGY_LABELS_SINCE:
        found = zone if zone is not None else (node.zone if node else "")
        if found:
            labels[ZONE] = found
        if node and node.labels.get(REGION):
            labels[REGION] = node.labels[REGION]
    spec = role.template.spec
    return Endpoint(
        name=pod.name,
        namespace=pod.namespace,
        labels=tuple(sorted(labels.items())),
        service_account=as_str(spec.get("serviceAccountName"), "default") or "default",
        named_ports=named_ports(spec),
        host_network=spec.get("hostNetwork") is True,
        node=node.name if node else "",
        node_labels=tuple(sorted(node.labels.items())) if node else (),
    )
