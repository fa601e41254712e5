"""
The training loop a rank runs: compute of a stated length, then an all-reduce of the gradients in DDP-like buckets.

Reports one JSON line per event on the descriptor it is given. Runs in the rank's process, inside the pod's namespaces.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from typing import Any, Protocol

from stallscope.lab.plan import LoopPlan

Report = Callable[[dict[str, Any]], None]


class Transport(Protocol):
    """How gradients travel."""

    def all_reduce(self, bucket_bytes: list[int]) -> None:
        """Reduce buckets of these sizes over all ranks; returns when all are done."""

    def other_collective(self) -> None:
        """Call a collective the peers do not expect (desync)."""

    def record(self, report: Report) -> None:
        """Begin to report the transport's own record of its collectives, where it keeps one."""

    def close(self) -> None:
        """Leave the group."""


def reporter(fd: int) -> Report:
    """A function that writes one event as a JSON line; a reader that went away is no error."""

    def report(event: dict[str, Any]) -> None:
        try:
            os.write(fd, json.dumps(event).encode() + b"\n")
        except OSError:
            return

    return report


def train(plan: LoopPlan, connect: Callable[[float], Transport], report: Report) -> None:
    """
    Join the group, run the loop, leave. Events: ``init`` (seconds), ``step`` (index, compute, reduce, input seconds,
    start on CLOCK_MONOTONIC), ``error`` (message, step), ``end``.
    """
    step = -1
    try:
        start = time.monotonic()
        transport = connect(plan.timeout_seconds)
        report({"e": "init", "seconds": time.monotonic() - start})
        if plan.record:
            transport.record(report)
        for step in range(plan.warmup + plan.steps):
            report(_step(plan, step, transport))
        report({"e": "end"})
        transport.close()
    except Exception as error:  # whatever the transport raises is a result here, not a failure of the lab
        report({"e": "error", "step": step, "message": _one_line(error)})


def _step(plan: LoopPlan, step: int, transport: Transport) -> dict[str, Any]:
    quirks = plan.quirks
    affected = step >= quirks.affected_from
    begin = time.monotonic()
    wait = quirks.input_seconds if affected else 0.0
    wait += quirks.idle_seconds if step == quirks.idle_step else 0.0
    if wait:
        time.sleep(wait)
    ready = time.monotonic()
    compute(plan.compute_seconds, spin=quirks.spin)
    if affected and quirks.slow_seconds:
        time.sleep(quirks.slow_seconds)
    computed = time.monotonic()
    if step == quirks.desync_step:
        transport.other_collective()
    transport.all_reduce(bucket_sizes(plan.gradient_bytes, plan.buckets))
    done = time.monotonic()
    return {
        "e": "step",
        "i": step,
        "start": begin,
        "input": ready - begin,
        "compute": computed - ready,
        "reduce": done - computed,
    }


def compute(seconds: float, *, spin: bool) -> None:
    """Stand in for forward and backward: a GPU computes while the CPU sleeps; `spin` burns that much CPU time instead."""
    if not spin:
        time.sleep(seconds)
        return
    limit = time.thread_time() + seconds
    while time.thread_time() < limit:
        pass


def bucket_sizes(total: int, buckets: int) -> list[int]:
    """`total` bytes in `buckets` near-equal pieces, each a multiple of 4 (float32) and at least 4."""
    each = max(4, total // buckets // 4 * 4)
    return [each] * buckets


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}"[:400]
