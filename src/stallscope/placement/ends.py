"""How a job can end up."""

from __future__ import annotations

from typing import NamedTuple


class End(NamedTuple):
    """A way to end: zones of the counted pods, and how many pods are bound (`low`..`high`)."""

    zones: frozenset[str]
    low: int
    high: int
