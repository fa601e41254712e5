"""STL205: a policy written for a training job selects none of its pods."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from stallscope.findings import Confidence, Finding, Severity
from stallscope.judge.result import Judgement
from stallscope.model.kube import KubeObject
from stallscope.model.labels import Requirement, Selector
from stallscope.model.source import Route
from stallscope.model.workload import TrainingJob
from stallscope.rules.base import Report
from stallscope.rules.support.policies import subject_selectors
from stallscope.rules.support.shapes import PodShapes, pod_shapes
from stallscope.rules.support.words import label, listed

_REPORT = Report("STL205", "policy-selects-nothing", Severity.WARNING)
#: Label domains that only pods of training jobs carry: a selector that names one is meant for such pods.
_TRAINING = (
    "training.kubeflow.org/",
    "trainer.kubeflow.org/",
    "jobset.sigs.k8s.io/",
    "batch.kubernetes.io/job-name",
    "ray.io/",
    "volcano.sh/",
    "leaderworkerset.sigs.k8s.io/",
)
#: Labels of older operator releases, still in many snippets, and what replaced them.
_OLD = {
    "pytorch-job-name": "training.kubeflow.org/job-name",
    "pytorch-replica-type": "training.kubeflow.org/replica-type",
    "tf-job-name": "training.kubeflow.org/job-name",
    "mpi-job-name": "training.kubeflow.org/job-name",
    "mpi_job_name": "training.kubeflow.org/job-name",
    "group-name": "training.kubeflow.org/operator-name",
}
#: Pod labels that no template can show because another filter hides them: judged by STL208.
_ZONES = "topology.kubernetes.io/"


def check(judgement: Judgement) -> Iterable[Finding]:
    shapes = {j.job.ref: pod_shapes(j.job) for j in judgement.jobs}
    for policy in judgement.policies.policies:
        jobs = [j.job for j in judgement.jobs if policy.namespace in ("", j.job.namespace)]
        if not jobs or not policy.file:
            continue
        for selector, route in subject_selectors(policy):
            yield from _one(policy, selector, route, jobs, shapes, judgement)


def _one(
    policy: KubeObject,
    selector: Selector,
    route: Route,
    jobs: list[TrainingJob],
    shapes: Mapping[str, PodShapes],
    judgement: Judgement,
) -> Iterator[Finding]:
    requirements = [r for r in selector.requirements if r.operator in ("In", "Exists")]
    if not requirements or any(r.key.startswith(_ZONES) for r in selector.requirements):
        return
    if any(shapes[j.ref].selected(selector) for j in jobs):
        return
    owner = next((j for j in jobs if j.source.labels and selector.matches(j.source.labels)), None)
    near = [r for r in requirements if r.key.startswith(_TRAINING) or r.key in _OLD]
    job = _meant(jobs, near) if near else None
    if (owner is None and job is None) or _matches_bound(policy, selector, judgement):
        return
    if owner is not None:
        yield _only_on_owner(policy, route, owner, requirements)
    elif job is not None:
        yield _wrong_label(policy, route, job, selector, near)


def _matches_bound(policy: KubeObject, selector: Selector, judgement: Judgement) -> bool:
    bound = judgement.topology.bound_pods if judgement.topology else ()
    return any(selector.matches(p.labels) for p in bound if policy.namespace in ("", p.namespace))


def _meant(jobs: list[TrainingJob], near: list[Requirement]) -> TrainingJob | None:
    """The job the selector is about: the one whose name it gives, else any when it gives no job name at all."""
    named = [r for r in near if r.key.endswith(("job-name", "jobset-name", "ray.io/cluster", "job_name"))]
    if not named:
        return jobs[0]
    return next((j for j in jobs for r in named if j.name in r.values), None)


def _only_on_owner(policy: KubeObject, route: Route, job: TrainingJob, wanted: list[Requirement]) -> Finding:
    key = next((r.key for r in wanted if r.key in job.source.labels), wanted[0].key)
    return _REPORT.finding(
        f"{policy.ref} selects no pod: {key} is a label of {job.ref} itself, not of its pods",
        (
            label(policy.at(*route), "selects pods by this label", primary=True),
            label(job.source.at("metadata", "labels", key), "stands on the job, which hands no labels to its pods"),
            *(label(r.template.at("metadata"), f"pods of {r.name} get their labels here") for r in job.roles[:1]),
        ),
        subject=policy.ref,
        key=job.ref,
        notes=_NOTES,
        help=f"put {key} on the pod templates, or select a label the controller adds: {_group(job)}",
    )


def _wrong_label(policy: KubeObject, route: Route, job: TrainingJob, selector: Selector, near: list[Requirement]) -> Finding:
    renamed = [f"{r.key} is now {_OLD[r.key]}" for r in near if r.key in _OLD]
    roles = [str(r) for r in near if "job-role" in r.key]
    notes = list(_NOTES)
    if roles:
        notes.insert(0, "training.kubeflow.org/job-role exists on the master only; workers are replica-type=worker")
    if renamed:
        notes.insert(0, "; ".join(renamed))
    return _REPORT.finding(
        f"{policy.ref} selects no pod of {job.ref}: none carries {listed([str(r) for r in selector.requirements])}",
        (label(policy.at(*route), "no pod of these files or of the snapshot has these labels", primary=True),),
        subject=policy.ref,
        key=job.ref,
        confidence=Confidence.DEPENDS,
        notes=(*notes, "holds unless pods of another workload in the cluster carry these labels"),
        help=f"select {_group(job)}",
    )


_NOTES = (
    "a policy that selects nothing neither isolates nor allows anything: what it should open stays closed by the others, "
    "what it should close stays open",
)


def _group(job: TrainingJob) -> str:
    return ", ".join(f"{k}={v}" for k, v in job.group_labels.items()) or "labels of the pod template"


RULE = _REPORT.rule(
    check,
    what="The podSelector or endpointSelector of a policy is meant for a training job, and matches none of its pods: the "
    "label stands on the job object only, has an old name, or is not given to that role.",
    why="The policy is a no-op. When it was the allow the job needs, the job hangs; when it was the isolation, nothing is "
    "isolated.",
    bad="""\
kind: PyTorchJob
metadata:
  labels: {team: nlp}                 # not handed down to pods
---
kind: NetworkPolicy
spec:
  podSelector: {matchLabels: {team: nlp}}
""",
    good="""\
kind: NetworkPolicy
spec:
  podSelector: {matchLabels: {training.kubeflow.org/job-name: llm}}
""",
    fix="Select labels that the pods carry: those of the pod template, or those the controller adds.",
    sources=(
        "https://github.com/kubeflow/trainer/pull/3372",
        "https://github.com/kubeflow/training-operator/blob/v1.9.0/pkg/apis/kubeflow.org/v1/common_types.go",
    ),
)
