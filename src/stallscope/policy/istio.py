"""
Whether Istio stands in a pod's path, and what decides it.

Sources: istio.io "Installing the sidecar" (label table), istio pkg/kube/inject/inject.go (injectRequired: the pod label wins
over the deprecated annotation; host-network pods and kube-system never), istio.io ambient "Add workloads to a mesh";
reference/policy.md §6. Only the pod template counts: labels on the job itself, or on a node, change nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from stallscope.model.kube import KubeObject
from stallscope.policy.namespaces import Namespaces

INJECT = "sidecar.istio.io/inject"
INJECTION = "istio-injection"
REVISION = "istio.io/rev"
DATAPLANE = "istio.io/dataplane-mode"
GROUPS = ("security.istio.io", "networking.istio.io", "telemetry.istio.io", "install.istio.io")
NEVER = frozenset({"kube-system", "kube-public", "kube-node-lease", "local-path-storage"})

_YES = frozenset({"true", "yes", "y", "on"})


class Path(StrEnum):
    """What carries the pod's traffic."""

    PLAIN = "plain"
    SIDECAR = "sidecar"
    AMBIENT = "ambient"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class MeshPod:
    """One end: labels and annotations of the pod as it is created (template and controller)."""

    namespace: str
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    service_account: str = "default"
    host_network: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """
    `because` names the label, annotation or missing fact; `weak`: an opt-out by the deprecated annotation alone. `where` is
    what decided, where it is written: ``("pod" | "namespace", "labels" | "annotations", key)``, or nothing.
    """

    path: Path
    because: str
    weak: bool = False
    where: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MeshFacts:
    """
    What is known about the mesh. `present`: Istio is there (its objects, or a namespace that asks for it); `by_default`:
    the installation injects namespaces without a label (enableNamespacesByDefault).
    """

    namespaces: Namespaces
    present: bool
    by_default: bool = False


def mesh_facts(
    objects: Iterable[KubeObject], stated: Mapping[str, Mapping[str, str]], *, by_default: bool = False
) -> MeshFacts:
    """Facts from the objects (Istio's own kinds, Namespace labels) and from the namespace labels the user stated."""
    items = tuple(objects)
    asks = [o.labels for o in items if o.kind == "Namespace"] + list(stated.values())
    present = any(o.group in GROUPS for o in items) or any(_asks(labels) for labels in asks)
    return MeshFacts(namespaces=Namespaces(stated, items), present=present or by_default, by_default=by_default)


def _asks(labels: Mapping[str, str]) -> bool:
    return labels.get(INJECTION) == "enabled" or REVISION in labels or labels.get(DATAPLANE) == "ambient"


def membership(pod: MeshPod, facts: MeshFacts) -> Membership:
    """Whether this pod gets a sidecar, is captured by ambient, or stays plain."""
    if pod.host_network:
        return Membership(path=Path.PLAIN, because="host-network pods are never injected")
    if pod.namespace in NEVER:
        return Membership(path=Path.PLAIN, because=f"namespace {pod.namespace} is never injected")
    sidecar = _sidecar(pod, facts)
    return sidecar if sidecar.path is not Path.PLAIN else _ambient(pod, facts, sidecar)


def _sidecar(pod: MeshPod, facts: MeshFacts) -> Membership:
    labels, known = facts.namespaces.of(pod.namespace)
    wanted = pod.labels.get(INJECT)
    if labels.get(INJECTION) == "disabled":
        because = f"namespace {pod.namespace} has {INJECTION}=disabled"
        return Membership(path=Path.PLAIN, because=because, where=("namespace", "labels", INJECTION))
    if wanted is not None and wanted.lower() not in _YES:
        return Membership(path=Path.PLAIN, because=f"pod label {INJECT}: {wanted}", where=("pod", "labels", INJECT))
    if wanted is not None or REVISION in pod.labels:
        key = INJECT if wanted is not None else REVISION
        return Membership(path=Path.SIDECAR, because=f"pod label {key}: {pod.labels[key]}", where=("pod", "labels", key))
    called, asking = _namespace_asks(pod.namespace, labels, facts)
    if not called:
        if known or not facts.present:
            return Membership(path=Path.PLAIN, because=f"nothing asks for injection in namespace {pod.namespace}")
        return Membership(path=Path.UNKNOWN, because=f"labels of namespace {pod.namespace} (is {INJECTION} set?)")
    annotation = pod.annotations.get(INJECT)
    if annotation is not None and annotation.lower() not in _YES:
        because = f"pod annotation {INJECT}: {annotation} (deprecated: use the label)"
        return Membership(path=Path.PLAIN, because=because, weak=True, where=("pod", "annotations", INJECT))
    return Membership(path=Path.SIDECAR, because=called, where=("namespace", "labels", asking) if asking else ())


def _namespace_asks(name: str, labels: Mapping[str, str], facts: MeshFacts) -> tuple[str, str]:
    """Why the injector is called for pods of this namespace, and the label; istio-injection wins over a revision label."""
    if labels.get(INJECTION) == "enabled":
        return f"namespace {name} has {INJECTION}=enabled", INJECTION
    if REVISION in labels and INJECTION not in labels:
        return f"namespace {name} has {REVISION}={labels[REVISION]}", REVISION
    return "the installation injects every namespace by default" if facts.by_default else "", ""


def _ambient(pod: MeshPod, facts: MeshFacts, plain: Membership) -> Membership:
    labels, known = facts.namespaces.of(pod.namespace)
    own = pod.labels.get(DATAPLANE)
    if own == "none":
        return Membership(path=Path.PLAIN, because=f"pod label {DATAPLANE}: none", where=("pod", "labels", DATAPLANE))
    if own == "ambient":
        return Membership(path=Path.AMBIENT, because=f"pod label {DATAPLANE}: ambient", where=("pod", "labels", DATAPLANE))
    if labels.get(DATAPLANE) == "ambient":
        because = f"namespace {pod.namespace} has {DATAPLANE}=ambient"
        return Membership(path=Path.AMBIENT, because=because, where=("namespace", "labels", DATAPLANE))
    if not known and facts.present and INJECT not in pod.labels:
        return Membership(path=Path.UNKNOWN, because=f"labels of namespace {pod.namespace} (is {DATAPLANE} set?)")
    return plain
