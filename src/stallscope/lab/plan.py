"""What one rank does: a training loop of stated compute and stated gradient bytes, in lab units. Travels as JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

#: DDP's default bucket_cap_mb is 25 MiB (torch.nn.parallel.DistributedDataParallel).
DDP_BUCKET_BYTES = 25 * 1024 * 1024
#: Scaled-down gradients would make thousands of tiny buckets; beyond a few, more buckets measure Python, not the wire.
MAX_BUCKETS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Quirks:
    """
    What is wrong with one rank (faults). Times in seconds, `*_from` = first step affected. `input_seconds` is waiting for
    data before each step, `slow_seconds` added to each compute, `burners` busy processes on this rank's core,
    `spin` compute that burns CPU, `desync_step` the step in which it calls another collective.
    """

    input_seconds: float = 0.0
    slow_seconds: float = 0.0
    burners: int = 0
    spin: bool = False
    affected_from: int = 0
    desync_step: int | None = None
    idle_step: int | None = None
    idle_seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopPlan:
    """
    One rank's loop. `compute_seconds` a step, `gradient_bytes` all-reduced a step in `buckets` pieces, `warmup` steps not
    counted, `timeout_seconds` of each collective and of the rendezvous. `record`: report
    the flight recorder once a second (torch only).
    """

    compute_seconds: float
    gradient_bytes: int
    buckets: int = 2
    steps: int = 10
    warmup: int = 2
    timeout_seconds: float = 30.0
    record: bool = False
    quirks: Quirks = field(default_factory=Quirks)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def plan_from_json(body: dict[str, Any]) -> LoopPlan:
    """The inverse of `LoopPlan.to_json`."""
    return LoopPlan(**{**body, "quirks": Quirks(**body["quirks"])})


def bucket_count(real_gradient_bytes: float, ranks: int) -> int:
    """
    As many buckets as DDP would make, up to `MAX_BUCKETS`; fewer past 8 ranks, where a ring's many turns on few cores cost
    more than the wire.
    """
    most = MAX_BUCKETS if ranks <= 8 else max(1, 16 // ranks)
    return max(1, min(most, round(real_gradient_bytes / DDP_BUCKET_BYTES)))
