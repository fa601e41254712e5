"""
What a split costs: the alpha-beta model under the witness placement against the same job in one zone.

Everything is modelled, so the inputs travel with the figures. Where the user states nothing, an assumption is made and
named; it is never silently a number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from stallscope.collective.cost import Algorithm, Spot, StepCost, step_cost
from stallscope.collective.edges import interleaved
from stallscope.collective.links import DEFAULT_PROFILE, EgressPrice, LinkProfile
from stallscope.collective.workload import Workload, workload
from stallscope.judge.witness import Witness
from stallscope.model.workload import TrainingJob


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceFacts:
    """
    What the user states. `gradient_bytes` per step and rank, `compute_seconds` per step without communication,
    `overlap` 0..1, `egress` the price of cross-zone traffic (None: no money is printed).
    """

    gradient_bytes: float | None = None
    compute_seconds: float | None = None
    overlap: float = 0.0
    algorithm: Algorithm = Algorithm.RING
    profile: LinkProfile = DEFAULT_PROFILE
    egress: EgressPrice | None = None


class JobPrice(NamedTuple):
    """
    Modelled step of the witness (`split`) and of the same ranks in one zone (`together`). `inputs` states every figure
    the model used, one line each. `interleaved`: the rank order crosses zones more often than it must.
    """

    split: StepCost
    together: StepCost
    interleaved: bool
    inputs: tuple[str, ...]
    egress: EgressPrice | None = None

    @property
    def throughput_loss(self) -> float:
        """Share of throughput lost by the split, 0..1."""
        return 1.0 - self.together.step_seconds / self.split.step_seconds if self.split.step_seconds else 0.0

    @property
    def dollars_per_hour(self) -> float | None:
        """Cross-zone bytes of one hour at the stated price; None without a price."""
        if self.egress is None:
            return None
        return self.split.cross_zone_bytes_per_hour() / 1e9 * self.egress.per_gb


def price(job: TrainingJob, witness: Witness | None, facts: PriceFacts) -> JobPrice | None:
    """The price of `witness`; None when fewer than two ranks are placed."""
    ranked = sorted((p for p in job.pods if p.rank is not None), key=lambda p: p.rank or 0)
    if witness is None:
        return None
    placed = [(p, node) for p in ranked if (node := witness.nodes.get(p.name))]
    if len(placed) < 2:
        return None
    spots = [Spot(node=node, zone=witness.zone_of(pod.name)) for pod, node in placed]
    one_zone = [Spot(node=s.node, zone="together") for s in spots]
    work = workload(job, gradient_bytes=facts.gradient_bytes, compute_seconds=facts.compute_seconds)
    model = work.model._replace(overlap=facts.overlap, algorithm=facts.algorithm)
    return JobPrice(
        split=step_cost(spots, model, facts.profile),
        together=step_cost(one_zone, model, facts.profile),
        interleaved=interleaved([s.zone for s in spots]),
        inputs=_inputs(work, facts),
        egress=facts.egress,
    )


def _inputs(work: Workload, facts: PriceFacts) -> tuple[str, ...]:
    """What the model started from, one line each."""
    profile = facts.profile
    overlap = f", {facts.overlap:.0%} of it hidden behind compute" if facts.overlap else ""
    return (
        *work.inputs,
        f"{facts.algorithm} all-reduce over nodes, after a reduction inside each node{overlap}",
        f"links '{profile.name}': in zone {profile.zone.bandwidth * 8 / 1e9:g} Gbit/s, "
        f"across zones {profile.cross_zone.bandwidth * 8 / 1e9:g} Gbit/s a ring edge ({profile.cross_zone.source})",
    )
