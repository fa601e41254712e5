"""
The real job behind modelled figures: gradient bytes and compute time of one step, stated or derived, never tuned.

Without figures of the user's: a 7B model in bf16 whose GPUs take 65,536 tokens each per optimizer step. Compute is
6 x parameters x tokens (Kaplan et al. 2020, arXiv 2001.08361, §2.1) at 40 % of an A100's 312 TFLOP/s dense bf16 (its data
sheet; 40 % is a usual utilisation, an assumption). 65,536 tokens a GPU are 1M tokens a batch on 16 GPUs: GPT-3 XL's batch
(Brown et al. 2020, table 2.1).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from stallscope.collective.cost import StepModel
from stallscope.collective.profile import parse_bytes
from stallscope.model.workload import TrainingJob

GRADIENT_ANNOTATION = "stallscope.dev/gradient-bytes"
COMPUTE_ANNOTATION = "stallscope.dev/compute-ms"
PARAMETERS_ANNOTATION = "stallscope.dev/parameters"
PARAMETERS = 7e9
BYTES_PER_GRADIENT = 2
TOKENS_PER_GPU = 65_536
ASSUMED = "assumed: 7B parameters in bf16"
FLOPS = 312e12 * 0.4

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMBT]?)\Z", re.IGNORECASE)
_FACTOR = {"": 1.0, "K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}


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
    stated_size = parse_parameters(annotations.get(PARAMETERS_ANNOTATION, ""))
    stated_compute = (
        compute_seconds if compute_seconds is not None else _milliseconds(annotations.get(COMPUTE_ANNOTATION, ""))
    )
    gradients = stated_bytes or (stated_size or PARAMETERS) * BYTES_PER_GRADIENT
    parameters = gradients / BYTES_PER_GRADIENT
    compute = stated_compute if stated_compute is not None else 6 * parameters * TOKENS_PER_GPU / FLOPS
    origin = "stated" if stated_bytes else f"{stated_size:.3g} parameters in bf16, stated" if stated_size else ASSUMED
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


def parse_parameters(text: str) -> float | None:
    """A model size such as ``7B``, ``350M`` or ``1.3T`` as a number of parameters; None when `text` is none."""
    match = _SIZE.match(text.strip())
    return float(match[1]) * _FACTOR[match[2].upper()] if match else None


def _milliseconds(text: str) -> float | None:
    try:
        value = float(text.removesuffix("ms"))
    except ValueError:
        return None
    return value / 1000 if value >= 0 else None
