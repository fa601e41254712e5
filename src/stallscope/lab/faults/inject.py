"""Arming faults on a stage, and running it under them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from stallscope.collective.rehearsal import Repetition
from stallscope.lab.faults.base import Armed
from stallscope.lab.ranks import GroupRun, RankRun, Zygote
from stallscope.lab.stage import Stage, run_once

#: Seconds from the strike (or the start) to the look at sockets: long enough for backoff to show (telemetry.md §3.1).
OBSERVE_SECONDS = 4.0

Observe = Callable[[Stage], None]


@dataclass(slots=True)
class Injection:
    """Strikes when all present ranks finished the step, then calls `observe` once some seconds later."""

    stage: Stage
    armed: Sequence[Armed]
    observe: Observe | None = None
    observe_after: float = OBSERVE_SECONDS
    struck_at: dict[str, int] = field(default_factory=dict)
    observe_at: float = 0.0

    def prepare(self) -> None:
        """Everything that must be wrong before the ranks start."""
        for item in self.armed:
            item.fault.prepare(self.stage, item.args)
        if all(i.fault.strike is None for i in self.armed):
            self.observe_at = time.monotonic() + self.observe_after

    def __call__(self, zygote: Zygote, runs: Mapping[int, RankRun]) -> bool:
        done = min((len(r.steps) for r in runs.values()), default=0)
        for item in self.armed:
            strike = item.fault.strike
            if strike is not None and item.fault.name not in self.struck_at and done >= item.args.step():
                strike(self.stage, zygote, item.args)
                self.struck_at[item.fault.name] = done
                self.observe_at = time.monotonic() + self.observe_after
        if self.observe is not None and self.observe_at and time.monotonic() >= self.observe_at:
            self.observe(self.stage)
            self.observe = None
        return False


def run_with_faults(
    stage: Stage,
    zygote: Zygote,
    armed: Sequence[Armed],
    *,
    expected_step: float,
    observe: Observe | None = None,
    observe_after: float = OBSERVE_SECONDS,
) -> tuple[Repetition, GroupRun, Injection]:
    """
    One run of a fresh `stage` under `armed`. Raises UsageError for arguments that do not fit the job, LabError when a
    fault cannot be injected here.
    """
    injection = Injection(stage, armed, observe, observe_after)
    injection.prepare()
    try:
        repetition, group = run_once(stage, zygote, expected_step=expected_step, strike=injection)
    finally:
        stage.close()
    return repetition, group, injection
