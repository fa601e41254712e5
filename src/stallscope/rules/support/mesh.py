"""
Which pods a service mesh would take into its path, and which opt-out stands where.

Istio: the namespace label (``istio-injection=enabled`` or ``istio.io/rev``) or the pod label ``sidecar.istio.io/inject``; a
pod label wins over the namespace, and over the deprecated annotation of the same name (istio.io, "Installing the
sidecar"; pkg/kube/inject/inject.go injectRequired). Ambient: label ``istio.io/dataplane-mode`` on namespace or pod.
Linkerd: the annotation ``linkerd.io/inject`` on namespace or pod.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from stallscope.judge.result import Judgement
from stallscope.model.kube import KubeObject
from stallscope.model.source import Location
from stallscope.model.workload import Role, TrainingJob

INJECT = "sidecar.istio.io/inject"
AMBIENT = "istio.io/dataplane-mode"
LINKERD = "linkerd.io/inject"


class Mesh(StrEnum):
    ISTIO = "Istio"
    AMBIENT = "Istio ambient"
    LINKERD = "Linkerd"


@dataclass(frozen=True, slots=True, kw_only=True)
class Injection:
    """A mesh in the path of a role's pods. `because` says in words why, `place` where that is written, if in the files."""

    mesh: Mesh
    because: str
    place: Location | None = None


@dataclass(frozen=True, slots=True)
class Meshes:
    """What the namespaces ask for: their labels as the engine knows them, and their objects where the files hold them."""

    labels: Mapping[str, Mapping[str, str]]
    objects: Mapping[str, KubeObject]

    def of(self, name: str) -> Mapping[str, str]:
        found = self.objects.get(name)
        return self.labels.get(name) or (found.labels if found else {})

    def place(self, name: str, section: str, key: str) -> Location | None:
        found = self.objects.get(name)
        return found.at("metadata", section, key) if found is not None else None


def meshes(judgement: Judgement) -> Meshes:
    """One walk over the objects."""
    found = {o.name: o for o in judgement.inputs.objects if o.kind == "Namespace"}
    return Meshes(judgement.policies.options.namespaces, found)


def injection(mesh: Meshes, job: TrainingJob, role: Role) -> Injection | None:
    """The mesh that takes the role's pods in, or ``None``: none does, or the pods opt out in a way that works."""
    if role.template.spec.get("hostNetwork") is True:
        return None  # injectors skip host-network pods
    return _istio(mesh, job, role) or _ambient(mesh, job, role) or _linkerd(mesh, job, role)


def annotation_opt_out(role: Role) -> Location | None:
    """Where the role opts out of Istio by the deprecated annotation on the pod template, without the label."""
    if role.template.annotations.get(INJECT) == "false" and INJECT not in role.template.labels:
        return role.template.at("metadata", "annotations", INJECT)
    return None


def misplaced_opt_out(job: TrainingJob) -> Location | None:
    """An opt-out on the job's own metadata, where no injector looks."""
    for section, values in (("labels", job.source.labels), ("annotations", job.source.annotations)):
        if values.get(INJECT) == "false":
            return job.source.at("metadata", section, INJECT)
    return None


def namespace_injects(mesh: Meshes, name: str) -> Injection | None:
    """Istio sidecar injection by the namespace's labels."""
    labels = mesh.of(name)
    for key, wanted in (("istio-injection", "enabled"), ("istio.io/rev", None)):
        if key in labels and (wanted is None or labels[key] == wanted):
            because = f"namespace {name} carries {key}={labels[key]}"
            return Injection(mesh=Mesh.ISTIO, because=because, place=mesh.place(name, "labels", key))
    return None


def _istio(mesh: Meshes, job: TrainingJob, role: Role) -> Injection | None:
    own = role.template.labels.get(INJECT) or role.template.annotations.get(INJECT)
    if own == "false":
        return None
    if role.template.labels.get(INJECT) == "true":
        place = role.template.at("metadata", "labels", INJECT)
        return Injection(mesh=Mesh.ISTIO, because=f"its pods carry {INJECT}=true", place=place)
    if mesh.of(job.namespace).get("istio-injection") == "disabled":
        return None
    return namespace_injects(mesh, job.namespace)


def _ambient(mesh: Meshes, job: TrainingJob, role: Role) -> Injection | None:
    own = role.template.labels.get(AMBIENT)
    if own == "none":
        return None
    if own == "ambient":
        place = role.template.at("metadata", "labels", AMBIENT)
        return Injection(mesh=Mesh.AMBIENT, because=f"its pods carry {AMBIENT}=ambient", place=place)
    if mesh.of(job.namespace).get(AMBIENT) == "ambient":
        because = f"namespace {job.namespace} carries {AMBIENT}=ambient"
        return Injection(mesh=Mesh.AMBIENT, because=because, place=mesh.place(job.namespace, "labels", AMBIENT))
    return None


def _linkerd(mesh: Meshes, job: TrainingJob, role: Role) -> Injection | None:
    own = role.template.annotations.get(LINKERD)
    if own == "disabled":
        return None
    if own in ("enabled", "ingress"):
        place = role.template.at("metadata", "annotations", LINKERD)
        return Injection(mesh=Mesh.LINKERD, because=f"its pods carry the annotation {LINKERD}={own}", place=place)
    namespace = mesh.objects.get(job.namespace)
    if namespace is not None and namespace.annotations.get(LINKERD) in ("enabled", "ingress"):
        because = f"namespace {namespace.name} carries the annotation {LINKERD}"
        return Injection(mesh=Mesh.LINKERD, because=because, place=mesh.place(namespace.name, "annotations", LINKERD))
    return None
