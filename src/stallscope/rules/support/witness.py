"""A placement in words: which pods land in which zone, on which node."""

from __future__ import annotations

from collections.abc import Mapping

from stallscope.collective.edges import crossings, interleaved, ring
from stallscope.judge.result import JobJudgement, Witness
from stallscope.model.workload import TrainingJob
from stallscope.rules.support.words import count, listed

_ROWS = 4


def by_zone(job: TrainingJob, witness: Witness) -> Mapping[str, list[str]]:
    """Zone -> ``pod on node``, in the order of the job's pods; pods without a zone are left out."""
    found: dict[str, list[str]] = {}
    for pod in job.pods:
        zone = witness.zone_of(pod.name)
        if zone:
            found.setdefault(zone, []).append(f"{pod.name} on {witness.nodes[pod.name]}")
    return dict(sorted(found.items()))


def placement_notes(job: TrainingJob, witness: Witness) -> tuple[str, ...]:
    """The placement as a table: one line a zone, then the pods that stay Pending."""
    lines = [f"  {zone}: {listed(pods, _ROWS)}" for zone, pods in by_zone(job, witness).items()]
    pending = [p.name for p in job.pods if witness.nodes.get(p.name) is None]
    if pending:
        lines.append(f"  Pending: {listed(pending, _ROWS)}")
    return ("one placement the scheduler may choose:\n" + "\n".join(lines),) if lines else ()


def rank_zones(job: TrainingJob, witness: Witness) -> tuple[str, ...]:
    """The zone of each pod that hosts ranks, in rank order."""
    ranked = sorted((p for p in job.pods if p.rank is not None), key=lambda p: p.rank or 0)
    return tuple(witness.zone_of(p.name) for p in ranked)


def split_pair(job: TrainingJob, witness: Witness) -> tuple[str, str] | None:
    """Two neighbouring pods of the ring (else any two) in different zones."""
    ranked = sorted((p for p in job.pods if p.rank is not None), key=lambda p: p.rank or 0) or list(job.pods)
    placed = [p.name for p in ranked if witness.zone_of(p.name)]
    for a, b in zip(placed, placed[1:] + placed[:1], strict=True):
        if witness.zone_of(a) != witness.zone_of(b):
            return a, b
    return None


def ring_note(judged: JobJudgement) -> str | None:
    """How many ring edges cross zones in the witness, and whether the ranks are interleaved."""
    if judged.witness is None:
        return None
    zones = rank_zones(judged.job, judged.witness)
    edges = ring(len(zones))
    crossing = crossings(edges, zones)
    if not crossing:
        return None
    text = f"{crossing} of {count(len(edges), 'ring edge')} between pods cross a zone"
    if interleaved(zones):
        text += f": the ranks are interleaved over the zones ({_order(zones)}), the worst order for a ring"
    return text


def _order(zones: tuple[str, ...]) -> str:
    shown = ", ".join(z or "?" for z in zones[:8])
    return shown + (", ..." if len(zones) > 8 else "")
