"""STL110: pods that are not of this job match its affinity and decide its zone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stallscope.findings import Confidence, Finding, Severity
from stallscope.judge.result import Judgement
from stallscope.model.topology import BoundPod, Topology
from stallscope.model.workload import Role, TrainingJob
from stallscope.rules.base import Report
from stallscope.rules.support.scheduling import ZONE_KEYS, PodTerm, labels_of, pod_terms
from stallscope.rules.support.words import count, label, zone_names

_REPORT = Report("STL110", "leftover-label", Severity.WARNING)


def check(judgement: Judgement) -> Iterable[Finding]:
    jobs = [j.job for j in judgement.jobs]
    for job in jobs:
        for role in job.roles:
            for term in pod_terms(role) if role.replicas > 0 else ():
                # a term that the role does not match points at foreign pods on purpose
                if term.topology_key not in ZONE_KEYS or not _self(job, term):
                    continue
                yield from _bound(job, role, term, judgement.topology)
                yield from _other_jobs(job, role, term, jobs)


def _self(job: TrainingJob, term: PodTerm) -> bool:
    return any(term.matches(labels_of(job, r), job.namespace, job.namespace) for r in job.roles)


def _own(job: TrainingJob, pod: BoundPod) -> bool:
    """A pod of this very job in a snapshot taken while it runs, by its name."""
    if pod.namespace != job.namespace:
        return False
    names = [p.name for p in job.pods]
    return pod.name in names or any(n.endswith("*") and pod.name.startswith(n[:-1]) for n in names)


def _bound(job: TrainingJob, role: Role, term: PodTerm, topology: Topology | None) -> Iterator[Finding]:
    if topology is None:
        return
    foreign = [p for p in topology.bound_pods if term.matches(p.labels, p.namespace, job.namespace) and not _own(job, p)]
    if not foreign:
        return
    zone_of = {n.name: n.zone for n in topology.nodes}
    zones = sorted({z for p in foreign if (z := zone_of.get(p.node, ""))})
    first = foreign[0]
    yield _REPORT.finding(
        f"{first.namespace}/{first.name} matches the affinity of {role.name} in {job.ref} and decides its zone "
        f"({zone_names(zones)})",
        (label(term.location, f"matches {count(len(foreign), 'pod')} of other owners", primary=True),),
        subject=job.ref,
        key=f"{role.name}:bound",
        notes=(
            "a bound pod that matches holds the zone: the job must go there, whether it fits or not",
            'what you will see: pods Pending with "didn\'t match pod affinity rules" while another zone is free',
        ),
        help="select a label only this run has: jobset.sigs.k8s.io/jobset-uid, batch.kubernetes.io/controller-uid, ...",
    )


def _other_jobs(job: TrainingJob, role: Role, term: PodTerm, jobs: list[TrainingJob]) -> Iterator[Finding]:
    """Another job of the same files would be pulled into the same zone, whichever starts first."""
    for other in jobs:
        if other.ref == job.ref:
            continue
        hit = next((r for r in other.roles if term.matches(labels_of(other, r), other.namespace, job.namespace)), None)
        if hit is None:
            continue
        yield _REPORT.finding(
            f"the affinity of {role.name} in {job.ref} also matches {other.ref}: both must share one zone",
            (
                label(term.location, f"matches {hit.name} of {other.ref} as well", primary=True),
                label(hit.template.at("metadata", "labels"), f"labels of {other.ref}"),
            ),
            subject=job.ref,
            key=f"{role.name}:{other.ref}",
            confidence=Confidence.DEPENDS,
            notes=("holds while both jobs run at the same time",),
            help="select a label that only this job has",
        )
        return


RULE = _REPORT.rule(
    check,
    what="The job's zone affinity matches pods of another run or another job: pods bound in the snapshot, or another job of "
    "the same files.",
    why="Job names and app labels repeat. A leftover pod of last night's run pins tonight's job to its zone, full or not.",
    bad="""\
podAffinity:
  requiredDuringSchedulingIgnoredDuringExecution:
    - topologyKey: topology.kubernetes.io/zone
      labelSelector: {matchLabels: {app: training}}     # every training job has it
""",
    good="""\
podAffinity:
  requiredDuringSchedulingIgnoredDuringExecution:
    - topologyKey: topology.kubernetes.io/zone
      labelSelector: {matchLabels: {training.kubeflow.org/job-name: llm}}
""",
    fix="Select a label that is unique to the run, or add matchLabelKeys on one (GA in Kubernetes 1.33).",
    sources=("https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/#matchlabelkeys",),
)
