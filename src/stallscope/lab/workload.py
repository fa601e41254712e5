"""
The real job that the lab scales down: gradient bytes and compute time, stated or derived, never tuned.

Without figures of the user's: a 7B model in bf16 whose GPUs take 65,536 tokens each per optimizer step. Compute is
6 x parameters x tokens (Kaplan et al. 2020, arXiv 2001.08361, §2.1) at 40 % of an A100's 312 TFLOP/s dense bf16 (its data
sheet; 40 % is a usual utilisation, an assumption). 65,536 tokens a GPU are 1M tokens a batch on 16 GPUs: GPT-3 XL's batch
(Brown et al. 2020, table 2.1).
"""

from __future__ import annotations

from dataclasses import dataclass

from stallscope.collective.cost import Spot, StepModel, step_cost
from stallscope.collective.links import LinkProfile
from stallscope.collective.profile import parse_bytes
from stallscope.collective.rehearsal import Modelled, Scale
from stallscope.judge.price import COMPUTE_ANNOTATION, GRADIENT_ANNOTATION
from stallscope.model.workload import TrainingJob

PARAMETERS = 7e9
BYTES_PER_GRADIENT = 2
TOKENS_PER_GPU = 65_536
FLOPS = 312e12 * 0.4

#: A lab step should be long beside the machine's own delays, and short enough to repeat.
TARGET_STEP_SECONDS = 0.3
#: Share of what the machine carries unshaped that a shaped link may use, so that the link is the bottleneck, not the CPU.
HEADROOM = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """One step of the real job, and where the figures come from."""

    gradient_bytes: float
    compute_seconds: float
    inputs: tuple[str, ...]

    @property
    def model(self) -> StepModel:
        return StepModel(gradient_bytes=self.gradient_bytes, compute_seconds=self.compute_seconds)


def workload(job: TrainingJob, *, gradient_bytes: float | None = None, compute_seconds: float | None = None) -> Workload:
    """What the user stated (arguments, then the job's annotations), completed by the assumptions above."""
    annotations = job.source.annotations
    stated_bytes = gradient_bytes or parse_bytes(annotations.get(GRADIENT_ANNOTATION, ""))
    stated_compute = (
        compute_seconds if compute_seconds is not None else _milliseconds(annotations.get(COMPUTE_ANNOTATION, ""))
    )
    gradients = stated_bytes or PARAMETERS * BYTES_PER_GRADIENT
    parameters = gradients / BYTES_PER_GRADIENT
    compute = stated_compute if stated_compute is not None else 6 * parameters * TOKENS_PER_GPU / FLOPS
    origin = "stated" if stated_bytes else "assumed: 7B parameters in bf16"
    how = (
        "stated"
        if stated_compute is not None
        else f"6 x {parameters:.3g} parameters x 65,536 tokens / (40 % of 312 TFLOP/s)"
    )
    return Workload(
        gradient_bytes=gradients,
        compute_seconds=compute,
        inputs=(f"gradients {gradients / 1e9:.3g} GB a step ({origin})", f"compute {compute:.3g} s a step ({how})"),
    )


def _milliseconds(text: str) -> float | None:
    try:
        value = float(text.removesuffix("ms"))
    except ValueError:
        return None
    return value / 1000 if value >= 0 else None


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
