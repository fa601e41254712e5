"""
Nodes of a kind config (kind.x-k8s.io/v1alpha4 Cluster): names, labels and taints as ``kind create cluster`` makes them.

Sources: kind's docs "Configuration", its pkg/cluster/internal/providers/common/namer.go (names), create/actions/config
(``labels`` become the kubelet's ``node-labels``, which a merge patch replaces) and create/actions/kubeadminit (the taint of
a lone control plane is removed); kubeadm v1beta3/v1beta4 NodeRegistrationOptions (no ``taints`` gives a control plane its
taint, a list replaces it); kubelet ``--node-labels`` and ``--register-with-taints``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from stallscope.load.stream import parse_stream
from stallscope.model.kube import KubeObject
from stallscope.model.source import as_list, as_map, as_str, as_str_map, dig
from stallscope.model.topology import HOSTNAME, Node, Taint

CONTROL_PLANE = "node-role.kubernetes.io/control-plane"
_CONTROL_PLANE_TAINT = Taint(CONTROL_PLANE, "", "NoSchedule")
_MOST = 1000  # kind runs each node as a container on one machine


def is_kind_cluster(item: KubeObject) -> bool:
    """Whether the object is a kind config."""
    return item.kind == "Cluster" and item.group == "kind.x-k8s.io"


def nodes_of_kind(item: KubeObject) -> tuple[Node, ...]:
    """The nodes that kind would make of the config, one control plane when it lists none. Ill-typed parts are skipped."""
    name = as_str(item.body.get("name")) or "kind"
    entries = [as_map(e) for e in as_list(item.body.get("nodes"))][:_MOST]
    shared = list(_patches(item.body))
    counts: dict[str, int] = {}
    nodes = []
    for index, entry in enumerate(entries or [{}]):
        role = as_str(entry.get("role")) or "control-plane"
        counts[role] = counts.get(role, 0) + 1
        node_name = f"{name}-{role}{counts[role] if counts[role] > 1 else ''}"
        patches = [p for p in (*shared, *_patches(entry)) if as_str(p.get("kind")) in _kinds(role, counts[role])]
        labels = _patched_labels(patches)
        labels = as_str_map(entry.get("labels")) if labels is None else labels
        nodes.append(
            Node(
                name=node_name,
                labels={HOSTNAME: node_name, **_role_labels(role), **labels},
                taints=_taints(patches, role, alone=len(entries) <= 1),
                location=item.at("nodes", index) if entries else item.at(),
            )
        )
    return tuple(nodes)


def _kinds(role: str, count: int) -> tuple[str, ...]:
    """Which kubeadm documents configure a node: the first control plane runs init, all others join."""
    return ("InitConfiguration",) if role == "control-plane" and count == 1 else ("JoinConfiguration",)


def _patches(holder: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The kubeadm documents in ``kubeadmConfigPatches``, which are YAML in text blocks."""
    for text in as_list(holder.get("kubeadmConfigPatches")):
        if isinstance(text, str):
            documents, _ = parse_stream(text)
            yield from (as_map(d.value) for d in documents)


def _role_labels(role: str) -> dict[str, str]:
    return {CONTROL_PLANE: ""} if role == "control-plane" else {}


def _patched_labels(patches: list[Mapping[str, Any]]) -> dict[str, str] | None:
    """``node-labels: "a=b,c=d"`` of the last patch that has it; None without one."""
    given = _kubelet_arguments(patches, "node-labels")
    if not given:
        return None
    pairs = (pair.partition("=") for pair in filter(None, given[-1].split(",")))
    return {key.strip(): value.strip() for key, _, value in pairs}


def _taints(patches: list[Mapping[str, Any]], role: str, *, alone: bool) -> tuple[Taint, ...]:
    taints = [_CONTROL_PLANE_TAINT] if role == "control-plane" else []
    for patch in patches:
        given = dig(patch, "nodeRegistration", "taints")
        if isinstance(given, list):
            taints = [
                Taint(as_str(t.get("key")), as_str(t.get("value")), as_str(t.get("effect"))) for t in map(as_map, given)
            ]
    for text in _kubelet_arguments(patches, "register-with-taints")[-1:]:
        taints += [_parse_taint(part) for part in filter(None, text.split(","))]
    return tuple(t for t in dict.fromkeys(taints) if not (alone and t.key == CONTROL_PLANE))


def _kubelet_arguments(patches: list[Mapping[str, Any]], name: str) -> list[str]:
    """``kubeletExtraArgs``: a mapping up to kubeadm v1beta3, a list of name and value from v1beta4 on."""
    found = []
    for patch in patches:
        arguments = dig(patch, "nodeRegistration", "kubeletExtraArgs")
        found.append(as_str(as_map(arguments).get(name)))
        found += [as_str(as_map(a).get("value")) for a in as_list(arguments) if as_map(a).get("name") == name]
    return [text for text in found if text]


def _parse_taint(text: str) -> Taint:
    """``key=value:Effect`` or ``key:Effect``."""
    body, _, effect = text.strip().rpartition(":")
    key, _, value = body.partition("=")
    return Taint(key, value, effect)
