"""How a job can end up."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class End:
    """A way to end: zones of the counted pods, and how many pods are bound (`low`..`high`)."""

    zones: frozenset[str]
    low: int
    high: int
