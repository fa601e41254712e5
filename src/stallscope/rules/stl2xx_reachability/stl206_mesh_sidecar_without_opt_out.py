"""STL206: a service mesh takes the ranks' traffic through a proxy, because the job does not opt out where it counts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from stallscope.findings import Confidence, Finding, Label, Severity
from stallscope.judge.result import FlowJudgement, JobJudgement, Judgement
from stallscope.model.source import Location
from stallscope.model.traffic import FlowKind, Outcome, RuleRef
from stallscope.model.workload import Role, TrainingJob
from stallscope.rules.base import Report
from stallscope.rules.support.containers import ranked_roles
from stallscope.rules.support.flows import pair_text
from stallscope.rules.support.mesh import (
    AMBIENT,
    INJECT,
    LINKERD,
    Injection,
    Mesh,
    annotation_opt_out,
    injection,
    misplaced_opt_out,
    namespaces,
    refused,
)
from stallscope.rules.support.words import count, label, listed, unique

_REPORT = Report("STL206", "mesh-sidecar-without-opt-out", Severity.WARNING, fixable=True)
_OPT_OUT = {
    Mesh.ISTIO: f'the label {INJECT}: "false"',
    Mesh.AMBIENT: f"the label {AMBIENT}: none",
    Mesh.LINKERD: f"the annotation {LINKERD}: disabled",
}


def check(judgement: Judgement) -> Iterable[Finding]:
    spaces = namespaces(judgement)
    for judged in judgement.jobs:
        job = judged.job
        denied = refused(judged)
        if not denied and (not job.distributed or len(job.pods) < 2):
            continue
        ends = {f.destination_role for f in denied}
        roles = [*ranked_roles(job), *(r for r in job.roles if r.name in ends and r not in ranked_roles(job))]
        found = [(r, i) for r in roles if (i := injection(judgement, spaces, job, r)) is not None]
        if found:
            yield _injected(judged, found, denied)
        else:
            yield from _by_annotation(judgement, job)


def _injected(judged: JobJudgement, found: list[tuple[Role, Injection]], denied: Sequence[FlowJudgement]) -> Finding:
    job, first = judged.job, found[0][1]
    wrong = misplaced_opt_out(job) if first.mesh is Mesh.ISTIO else None
    proxy = "ztunnel" if first.mesh is Mesh.AMBIENT else "a sidecar"
    return _REPORT.finding(
        f"{first.mesh} puts {proxy} in the path of {listed([r.name for r, _ in found])} of {job.ref}: {first.because} and "
        "the pod templates do not opt out",
        _labels(found, wrong, denied),
        subject=job.ref,
        key=str(first.mesh),
        severity=Severity.ERROR if denied else Severity.WARNING,
        confidence=Confidence.CERTAIN if denied else Confidence.DEPENDS,
        notes=tuple(_notes(judged, first, wrong is not None, denied)),
        help=f"put {_OPT_OUT[first.mesh]} on the pod template of every role",
    )


def _labels(
    found: list[tuple[Role, Injection]], wrong: Location | None, denied: Sequence[FlowJudgement]
) -> tuple[Label, ...]:
    labels: list[Label] = []
    if wrong is not None:
        labels.append(label(wrong, "an opt-out here has no effect: it must stand on the pod template"))
    labels += [label(r.template.at("metadata"), f"{r.name}: no opt-out on the pod template") for r, _ in found]
    labels += [label(i.place, i.because) for _, i in found[:1] if i.place is not None]
    labels += [label(rule.location, f"{rule.policy} {what}") for rule, what in _refusing(denied)[:2]]
    first, *rest = unique(labels) or (label(found[0][0].template.source.at(), "no opt-out"),)
    return (label(first.location, first.text, primary=True), *rest)


def _refusing(denied: Sequence[FlowJudgement]) -> list[tuple[RuleRef, str]]:
    """The objects that refuse, once each, and how."""
    found: dict[RuleRef, str] = {}
    for side in (f.verdict.deciding for f in denied):
        for rule in side.rules:
            mtls = rule.policy.startswith("PeerAuthentication")
            found.setdefault(rule, "refuses what comes without mTLS" if mtls else "denies the connection")
        for rule in side.isolating:
            found.setdefault(rule, "admits some connections, and so refuses this one")
    return list(found.items())


def _notes(judged: JobJudgement, found: Injection, wrong: bool, denied: Sequence[FlowJudgement]) -> Iterator[str]:
    if wrong:
        yield "the injector reads the pod, not the job that made it: an opt-out on the job's metadata is ignored"
    if found.mesh is Mesh.AMBIENT:
        yield "ztunnel carries pod traffic over port 15008: policies that list the original ports then block it"
    else:
        yield "rendezvous and collectives use pod addresses and random ports, which a mesh cannot know beforehand"
    if denied:
        pairs = count(sum(f.pairs for f in denied), "pair")
        yield f"{pair_text(denied[0])}: {denied[0].verdict.deciding.reason}; {pairs} of this job in all"
    if denied and _passes_rendezvous(judged) and all(f.flow.kind is not FlowKind.RENDEZVOUS for f in denied):
        yield "the rendezvous port is admitted, so the hang only moves from init to the first collective"
    yield (
        "what you will see: init_process_group hangs, or 'recvValue failed on SocketImpl ... failed to recv, got 0 bytes'; "
        "pods show one container more than the manifest; 'works in the default namespace'"
    )


def _passes_rendezvous(judged: JobJudgement) -> bool:
    return any(f.flow.kind is FlowKind.RENDEZVOUS and f.verdict.outcome is Outcome.PROXIED for f in judged.flows)


def _by_annotation(judgement: Judgement, job: TrainingJob) -> Iterator[Finding]:
    """The deprecated annotation keeps the sidecar out on current Istio, but has been reported as ignored."""
    for role in ranked_roles(job):
        place = annotation_opt_out(judgement, job, role)
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
    "refuses a connection the job needs (the finding names the pair, the port and the object); an info when only the "
    "deprecated annotation opts out.",
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
