"""
What a rehearsal measured, as plain data: the lab fills it, the renderers print it, CI gates on it.

Times in seconds and bytes as measured in the lab. The lab is the real job at two stated scales: rates and bytes divided by
`Scale.rate`, times and bytes divided by `Scale.time`; ratios (idle share, throughput) need no conversion.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from stallscope.model.traffic import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Repeated measurements of one quantity."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        return median(self.values) if self.values else 0.0

    @property
    def low(self) -> float:
        return min(self.values, default=0.0)

    @property
    def high(self) -> float:
        return max(self.values, default=0.0)

    @property
    def noise(self) -> float:
        """Half the range over the median, 0..1: what two runs may differ by chance."""
        return (self.high - self.low) / 2 / self.median if self.median else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeResult:
    """
    One ordered pair and port: what was judged and what a real connect met (``open``, ``silent``, ``refused``).
    `agrees` None: the verdict was unjudged, so there is nothing to compare. `reason` names the deciding rule.
    """

    source: str
    destination: str
    port: int
    zones: tuple[str, str]
    judged: Outcome
    measured: str
    agrees: bool | None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DropResult:
    """Packets one policy rule dropped between one pair, by nft counter."""

    source: str
    destination: str
    reason: str
    packets: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Repetition:
    """
    One run of the training loop. `steps` are whole-job step times (the slowest rank's), `busy` the mean share of a step
    that ranks computed, `reduce_seconds` per step. A command of the user's has no steps: `cross_zone_bytes` is then of the
    whole run and `output` the end of each pod's log. `ended` is empty for a run that finished, else what stopped it.
    """

    steps: tuple[float, ...] = ()
    busy: float = 0.0
    reduce_seconds: float = 0.0
    bus_bandwidth: float = 0.0
    cross_zone_bytes: float = 0.0
    init_seconds: float | None = None
    cpu_busy: float = 0.0
    ended: str = ""
    complaints: tuple[str, ...] = ()
    output: tuple[tuple[str, str], ...] = ()

    @property
    def finished(self) -> bool:
        return not self.ended


@dataclass(frozen=True, slots=True, kw_only=True)
class Modelled:
    """The cost model's figures for the same placement, in lab units, to stand beside the measured ones."""

    step_seconds: float
    idle_share: float
    cross_zone_bytes: float
    cross_zone_edges: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PodPlacement:
    """Where one pod stood."""

    pod: str
    node: str
    zone: str
    rank: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementResult:
    """One placement of one job (`label` ``split``, ``fixed``…), measured."""

    label: str
    placement: tuple[PodPlacement, ...]
    edges: tuple[EdgeResult, ...] = ()
    drops: tuple[DropResult, ...] = ()
    repetitions: tuple[Repetition, ...] = ()
    modelled: Modelled | None = None
    up_seconds: float = 0.0
    not_run: str = ""

    @property
    def zones(self) -> tuple[str, ...]:
        return tuple(sorted({p.zone for p in self.placement}))

    @property
    def denied(self) -> tuple[EdgeResult, ...]:
        return tuple(e for e in self.edges if e.measured != "open")

    @property
    def disagreements(self) -> tuple[EdgeResult, ...]:
        return tuple(e for e in self.edges if e.agrees is False)

    @property
    def finished(self) -> tuple[Repetition, ...]:
        return tuple(r for r in self.repetitions if r.finished)

    @property
    def timed(self) -> tuple[Repetition, ...]:
        """The finished runs that have step times."""
        return tuple(r for r in self.finished if r.steps)

    @property
    def stalled(self) -> bool:
        """The job did not run: every repetition was stopped by something."""
        return bool(self.repetitions) and not self.finished

    @property
    def step(self) -> Spread:
        """Median step time of each finished repetition."""
        return Spread(values=tuple(median(r.steps) for r in self.timed))

    @property
    def p95(self) -> float:
        """95th percentile over the steps of all finished repetitions (nearest rank)."""
        return percentile([s for r in self.finished for s in r.steps], 0.95)

    @property
    def idle(self) -> Spread:
        return Spread(values=tuple(1.0 - r.busy for r in self.timed))

    @property
    def bus_bandwidth(self) -> Spread:
        return Spread(values=tuple(r.bus_bandwidth for r in self.timed))

    @property
    def cross_zone_bytes(self) -> Spread:
        return Spread(values=tuple(r.cross_zone_bytes for r in self.finished))


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Lab = real / scale. `machine_rate` is what one ring edge carried unshaped, bytes/s: what the scale was chosen from."""

    rate: float
    time: float
    machine_rate: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsal:
    """
    The report. `inputs` states every figure of the real job, one line each; `said` what could not be done as asked.
    `transport` is how gradients travelled.
    """

    job: str
    transport: str
    profile: str
    scale: Scale
    results: tuple[PlacementResult, ...]
    inputs: tuple[str, ...] = ()
    said: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()

    def result(self, label: str) -> PlacementResult | None:
        return next((r for r in self.results if r.label == label), None)

    @property
    def disagreements(self) -> tuple[EdgeResult, ...]:
        return tuple(e for r in self.results for e in r.disagreements)

    @property
    def throughput_loss(self) -> float | None:
        """Share of the last placement's throughput that the first loses (1 when it stalls); None when not comparable."""
        if len(self.results) < 2:
            return None
        first, last = self.results[0], self.results[-1]
        if not last.timed or (first.finished and not first.timed):
            return None
        return 1.0 - last.step.median / first.step.median if first.timed else 1.0


def percentile(values: Sequence[float], share: float) -> float:
    """Nearest-rank percentile; 0 for no values."""
    ordered = sorted(values)
    return ordered[max(0, min(len(ordered) - 1, -int(-share * len(ordered) // 1) - 1))] if ordered else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultRecord:
    """
    One labelled run of the public benchmark: what was wrong (`label`, `culprits`: the truth) and what could be seen.
    `sockets` is `ss -tineO` per pod taken after the fault struck, `events` each rank's own account,
    `flight_recorder` torch's status and last entries a rank.
    """

    fault: str
    label: str
    args: dict[str, Any]
    culprits: tuple[str, ...]
    transport: str
    ranks: int
    struck_at_step: int | None
    started: bool
    steps_before: int
    steps_after: int
    step_before: float
    step_after: float
    outcome: str
    errors: dict[str, str] = field(default_factory=dict)
    sockets: dict[str, str] = field(default_factory=dict)
    events: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    flight_recorder: dict[str, dict[str, Any]] = field(default_factory=dict)
    seconds: float = 0.0
