"""STL104: a topology spread constraint over zones tears the job apart, or blocks part of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from stallscope.findings import Confidence, Finding, Severity
from stallscope.judge.pods import pod_requests
from stallscope.judge.result import Judgement
from stallscope.model.topology import Topology
from stallscope.model.workload import Role, TrainingJob
from stallscope.rules.base import Report
from stallscope.rules.support.containers import ranked_pods, ranked_roles
from stallscope.rules.support.scheduling import ZONE_KEYS, Spread, allowed_zones, labels_of, spreads
from stallscope.rules.support.words import count, label, zone_names

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stallscope.placement.facts import SpreadFact

_REPORT = Report("STL104", "spread-forces-split", Severity.ERROR, fixable=True)


def check(judgement: Judgement) -> Iterable[Finding]:
    for judged in judgement.jobs:
        job = judged.job
        if not job.distributed or ranked_pods(job) < 2:
            continue
        topology = judgement.topology
        constraints = [(r, s) for r in ranked_roles(job) for s in _over_zones(job, r)]
        hard = any(s.hard for _, s in constraints)
        facts = _facts(job, topology) if topology and hard else {}
        for role, spread in constraints:
            fact = facts.get((role.name, spread.index))
            if not spread.hard:
                yield from _soft(job, role, spread, topology)
            elif fact is not None:
                yield from _known(job, role, spread, fact)
            elif topology is None:
                yield from _open(job, role, spread)


def _facts(job: TrainingJob, topology: Topology) -> Mapping[tuple[str, int], SpreadFact]:
    """By role and position of the constraint."""
    from stallscope.placement.facts import spread_facts  # here: few jobs have spread constraints

    return {(f.klass, f.index): f for f in spread_facts(pod_requests(job), topology)}


def _over_zones(job: TrainingJob, role: Role) -> Iterator[Spread]:
    """Constraints over a zone key that count the role's own pods."""
    own = labels_of(job, role)
    return (s for s in spreads(role) if s.topology_key in ZONE_KEYS and s.selector is not None and s.selector.matches(own))


def _known(job: TrainingJob, role: Role, spread: Spread, fact: SpreadFact) -> Iterator[Finding]:
    """With nodes: what the scheduler will make of it (`stallscope.placement.facts`)."""
    match fact.verdict:
        case "forces-split":
            apart = f"the {fact.counted} pods of {job.ref} apart over {zone_names(fact.domains)}"
            yield _hard(job, role, spread, f"a spread constraint of {role.name} forces {apart}")
        case "blocks":
            few = f"at most {fact.binds} of {fact.counted} pods of {job.ref} start"
            yield _hard(job, role, spread, f"a spread constraint of {role.name} lets {few}", _blocked(spread, fact))
        case "contradicts":
            message = f"{role.name} of {job.ref} must spread over zones and keep to one zone at once: some pods stay Pending"
            yield _hard(job, role, spread, message)


def _blocked(spread: Spread, fact: SpreadFact) -> tuple[str, ...]:
    if fact.hostile:
        return (
            f"{zone_names(fact.hostile)} can take no pod of the job but counts as a domain with 0 pods: at most "
            f"{count(spread.max_skew, 'pod')} per zone can start (capacity and taints are not considered)",
        )
    return (f"minDomains {spread.min_domains} with {count(len(fact.domains), 'eligible zone')} holds the minimum at 0",)


def _open(job: TrainingJob, role: Role, spread: Spread) -> Iterator[Finding]:
    """Without nodes: a constraint that a pin leaves idle is fine, minDomains over a pin is not, the rest depends."""
    size = _matching(job, spread)
    zones = allowed_zones(role) if spread.honours_affinity else None
    pinned = zones is not None and len(zones) < 2
    if size <= spread.max_skew or (pinned and spread.min_domains < 2):
        return
    if pinned:
        message = f"a spread constraint of {role.name} lets at most {spread.max_skew} of {size} pods of {job.ref} start"
        yield _hard(job, role, spread, message, (f"minDomains {spread.min_domains} with one zone holds the minimum at 0",))
        return
    message = f"a spread constraint of {role.name} forces the {size} pods of {job.ref} apart over different zones"
    yield _hard(job, role, spread, message, known=False)


def _hard(
    job: TrainingJob, role: Role, spread: Spread, message: str, notes: Sequence[str] = (), *, known: bool = True
) -> Finding:
    return _REPORT.finding(
        message,
        (label(spread.location, f"at most {count(spread.max_skew, 'pod')} more in one zone than in another", primary=True),),
        subject=job.ref,
        key=f"{role.name}:{spread.index}",
        severity=Severity.ERROR if known else Severity.WARNING,
        confidence=Confidence.CERTAIN if known else Confidence.DEPENDS,
        notes=(*_NOTES, *notes),
        help="remove the zone constraint; to use one node per rank, spread over kubernetes.io/hostname inside one zone",
    )


_NOTES = (
    "a spread constraint bounds the difference between zones from above: it can separate pods, never bring them together",
    "what you will see: ranks in every zone and slow steps; or, where a zone has no GPU left, pods Pending with 'didn't "
    "match pod topology spread constraints'",
)


def _soft(job: TrainingJob, role: Role, spread: Spread, topology: Topology | None) -> Iterator[Finding]:
    zones = allowed_zones(role)
    if _matching(job, spread) < 2 or (zones is not None and len(zones) < 2) or (topology and len(topology.zones) < 2):
        return
    yield _REPORT.finding(
        f"a spread preference of {role.name} pushes the pods of {job.ref} into different zones",
        (label(spread.location, "ScheduleAnyway over zones scores against co-location", primary=True),),
        subject=job.ref,
        key=f"{role.name}:{spread.index}",
        severity=Severity.INFO,
        confidence=Confidence.DEPENDS,
        notes=_NOTES[:1],
        help="remove it, or spread over kubernetes.io/hostname",
        fixable=False,
    )


def _matching(job: TrainingJob, spread: Spread) -> int:
    """Pods of the job the constraint counts; it only ever sees the pod's own namespace, hence all of them."""
    return sum(1 for p in job.pods if spread.selector is not None and spread.selector.matches(p.labels))


RULE = _REPORT.rule(
    check,
    what="A topologySpreadConstraint over the zone key with whenUnsatisfiable: DoNotSchedule counts the job's own pods and "
    "sees two zones or more. With ScheduleAnyway: info.",
    why="It guarantees the split that the team wanted to prevent, or leaves pods Pending because a zone without GPUs still "
    "counts as an empty domain.",
    bad="""\
topologySpreadConstraints:
  - topologyKey: topology.kubernetes.io/zone
    maxSkew: 1
    whenUnsatisfiable: DoNotSchedule
    labelSelector: {matchLabels: {app: llm}}
""",
    good="""\
nodeSelector:
  topology.kubernetes.io/zone: zone-a
topologySpreadConstraints:
  - topologyKey: kubernetes.io/hostname
    maxSkew: 1
    whenUnsatisfiable: ScheduleAnyway
    labelSelector: {matchLabels: {app: llm}}
""",
    fix="Remove the zone constraint and pin the zone. Spreading over host names inside the pinned zone is useful.",
    sources=(
        "https://kubernetes.io/docs/concepts/scheduling-eviction/topology-spread-constraints/",
        "https://github.com/kubernetes/kubernetes/issues/129762",
    ),
)
