"""STL206: a service mesh takes the ranks' traffic through a proxy, because the job does not opt out where it counts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stallscope.findings import Confidence, Finding, Label, Severity
from stallscope.judge.result import Judgement
from stallscope.model.kube import KubeObject
from stallscope.model.source import Location
from stallscope.model.workload import Role, TrainingJob
from stallscope.rules.base import Report
from stallscope.rules.support.containers import ranked_roles
from stallscope.rules.support.mesh import (
    AMBIENT,
    INJECT,
    LINKERD,
    Injection,
    Mesh,
    Meshes,
    annotation_opt_out,
    injection,
    meshes,
    misplaced_opt_out,
    namespace_injects,
)
from stallscope.rules.support.words import label, listed, unique

_REPORT = Report("STL206", "mesh-sidecar-without-opt-out", Severity.WARNING, fixable=True)
_OPT_OUT = {
    Mesh.ISTIO: f'the label {INJECT}: "false"',
    Mesh.AMBIENT: f"the label {AMBIENT}: none",
    Mesh.LINKERD: f"the annotation {LINKERD}: disabled",
}


def check(judgement: Judgement) -> Iterable[Finding]:
    mesh = meshes(judgement)
    for judged in judgement.jobs:
        job = judged.job
        if not job.distributed or len(job.pods) < 2:
            continue
        found = [(r, i) for r in ranked_roles(job) if (i := injection(mesh, job, r)) is not None]
        if found:
            yield _injected(judgement, job, found)
        else:
            yield from _by_annotation(mesh, job)


def _injected(judgement: Judgement, job: TrainingJob, found: list[tuple[Role, Injection]]) -> Finding:
    first = found[0][1]
    roles = [r.name for r, _ in found]
    strict = _strict(judgement, job) if first.mesh is not Mesh.LINKERD else None
    wrong = misplaced_opt_out(job) if first.mesh is Mesh.ISTIO else None
    proxy = "ztunnel" if first.mesh is Mesh.AMBIENT else "a sidecar"
    return _REPORT.finding(
        f"{first.mesh} puts {proxy} in the path of {listed(roles)} of {job.ref}: {first.because} and the pod templates do "
        "not opt out",
        _labels(found, wrong, strict),
        subject=job.ref,
        key=str(first.mesh),
        severity=Severity.ERROR if strict is not None else Severity.WARNING,
        confidence=Confidence.CERTAIN if strict is not None else Confidence.DEPENDS,
        notes=_notes(first, wrong is not None, strict),
        help=f"put {_OPT_OUT[first.mesh]} on the pod template of every role",
    )


def _labels(found: list[tuple[Role, Injection]], wrong: Location | None, strict: KubeObject | None) -> tuple[Label, ...]:
    labels: list[Label] = []
    if wrong is not None:
        labels.append(label(wrong, "an opt-out here has no effect: it must stand on the pod template"))
    labels += [label(r.template.at("metadata"), f"{r.name}: no opt-out on the pod template") for r, _ in found]
    labels += [label(i.place, i.because) for _, i in found[:1] if i.place is not None]
    if strict is not None:
        labels.append(label(strict.at("spec"), f"{strict.kind} {strict.name} refuses what the proxy cannot authenticate"))
    first, *rest = unique(labels) or (label(found[0][0].template.source.at(), "no opt-out"),)
    return (label(first.location, first.text, primary=True), *rest)


def _strict(judgement: Judgement, job: TrainingJob) -> KubeObject | None:
    """STRICT mTLS or an AuthorizationPolicy for the job's namespace: pod-IP traffic is then refused, not only slowed."""
    for item in judgement.inputs.objects:
        if item.group not in ("security.istio.io",) or item.namespace not in (job.namespace, "istio-system"):
            continue
        if item.kind == "PeerAuthentication" and item.get("spec", "mtls", "mode") == "STRICT":
            return item
        if item.kind == "AuthorizationPolicy" and item.get("spec", "action", default="ALLOW") == "ALLOW":
            return item
    return None


def _notes(found: Injection, wrong: bool, strict: KubeObject | None) -> tuple[str, ...]:
    notes = []
    if wrong:
        notes.append("the injector reads the pod, not the job that made it: an opt-out on the job's metadata is ignored")
    if found.mesh is Mesh.AMBIENT:
        notes.append("ztunnel carries pod traffic over port 15008: policies that list the original ports then block it")
    else:
        notes.append("rendezvous and collectives use pod addresses and random ports, which a mesh cannot know beforehand")
    if strict is not None:
        notes.append("traffic to pod addresses is passed through without mTLS identity, and this policy refuses it")
    notes.append(
        "what you will see: init_process_group hangs, or 'recvValue failed on SocketImpl ... failed to recv, got 0 bytes'; "
        "pods show one container more than the manifest; 'works in the default namespace'"
    )
    return tuple(notes)


def _by_annotation(mesh: Meshes, job: TrainingJob) -> Iterator[Finding]:
    """The deprecated annotation keeps the sidecar out on current Istio, but has been reported as ignored."""
    if namespace_injects(mesh, job.namespace) is None:
        return
    for role in ranked_roles(job):
        place = annotation_opt_out(role)
        if place is not None:
            yield _REPORT.finding(
                f"{role.name} of {job.ref} opts out of Istio by annotation only",
                (label(place, "deprecated form of the opt-out", primary=True),),
                subject=job.ref,
                key=f"annotation:{role.name}",
                severity=Severity.INFO,
                confidence=Confidence.DEPENDS,
                notes=("the webhook may select pods by label before the annotation is looked at",),
                help=f'use the label {INJECT}: "false" on the pod template',
                fixable=False,
            )
            return


RULE = _REPORT.rule(
    check,
    what="The job's pods get a mesh proxy (Istio sidecar or ambient, Linkerd), because the namespace or the pods ask for "
    "injection and the pod templates of the ranks do not opt out. An error when STRICT mTLS or an AuthorizationPolicy "
    "applies; an info when only the deprecated annotation opts out.",
    why="The best proven blocker of distributed training on Kubernetes: the proxy closes or delays the rendezvous, and "
    "collectives on random ports between pod addresses are refused or slowed.",
    bad="""\
kind: Namespace
metadata:
  name: team-nlp
  labels: {istio-injection: enabled}
---
kind: PyTorchJob
metadata:
  annotations: {sidecar.istio.io/inject: "false"}       # wrong place
""",
    good="""\
kind: PyTorchJob
spec:
  pytorchReplicaSpecs:
    Worker:
      template:
        metadata:
          labels: {sidecar.istio.io/inject: "false"}
""",
    fix="Opt out with the label on the pod template of every role (Linkerd: the annotation). Both ends must agree: a role "
    "with a sidecar cannot talk to one without under STRICT mTLS.",
    sources=(
        "https://github.com/kubeflow/trainer/issues/2794",
        "https://github.com/kubeflow/trainer/issues/1636",
        "https://github.com/kubeflow/mpi-operator/issues/480",
        "https://github.com/kubeflow/community-distribution/issues/2040",
        "https://istio.io/latest/docs/setup/additional-setup/sidecar-injection/",
    ),
)
