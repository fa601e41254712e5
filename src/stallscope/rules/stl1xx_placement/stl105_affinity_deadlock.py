"""STL105: required pod affinities that wait for each other, or for a pod that can hold them in the wrong place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from stallscope.findings import Confidence, Finding, Label, Severity
from stallscope.judge.pods import pod_requests
from stallscope.judge.result import JobJudgement, Judgement, Witness
from stallscope.model.source import Location
from stallscope.model.topology import Topology
from stallscope.model.workload import Role, TrainingJob
from stallscope.rules.base import Report
from stallscope.rules.support.containers import accelerators
from stallscope.rules.support.scheduling import ZONE_KEYS, PodTerm, allowed_zones, labels_of, pinned, pod_terms
from stallscope.rules.support.witness import placement_notes
from stallscope.rules.support.words import label, listed, zone_name

_REPORT = Report("STL105", "affinity-deadlock", Severity.ERROR, fixable=True)


def check(judgement: Judgement) -> Iterable[Finding]:
    for judged in judgement.jobs:
        job = judged.job
        roles = [r for r in job.roles if r.replicas > 0]
        if not any(pod_terms(r) for r in roles):
            continue
        from stallscope.placement.facts import affinity_facts  # here: few jobs have pod affinity

        for_ever = {f.klass for f in affinity_facts(pod_requests(job), judgement.topology) if f.waits_for_ever}
        stuck = [r for r in roles if r.name in for_ever]
        if stuck:
            yield from _deadlock(job, stuck, roles, judgement.topology)
            continue
        for role in roles:
            yield from _follows(judged, role, roles, judgement.topology)


def _deadlock(
    job: TrainingJob, stuck: Sequence[Role], roles: Sequence[Role], topology: Topology | None
) -> Iterator[Finding]:
    """Mutual waiting is certain; a term that matches no pod of the job may mean a pod outside it."""
    lost = [(r, t) for r in stuck if (t := _unmet(job, r, roles)) is not None]
    for role, term in lost:
        yield _matches_nobody(job, role, term, topology)
    within = {r.name: _waits_for(job, r, roles) for r in stuck}
    cycle = [r for r in stuck if within[r.name]]
    if cycle and not lost:
        names = [r.name for r in cycle]
        yield _REPORT.finding(
            f"{listed(names)} of {job.ref} require each other's zone first, so none of them can ever start",
            tuple(
                label(pod_terms(r)[0].location, f"{r.name} waits for {listed(within[r.name])}", primary=i == 0)
                for i, r in enumerate(cycle)
            ),
            subject=job.ref,
            key="mutual",
            notes=(_PENDING,),
            help="let workers require workers (their own labels), and the coordinator require the workers",
        )


_PENDING = 'what you will see: pods Pending for ever with "didn\'t match pod affinity rules"; the job itself reports nothing'


def _waits_for(job: TrainingJob, role: Role, roles: Sequence[Role]) -> list[str]:
    """Other roles of the job that the terms of `role` match."""
    return [
        r.name
        for r in roles
        if r.name != role.name and any(t.matches(labels_of(job, r), job.namespace, job.namespace) for t in pod_terms(role))
    ]


def _matches_nobody(job: TrainingJob, role: Role, term: PodTerm, topology: Topology | None) -> Finding:
    known = topology is not None
    return _REPORT.finding(
        f"{role.name} of {job.ref} requires pods matching '{term.selector or 'nothing'}', and no pod of the job matches",
        (
            label(term.location, "no pod of this job has these labels", primary=True),
            label(role.template.at("metadata", "labels"), f"labels of {role.name}"),
        ),
        subject=job.ref,
        key=role.name,
        severity=Severity.ERROR if known else Severity.WARNING,
        confidence=Confidence.DEPENDS,
        notes=(_PENDING, "holds unless pods of another workload carry these labels when the job starts"),
        help="select labels that the job's own pod templates carry",
    )


def _unmet(job: TrainingJob, role: Role, roles: Sequence[Role]) -> PodTerm | None:
    """The first term of `role` that no pod of the job matches."""
    for term in pod_terms(role):
        if not any(term.matches(labels_of(job, r), job.namespace, job.namespace) for r in roles):
            return term
    return None


def _follows(judged: JobJudgement, role: Role, roles: Sequence[Role], topology: Topology | None) -> Iterator[Finding]:
    """A GPU role that follows a role which may land where there are no GPUs: the leader locks the zone."""
    job = judged.job
    leaders = _leaders(job, role, roles)
    if not leaders or not accelerators(role):
        return
    leader = leaders[0]
    term = next(t for t in pod_terms(role) if t.topology_key in ZONE_KEYS)
    if topology is None:
        if not accelerators(leader) and not pinned(leader) and allowed_zones(leader) is None:
            yield _REPORT.finding(
                f"{role.name} of {job.ref} must follow {leader.name}, which may land in a zone without GPUs",
                _follow_labels(term.location, role, leader),
                subject=job.ref,
                key=role.name,
                severity=Severity.WARNING,
                confidence=Confidence.DEPENDS,
                notes=(_LOCK, _PENDING),
                help=_TURN_ROUND,
            )
        return
    locked = judged.placement.locked if judged.placement else None
    if locked is None:
        return
    bound = [p.name for p in job.pods_of(leader.name) if locked.nodes.get(p.name)]
    pending = [p.name for p in job.pods_of(role.name) if locked.nodes.get(p.name) is None]
    if not bound or len(pending) < role.replicas:
        return
    witness = Witness(nodes=dict(locked.nodes), zones={n.name: n.zone for n in topology.nodes})
    yield _REPORT.finding(
        f"{role.name} of {job.ref} must follow {leader.name}: with {bound[0]} in {zone_name(witness.zone_of(bound[0]))}, "
        f"all {role.replicas} {role.name} pods stay Pending",
        _follow_labels(term.location, role, leader),
        subject=job.ref,
        key=role.name,
        severity=Severity.ERROR if judged.placement and not judged.placement.may_start_whole else Severity.WARNING,
        notes=(*placement_notes(job, witness), _LOCK, _PENDING),
        help=_TURN_ROUND,
    )


_LOCK = "whoever is bound first decides the zone, without looking whether the others fit there"
_TURN_ROUND = "turn the affinity round: workers require workers (their own labels), the coordinator requires the workers"


def _leaders(job: TrainingJob, role: Role, roles: Sequence[Role]) -> list[Role]:
    """Roles matched by a zone term of `role` that `role` itself does not match."""
    own: Mapping[str, str] = labels_of(job, role)
    terms = [t for t in pod_terms(role) if t.topology_key in ZONE_KEYS and not t.matches(own, job.namespace, job.namespace)]
    return [
        r
        for r in roles
        if r.name != role.name and any(t.matches(labels_of(job, r), job.namespace, job.namespace) for t in terms)
    ]


def _follow_labels(place: Location, role: Role, leader: Role) -> tuple[Label, ...]:
    return (
        label(place, f"{role.name} waits for {leader.name}", primary=True),
        label(leader.template.at("spec"), f"{leader.name} needs no GPU and has no zone of its own"),
    )


RULE = _REPORT.rule(
    check,
    what="Required podAffinity terms that can never all hold (two roles wait for each other, or for labels nobody has), or "
    "GPU workers that must follow a coordinator which may land in a zone without GPUs.",
    why="The scheduler does not look ahead. Part of the job is Running and holds resources, the rest is Pending for "
    "ever, and no event on the job says so.",
    bad="""\
Worker:
  affinity:
    podAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        - topologyKey: topology.kubernetes.io/zone
          labelSelector:
            matchLabels: {role: coordinator}       # the CPU coordinator decides the zone
""",
    good="""\
Worker:                                            # workers keep together ...
  affinity:
    podAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        - topologyKey: topology.kubernetes.io/zone
          labelSelector:
            matchLabels: {job: llm, role: worker}
Master:                                            # ... and the coordinator follows them
  affinity:
    podAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        - topologyKey: topology.kubernetes.io/zone
          labelSelector:
            matchLabels: {job: llm, role: worker}
""",
    fix="Point the affinity from the coordinator to the workers and from workers to workers, or pin the zone.",
    sources=(
        "https://github.com/kubernetes/kubernetes/issues/24995",
        "https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/#inter-pod-affinity-and-anti-affinity",
    ),
)
