"""STL104: a topology spread constraint over zones tears the job apart, or blocks part of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stallscope.findings import Confidence, Finding, Severity
from stallscope.judge.result import Judgement
from stallscope.model.source import as_list, as_map, dig
from stallscope.model.topology import Topology
from stallscope.model.workload import Role, TrainingJob
from stallscope.rules.base import Report
from stallscope.rules.support.containers import ranked_pods, ranked_roles
from stallscope.rules.support.scheduling import ZONE_KEYS, Spread, admits, allowed_zones, labels_of, spreads
from stallscope.rules.support.words import count, label, listed, zone_names

_REPORT = Report("STL104", "spread-forces-split", Severity.ERROR, fixable=True)


def check(judgement: Judgement) -> Iterable[Finding]:
    for judged in judgement.jobs:
        job = judged.job
        if not job.distributed or ranked_pods(job) < 2:
            continue
        for role in ranked_roles(job):
            for spread in spreads(role):
                if spread.topology_key in ZONE_KEYS and spread.selector and spread.selector.matches(labels_of(job, role)):
                    yield from _one(job, role, spread, judgement.topology)


def _one(job: TrainingJob, role: Role, spread: Spread, topology: Topology | None) -> Iterator[Finding]:
    size = _matching(job, spread)
    if size <= spread.max_skew:
        return
    zones = _eligible(role, spread, topology)
    known = zones is not None
    if zones is not None and len(zones) < 2 and not (spread.hard and spread.min_domains > max(len(zones), 1)):
        return  # one eligible domain: the constraint is idle
    if not spread.hard:
        yield _soft(job, role, spread)
        return
    where = zone_names(sorted(zones)) if zones and len(zones) > 1 else "different zones"
    blocked = zones is not None and len(zones) < 2
    message = (
        f"{role.name} of {job.ref} must cover {spread.min_domains} zones (minDomains) but only one is eligible, so at most "
        f"{count(spread.max_skew, 'pod')} can start"
        if blocked
        else f"a spread constraint of {role.name} forces the {size} pods of {job.ref} apart over {where}"
    )
    yield _REPORT.finding(
        message,
        (label(spread.location, f"at most {spread.max_skew} pods more in one zone than in another", primary=True),),
        subject=job.ref,
        key=f"{role.name}:{spread.index}",
        severity=Severity.ERROR if known else Severity.WARNING,
        confidence=Confidence.CERTAIN if known else Confidence.DEPENDS,
        notes=(*_NOTES, *_gpuless(job, role, spread, zones, topology)),
        help="remove the zone constraint; to use one node per rank, spread over kubernetes.io/hostname inside one zone",
    )


_NOTES = (
    "a spread constraint bounds the difference between zones from above: it can separate pods, never bring them together",
    "what you will see: ranks in every zone and slow steps; or, where a zone has no GPU left, pods Pending with 'didn't "
    "match pod topology spread constraints'",
)


def _soft(job: TrainingJob, role: Role, spread: Spread) -> Finding:
    return _REPORT.finding(
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


def _eligible(role: Role, spread: Spread, topology: Topology | None) -> frozenset[str] | None:
    """
    Zones the scheduler counts as domains: of nodes that pass the pod's node affinity (nodeAffinityPolicy Honor, the
    default); taints are ignored by default and capacity always. ``None`` when nobody can tell.
    """
    if topology is None:
        zones = allowed_zones(role) if spread.honours_affinity else None
        return zones if zones is not None and len(zones) < 2 else None
    key = spread.topology_key
    return frozenset(
        n.labels[key] for n in topology.nodes if n.labels.get(key) and (not spread.honours_affinity or admits(role, n))
    )


def _gpuless(
    job: TrainingJob, role: Role, spread: Spread, zones: frozenset[str] | None, topology: Topology | None
) -> Iterator[str]:
    """A zone that counts as a domain but can take no pod of the role holds the global minimum at zero."""
    if topology is None or not zones or job.pods_of(role.name) == ():
        return
    needs = {r for c in as_list(role.template.spec.get("containers")) for r in _extended(c)}
    able = {n.labels.get(spread.topology_key) for n in topology.nodes if needs <= set(n.allocatable)}
    empty = sorted(zones - able)
    if needs and empty and topology.capacity_known:
        yield (
            f"{zone_names(empty)}: no {listed(sorted(needs))} there, but it counts as a domain with 0 pods: at most "
            f"{count(spread.max_skew, 'pod')} per zone can start"
        )


def _extended(container: object) -> Iterator[str]:
    limits = as_map(dig(container, "resources", "limits"))
    return (str(name) for name in limits if "/" in str(name))


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
