"""What a fix is, as data."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from stallscope.remedy.ops import Op


class Strategy(StrEnum):
    """How a job is kept in one zone (reference: placement.md §4)."""

    AUTO = "auto"
    PIN = "pin"  # P1: nodeSelector on the zone
    PORTABLE = "portable"  # P2: required podAffinity, limited to zones that hold the job
    NATIVE = "native"  # P3: the topology of the gang or queue already in use


class Coordinator(StrEnum):
    """Where roles without accelerators go once the job has one zone."""

    AUTO = "auto"  # CPU nodes of the zone when there are any, else the GPU nodes
    GPU_NODES = "gpu-nodes"
    CPU_POOL = "cpu-pool"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What the user chose. `zone` empty: the best zone that holds the job."""

    strategy: Strategy = Strategy.AUTO
    zone: str = ""
    coordinator: Coordinator = Coordinator.AUTO
    spread_hosts: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """
    One fix. `title` says what it does, `job` whom it is for, `rules` which findings it answers, `ops` how.
    `assumptions` are what it takes for granted, `unproved` what judging the patched input cannot show.
    """

    slug: str
    title: str
    job: str
    rules: tuple[str, ...]
    ops: tuple[Op, ...]
    assumptions: tuple[str, ...] = ()
    unproved: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfixed:
    """A finding without a patch: why, and what a person can do (`hint` may be a snippet to paste)."""

    job: str
    rules: tuple[str, ...]
    reason: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything planned in one round."""

    remedies: tuple[Remedy, ...] = ()
    unfixed: tuple[Unfixed, ...] = ()

    def __add__(self, other: Plan) -> Plan:
        return Plan(self.remedies + other.remedies, self.unfixed + other.unfixed)
