"""How the real job is scaled down to what this machine carries, and what the cost model says of it in lab units."""

from __future__ import annotations

from stallscope.collective.cost import Spot, step_cost
from stallscope.collective.links import LinkProfile
from stallscope.collective.rehearsal import Modelled, Scale
from stallscope.collective.workload import Workload

#: A lab step should be long beside the machine's own delays, and short enough to repeat.
TARGET_STEP_SECONDS = 0.3
#: Share of what the machine carries unshaped that a shaped link may use, so that the link is the bottleneck, not the CPU.
HEADROOM = 0.25


def choose_scale(work: Workload, profile: LinkProfile, ranks: int, machine_rate: float) -> Scale:
    """
    The two factors. Rates: the fastest shaped class becomes `HEADROOM` of what one ring edge carried on this machine.
    Times: the modelled step of the ranks in one zone becomes `TARGET_STEP_SECONDS` (longer past 8 ranks, whose rings take
    more turns).
    """
    fastest = max(profile.zone.bandwidth, profile.cross_zone.bandwidth)
    rate = max(1.0, fastest / (machine_rate * HEADROOM))
    spots = [Spot(node=str(i), zone="one") for i in range(ranks)]
    step = step_cost(spots, work.model, profile).step_seconds
    return Scale(rate=rate, time=max(1.0, step / (TARGET_STEP_SECONDS * max(1.0, ranks / 8))), machine_rate=machine_rate)


def modelled(work: Workload, profile: LinkProfile, spots: list[Spot], scale: Scale) -> Modelled:
    """The cost model's answer for `spots`, in lab units."""
    cost = step_cost(spots, work.model, profile)
    return Modelled(
        step_seconds=cost.step_seconds / scale.time,
        idle_share=cost.idle_share,
        cross_zone_bytes=cost.cross_zone_bytes / scale.rate / scale.time,
        cross_zone_edges=cost.cross_zone_edges,
    )
