"""One placement of one job, built and ready to run: the thing a rehearsal repeats and a fault tampers with."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Protocol

from stallscope.collective.rehearsal import Repetition
from stallscope.lab.cast import Cast
from stallscope.lab.firewall import Drop, Firewall, Segments, install
from stallscope.lab.names import write_names
from stallscope.lab.netns import PocketCluster, sent_bytes
from stallscope.lab.plan import LoopPlan, Quirks
from stallscope.lab.ranks import GroupRun, RankOrder, RankRun, Zygote
from stallscope.lab.shaper import Shape, shape

#: How long a group may take to form, and the shortest silence that counts as a stall. gloo joins 5 ranks in about 0.7 s.
JOIN_SECONDS, STALL_SECONDS = 10.0, 5.0


class Helper(Protocol):
    """Something a fault keeps running."""

    def close(self) -> None:
        """End it."""


@dataclass(slots=True, kw_only=True)
class Stage:
    """
    A built placement. Everything a fault may change is mutable here: `drops` (call `enforce` after a change), `quirks` and
    `env` by rank, `broken_names`, `cores` by rank, `no_names` (pods without DNS), `absent` ranks, `plan`, `shape`.
    """

    label: str
    cast: Cast
    segments: Segments
    cluster: PocketCluster
    directory: Path
    plan: LoopPlan
    shape: Shape
    drops: list[Drop] = field(default_factory=list)
    quirks: dict[int, Quirks] = field(default_factory=dict)
    env: dict[int, dict[str, str]] = field(default_factory=dict)
    cores: dict[int, tuple[int, ...]] = field(default_factory=dict)
    broken_names: bool = False
    no_names: dict[str, str] = field(default_factory=dict)
    absent: set[int] = field(default_factory=set)
    helpers: list[Helper] = field(default_factory=list)
    command: tuple[str, ...] = ()
    firewall: Firewall = field(default_factory=lambda: Firewall(drops=()))

    @property
    def size(self) -> int:
        return len(self.cast.seats)

    def quirks_of(self, rank: int) -> Quirks:
        """The rank's quirks so far."""
        return self.quirks.get(rank, Quirks())

    def close(self) -> None:
        """End what faults started beside the ranks."""
        while self.helpers:
            self.helpers.pop().close()

    def pod_of(self, rank: int) -> str:
        """The pod that hosts `rank`."""
        return self.cast.seats[rank].pod

    def enforce(self) -> None:
        """Install `drops`, atomically per node."""
        self.firewall = install(self.cluster, self.drops)

    def reshape(self) -> tuple[str, ...]:
        """Apply `shape`; what could not be shaped, in words."""
        return shape(self.cluster, self.shape)

    def orders(self) -> list[RankOrder]:
        """What to start, one order a rank; one a pod when the user's own command runs."""
        self.directory.mkdir(exist_ok=True)
        names = write_names(self.directory, self.cast.spec, self.cluster.plan.ips, broken=self.broken_names)
        nothing = names
        if self.no_names:
            (self.directory / "none").mkdir(exist_ok=True)
            nothing = write_names(self.directory / "none", self.cast.spec, {}, broken=True)
        seats = [s for s in self.cast.seats if not self.command or s.env["LOCAL_RANK"] == "0"]
        return [
            RankOrder(
                rank=seat.rank,
                pod=seat.pod,
                env={**seat.env, **self.env.get(seat.rank, {})},
                plan=None if self.command else replace(self.plan, quirks=self.quirks_of(seat.rank)),
                command=self.command,
                files=nothing if seat.pod in self.no_names else names,
                cores=self.cores.get(seat.rank, ()),
            )
            for seat in seats
            if seat.rank not in self.absent
        ]


Strike = Callable[[Zygote, Mapping[int, RankRun]], bool]


@dataclass(slots=True)
class _Watch:
    """Ends a run that makes no progress, and remembers when the loop began (for CPU and bytes)."""

    stall_seconds: float
    join_seconds: float
    strike: Strike | None
    last_count: int = -1
    last_time: float = field(default_factory=time.monotonic)
    cpu_start: tuple[float, float] | None = None
    stalled: bool = False

    def __call__(self, zygote: Zygote, runs: Mapping[int, RankRun]) -> bool:
        joined = all(r.init_seconds is not None for r in runs.values())
        if joined and self.cpu_start is None:
            self.cpu_start = _cpu_times()
        count = sum(len(r.steps) + (r.init_seconds is not None) + r.finished for r in runs.values())
        now = time.monotonic()
        if count != self.last_count:
            self.last_count, self.last_time = count, now
        if self.strike is not None and self.strike(zygote, runs):
            return True
        limit = self.stall_seconds if joined else self.join_seconds
        self.stalled = now - self.last_time > limit
        return self.stalled


