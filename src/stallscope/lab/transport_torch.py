"""torch.distributed with gloo: the transport when torch is installed."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

_FR_SECONDS, _ENTRIES = 1.0, 3


class TorchTransport:
    """One gloo process group, made from the environment (MASTER_ADDR, RANK, …) as every launcher sets it."""

    label = "torch.distributed, gloo"

    def __init__(self, timeout_seconds: float) -> None:
        import torch
        import torch.distributed as dist

        torch.set_num_threads(1)
        dist.init_process_group("gloo", timeout=timedelta(seconds=timeout_seconds))
        self._torch, self._dist = torch, dist
        self._tensors: dict[int, list[Any]] = {}

    def all_reduce(self, bucket_bytes: list[int]) -> None:
        key = sum(bucket_bytes)
        if key not in self._tensors:
            self._tensors[key] = [self._torch.zeros(size // 4) for size in bucket_bytes]
        for work in [self._dist.all_reduce(t, async_op=True) for t in self._tensors[key]]:
            work.wait()

    def other_collective(self) -> None:
        """A broadcast from rank 0 that nobody else calls."""
        self._dist.broadcast(self._torch.zeros(1024), src=0)

    def record(self, report: Callable[[dict[str, Any]], None]) -> None:
        """
        The flight recorder, read once a second by a daemon thread: it answers while the main thread is blocked in a
        collective (reference telemetry.md §1.4), which is when it matters.
        """

        def watch() -> None:
            dump = getattr(self._torch._C._distributed_c10d, "_dump_fr_trace_json", None)  # torch 2.6 or later
            while dump is not None:
                with suppress(Exception):
                    trace = json.loads(dump(True, False))
                    report({"e": "fr", "status": trace.get("pg_status"), "last": trace.get("entries", [])[-_ENTRIES:]})
                time.sleep(_FR_SECONDS)

        threading.Thread(target=watch, daemon=True).start()

    def close(self) -> None:
        self._dist.destroy_process_group()
