"""
Which roles a service mesh takes into its path, where that is written, and what the mesh then refuses.

Istio: the judgement's own answer (`judge.mesh`, policy/istio.py). Linkerd: the annotation ``linkerd.io/inject`` on namespace
or pod (linkerd.io, "Automatic proxy injection").
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from stallscope.judge.result import FlowJudgement, JobJudgement, Judgement
from stallscope.model.kube import KubeObject
from stallscope.model.source import Location
from stallscope.model.traffic import Outcome, Outside
from stallscope.model.workload import Role, TrainingJob

INJECT = "sidecar.istio.io/inject"
AMBIENT = "istio.io/dataplane-mode"
LINKERD = "linkerd.io/inject"


class Mesh(StrEnum):
    ISTIO = "Istio"
    AMBIENT = "Istio ambient"
    LINKERD = "Linkerd"


class Injection(NamedTuple):
    """A mesh in the path of a role's pods. `because` says in words why, `place` where that is written, if in the files."""

    mesh: Mesh
    because: str
    place: Location | None = None


def namespaces(judgement: Judgement) -> Mapping[str, KubeObject]:
    """The Namespace objects of the input, by name."""
    return {o.name: o for o in judgement.inputs.objects if o.kind == "Namespace"}


def injection(judgement: Judgement, spaces: Mapping[str, KubeObject], job: TrainingJob, role: Role) -> Injection | None:
    """The mesh that takes the role's pods in, or ``None``: none does, or the pods opt out in a way that works."""
    if role.template.spec.get("hostNetwork") is True:
        return None  # injectors skip host-network pods
    return _istio(judgement, spaces, job, role) or _linkerd(spaces, job, role)


def annotation_opt_out(judgement: Judgement, job: TrainingJob, role: Role) -> Location | None:
    """Where the role opts out of Istio by the deprecated annotation alone, although its namespace asks for injection."""
    if judgement.mesh is None:
        return None
    from stallscope.judge.mesh import role_pod

    found = judgement.mesh.membership(role_pod(job, role))
    return role.template.at("metadata", "annotations", INJECT) if found.weak else None


def misplaced_opt_out(job: TrainingJob) -> Location | None:
    """An opt-out on the job's own metadata, where no injector looks."""
    for section, values in (("labels", job.source.labels), ("annotations", job.source.annotations)):
        if values.get(INJECT) == "false":
            return job.source.at("metadata", section, INJECT)
    return None


def refused(judged: JobJudgement) -> tuple[FlowJudgement, ...]:
    """Flows among the job's own pods that the mesh refuses, and no policy."""
    return tuple(
        f
        for f in judged.with_outcome(Outcome.DENIED)
        if f.verdict.by_mesh and not {f.source_role, f.destination_role} & set(Outside)
    )


def _istio(judgement: Judgement, spaces: Mapping[str, KubeObject], job: TrainingJob, role: Role) -> Injection | None:
    if judgement.mesh is None:
        return None
    from stallscope.judge.mesh import role_pod

    found = judgement.mesh.membership(role_pod(job, role))
    kind = {"sidecar": Mesh.ISTIO, "ambient": Mesh.AMBIENT}.get(found.path)
    if kind is None:
        return None
    place = None
    match found.where:
        case ("pod", section, key):
            place = role.template.at("metadata", section, key)
        case ("namespace", section, key) if job.namespace in spaces:
            place = spaces[job.namespace].at("metadata", section, key)
    return Injection(mesh=kind, because=found.because, place=place)


def _linkerd(spaces: Mapping[str, KubeObject], job: TrainingJob, role: Role) -> Injection | None:
    own = role.template.annotations.get(LINKERD)
    if own == "disabled":
        return None
    if own in ("enabled", "ingress"):
        place = role.template.at("metadata", "annotations", LINKERD)
        return Injection(mesh=Mesh.LINKERD, because=f"its pods have the annotation {LINKERD}={own}", place=place)
    namespace = spaces.get(job.namespace)
    if namespace is not None and namespace.annotations.get(LINKERD) in ("enabled", "ingress"):
        because = f"namespace {namespace.name} has the annotation {LINKERD}={namespace.annotations[LINKERD]}"
        place = namespace.at("metadata", "annotations", LINKERD)
        return Injection(mesh=Mesh.LINKERD, because=because, place=place)
    return None
