"""STL101: the scheduler may place the ranks of one job in two zones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stallscope.findings import Confidence, Finding, Label, Severity
from stallscope.judge.result import Answer, JobJudgement, Judgement
from stallscope.model.source import Location, as_map, dig
from stallscope.model.topology import is_accelerator
from stallscope.model.workload import Role, TrainingJob
from stallscope.rules.base import Report
from stallscope.rules.support.containers import accelerators, containers, ranked_pods, ranked_roles
from stallscope.rules.support.gangs import kept_together
from stallscope.rules.support.scheduling import (
    ZONE_KEYS,
    allowed_zones,
    pinned,
    preferred_zone_affinity,
    spreads,
    zone_affine,
)
from stallscope.rules.support.witness import placement_notes, ring_note, split_pair
from stallscope.rules.support.words import count, label, unique, zone_name, zone_names

_REPORT = Report("STL101", "job-can-split", Severity.ERROR, fixable=True)
_FAST_FABRIC = ("vpc.amazonaws.com/efa", "rdma/", "nvidia.com/rdma", "networking.gke.io.networks/")


def check(judgement: Judgement) -> Iterable[Finding]:
    for judged in judgement.jobs:
        job = judged.job
        if judged.can_split is not Answer.YES or not job.distributed or ranked_pods(job) < 2:
            continue
        if not kept_together(job, judgement.topology):
            found = _concrete(judged) if judged.witness is not None else _from_spec(judged)
            if found is not None:
                yield found


def _concrete(judged: JobJudgement) -> Finding | None:
    """With nodes: a witness placement, and a pair of ranks it puts into two zones."""
    job, witness = judged.job, judged.witness
    if witness is None:
        return None
    pair = split_pair(job, witness)
    if pair is None:
        return None
    (a, b), (zone_a, zone_b) = pair, (witness.zone_of(pair[0]), witness.zone_of(pair[1]))
    ring = ring_note(judged)
    odds = _odds(judged)
    return _REPORT.finding(
        f"{job.ref} can be split: {a} in {zone_name(zone_a)} and {b} in {zone_name(zone_b)} would train across the boundary",
        _labels(job),
        subject=job.ref,
        severity=None if _costly(job) else Severity.WARNING,
        notes=(
            *placement_notes(job, witness),
            *((ring,) if ring else ()),
            *((odds,) if odds else ()),
            *_price(judged),
            *_notes(job),
            *judged.caveats,
        ),
        help=_HELP,
    )


def _from_spec(judged: JobJudgement) -> Finding:
    """Without nodes: nothing in the manifests keeps the ranks together."""
    job = judged.job
    return _REPORT.finding(
        f"{job.ref} can be split: nothing in its manifest keeps its {ranked_pods(job)} ranked pods in one zone",
        _labels(job),
        subject=job.ref,
        severity=Severity.WARNING if _costly(job) and not _tpu(job) else Severity.INFO,
        confidence=Confidence.DEPENDS,
        notes=(
            *((judged.why,) if judged.why else ()),
            *(("a TPU slice never leaves its zone: only the slices of a multislice job can be apart",) if _tpu(job) else ()),
            *_notes(job),
            *judged.caveats,
        ),
        help=_HELP,
    )


def _costly(job: TrainingJob) -> bool:
    """Accelerators wait when the network does; a job on CPUs alone wastes little."""
    return any(accelerators(r) for r in ranked_roles(job))


def _tpu(job: TrainingJob) -> bool:
    return all(
        any("google.com/tpu" in as_map(dig(c.body, "resources", s)) for c in containers(r) for s in ("limits", "requests"))
        for r in ranked_roles(job)
    )


_HELP = (
    "pin every role to one zone (nodeSelector topology.kubernetes.io/zone), or require the zone of the job's own pods with "
    "podAffinity"
)


def _labels(job: TrainingJob) -> tuple[Label, ...]:
    """The pod spec of each role that nothing pins, the first one primary."""
    loose = [r for r in ranked_roles(job) if not pinned(r)] or list(ranked_roles(job))
    found = [label(_place(r), _why(r), primary=i == 0) for i, r in enumerate(loose[:4])]
    for role in loose:
        found += [
            label(s.location, "spreads over zones: it separates, it never brings together")
            for s in spreads(role)
            if s.topology_key in ZONE_KEYS
        ]
        preferred = preferred_zone_affinity(role)
        if preferred is not None:
            found.append(label(preferred, "a preference: the scheduler may ignore it"))
    return unique(found)


def _place(role: Role) -> Location:
    spec = role.template.spec
    for key in ("nodeSelector", "affinity"):
        if spec.get(key):
            return role.template.at("spec", key)
    return role.template.at("spec")


def _why(role: Role) -> str:
    zones = allowed_zones(role)
    if zones is not None:
        return f"{role.name} may use {zone_names(sorted(zones))}"
    if zone_affine(role):
        return f"{role.name} follows other pods, but may still end up in another zone"
    return f"{role.name} has no constraint on the zone"


def _odds(judged: JobJudgement) -> str | None:
    if judged.placement is None or not judged.placement.odds:
        return None
    odds, runs = judged.placement.odds, judged.placement.odds_runs
    shown = ", ".join(f"{round(share * 100)} % ({model})" for model, share in sorted(odds.items()))
    made = count(runs, "run")
    return f"share of split placements in a simulation of the scheduler's scores, {made} a tie-break model: {shown}"


def _price(judged: JobJudgement) -> Iterator[str]:
    """What the split costs: modelled, with the model's inputs."""
    price = judged.price
    if price is None or not price.split.cross_zone_edges:
        return
    yield (
        f"modelled, not measured: throughput {-price.throughput_loss:.0%}, accelerators busy {price.split.busy_share:.0%} "
        f"instead of {price.together.busy_share:.0%}, {price.split.cross_zone_bytes / 1e9:.3g} GB a step between zones "
        f"({'; '.join(price.inputs)})"
    )


