"""torch.distributed with gloo: the transport when torch is installed."""

from __future__ import annotations

from datetime import timedelta
from typing import Any


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

    def close(self) -> None:
        self._dist.destroy_process_group()