def run_once(
    stage: Stage, zygote: Zygote, *, expected_step: float, strike: Strike | None = None
) -> tuple[Repetition, GroupRun]:
    """One run of the loop. `expected_step` (s) sets how much patience is reasonable; `strike` is a fault's hook."""
    trunks = stage.cluster.links_of("trunk")
    before = sent_bytes(trunks)
    watch = _Watch(max(STALL_SECONDS, 12 * expected_step), JOIN_SECONDS, strike)
    total = stage.plan.steps + stage.plan.warmup
    limit = JOIN_SECONDS + 4 * total * expected_step + 3 * watch.stall_seconds
    if stage.command:
        watch.join_seconds = limit = 300.0
    group = zygote.run(stage.cluster, stage.orders(), limit_seconds=limit, watch=watch)
    cpu = _busy_share(watch.cpu_start, _cpu_times())
    after = sent_bytes(trunks)
    moved = sum(after[end] - before[end] for end in after)
    return _repetition(stage.plan, group, moved if stage.command else moved / total, cpu, stage.command), group


def _repetition(plan: LoopPlan, group: GroupRun, moved: float, cpu: float, command: tuple[str, ...]) -> Repetition:
    ended = _ended(group, bool(command))
    complaints = tuple(f"rank {r.rank}: {r.error}" for r in group.ranks if r.error)
    joined = [r.init_seconds for r in group.ranks if r.init_seconds is not None]
    base = Repetition(
        ended=ended,
        complaints=complaints,
        cpu_busy=cpu,
        cross_zone_bytes=moved,
        init_seconds=max(joined) if len(joined) == len(group.ranks) else None,
        output=tuple((r.pod, r.log) for r in group.ranks) if command else (),
    )
    if ended or command:
        return base
    steps = step_times(group, plan.warmup)
    counted = [s for r in group.ranks for s in r.steps[plan.warmup :]]
    reduce_seconds = median(
        min(r.steps[i].reduce for r in group.ranks) for i in range(plan.warmup, plan.warmup + plan.steps)
    )
    size = len(group.ranks)
    return replace(
        base,
        steps=tuple(steps),
        busy=sum(s.compute for s in counted) / sum(s.seconds for s in counted),
        reduce_seconds=reduce_seconds,
        bus_bandwidth=2 * (size - 1) / size * plan.gradient_bytes / reduce_seconds if reduce_seconds else 0.0,
    )


def step_times(group: GroupRun, first: int) -> list[float]:
    """Whole-job step times from step `first` (>= 1) on: from the moment all ranks ended one step to the next such moment."""
    complete = min(len(r.steps) for r in group.ranks)
    ends = [max(r.steps[i].start + r.steps[i].seconds for r in group.ranks) for i in range(complete)]
    return [ends[i] - ends[i - 1] for i in range(max(1, first), complete)]


def _ended(group: GroupRun, command: bool) -> str:
    """Empty when every rank did its work, else what stopped the job, in words."""
    bad = [r for r in group.ranks if r.exit_code not in (0, None)]
    if command:
        if group.timed_out:
            return "your command was still running when the time was up"
        return f"your command ended with {bad[0].exit_code} in pod {bad[0].pod}" if bad else ""
    if all(r.finished for r in group.ranks):
        return ""
    joined = sum(r.init_seconds is not None for r in group.ranks)
    if joined < len(group.ranks):
        return f"never started: {joined} of {len(group.ranks)} ranks joined the group within {group.seconds:.0f} s"
    done = min(len(r.steps) for r in group.ranks)
    first = next((r for r in group.ranks if r.error), None)
    if first:
        return f"failed after {done} steps: rank {first.rank}: {first.error}"
    gone = next((r for r in group.ranks if r.exit_code is not None and not r.finished), None)
    if gone:
        return f"failed after {done} steps: rank {gone.rank} ended with {gone.exit_code}"
    return f"stalled after {done} steps: no rank finished a step for {STALL_SECONDS:.0f} s or more"


def _cpu_times() -> tuple[float, float]:
    """(busy, total) CPU time of the machine, proc(5) /proc/stat."""
    numbers = list(map(int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]))
    idle = numbers[3] + numbers[4]
    return float(sum(numbers) - idle), float(sum(numbers))


def _busy_share(start: tuple[float, float] | None, end: tuple[float, float]) -> float:
    if start is None or end[1] <= start[1]:
        return 0.0
    return (end[0] - start[0]) / (end[1] - start[1])