def _notes(job: TrainingJob) -> Iterator[str]:
    yield (
        "what you will see: every pod Running, GPU utilisation that looks fine or sits near 40 %, and a step time that "
        "follows the slowest link between zones"
    )
    fabric = _fabric(job)
    if fabric:
        yield f"the job asks for {fabric}: RDMA and EFA cannot form across zones, so it falls back to TCP or hangs at init"


def _fabric(job: TrainingJob) -> str:
    for role in ranked_roles(job):
        for container in containers(role):
            for name in as_map(dig(container.body, "resources", "limits")):
                if str(name).startswith(_FAST_FABRIC) and not is_accelerator(str(name)):
                    return str(name)
    return ""


RULE = _REPORT.rule(
    check,
    what="The ranks of one job can land in different zones. With a node list the finding shows one placement the "
    "scheduler may really choose; without one it says what the manifests leave open (warning; info for a job "
    "without accelerators, and for TPU slices, which are zonal).",
    why="Every step waits for the slowest link. Across zones an all-reduce has a fraction of the bandwidth and many times "
    "the latency: throughput falls by 30 to 60 %, GPUs idle, and every gradient byte is billed. kube-scheduler does not "
    "merely risk this: with equal nodes in two zones it alternates between them.",
    bad="""\
spec:
  tolerations:
    - {key: nvidia.com/gpu, operator: Exists}
  containers: [...]            # GPU nodes exist in zones a and b
""",
    good="""\
spec:
  nodeSelector:
    topology.kubernetes.io/zone: zone-a
  tolerations:
    - {key: nvidia.com/gpu, operator: Exists}
  containers: [...]
""",
    fix="Pin each role to a zone that holds the whole job, or use required podAffinity on the zone key (coordinator -> "
    "workers, workers -> workers) limited to zones that are large enough, or the topology of the gang scheduler you "
    "already run. topologySpreadConstraints cannot do it: they only separate.",
    sources=(
        "https://github.com/skypilot-org/skypilot/issues/10056",
        "https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/",
        "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa.html",
    ),
)
