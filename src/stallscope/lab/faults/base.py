"""
What a fault is: a way to tamper with a stage, before the ranks start or when they reached a step, and the truth about it.

Labels are the classes of the diagnosis (reference telemetry.md §3.2), so that a record says what a diagnosis should find.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from stallscope.errors import UsageError
from stallscope.lab.kernel import entered
from stallscope.lab.ranks import Zygote
from stallscope.lab.shaper import run_nft
from stallscope.lab.stage import Stage

TABLE = "stsc_fault"


class Label(StrEnum):
    """Ground truth."""

    HEALTHY = "healthy"
    DENIED = "policy-denied"
    MTU = "mtu-blackhole"
    LOSS = "loss"
    SLOW_LINK = "slow-link"
    STRAGGLER = "straggler"
    INPUT = "input-bound"
    FROZEN = "frozen"
    CRASHED = "crashed"
    DESYNC = "desync"
    RENDEZVOUS = "rendezvous"
    DNS = "dns"
    INTERFACE = "wrong-interface"
    RESET = "idle-reset"


class Expect(StrEnum):
    """How a run under the fault ends; the bench checks it, so that a record never lies about what happened."""

    FINISHES = "finishes"
    SLOWER = "slower"
    NEVER_STARTS = "never-starts"
    STOPS = "stops"  # stalls or fails after it started


@dataclass(frozen=True, slots=True)
class Args:
    """The arguments of one use of a fault; every accessor raises UsageError for a value that is none."""

    fault: str
    values: Mapping[str, str]

    def number(self, name: str) -> float:
        try:
            value = float(self.values[name])
        except ValueError:
            raise UsageError(f"--fault {self.fault}: {name}={self.values[name]!r} is no number") from None
        if not 0 <= value < 1e9:
            raise UsageError(f"--fault {self.fault}: {name}={self.values[name]} is out of range")
        return value

    def rank(self, name: str, stage: Stage) -> int:
        value = int(self.number(name))
        if value >= stage.size:
            raise UsageError(f"--fault {self.fault}: {name}={value}: the job has ranks 0-{stage.size - 1}")
        return value

    def step(self) -> int:
        return int(self.number("step"))


Prepare = Callable[[Stage, Args], None]
Strike = Callable[[Stage, Zygote, Args], None]
Culprits = Callable[[Stage, Args], tuple[str, ...]]


def nothing(_stage: Stage, _args: Args) -> None:
    """A fault that needs no preparation."""


def nobody(_stage: Stage, _args: Args) -> tuple[str, ...]:
    """A fault without culprit."""
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """
    One fault. `prepare` runs before the ranks start, `strike` once all ranks finished step ``step`` of the arguments.
    `culprits` names pods, pairs (``a -> b``) or nodes, as the truth a diagnosis is measured against.
    """

    name: str
    label: Label
    help: str
    expect: Expect
    defaults: Mapping[str, str] = field(default_factory=dict)
    prepare: Prepare = nothing
    strike: Strike | None = None
    culprits: Culprits = nobody


@dataclass(frozen=True, slots=True)
class Armed:
    """A fault with its arguments."""

    fault: Fault
    args: Args

    def __str__(self) -> str:
        given = ",".join(f"{k}={v}" for k, v in self.args.values.items())
        return f"{self.fault.name}:{given}" if given else self.fault.name


def rank_culprit(name: str = "rank") -> Culprits:
    """The pod of the rank in argument `name`."""
    return lambda stage, args: (stage.pod_of(args.rank(name, stage)),)


def pair_culprit(stage: Stage, args: Args) -> tuple[str, ...]:
    """The ordered pair of arguments ``from`` and ``to``."""
    a, b = pair(stage, args)
    return (f"{a} -> {b}",)


def pair(stage: Stage, args: Args) -> tuple[str, str]:
    """Pods of the ranks ``from`` and ``to``. Raises UsageError when they are one pod."""
    a, b = stage.pod_of(args.rank("from", stage)), stage.pod_of(args.rank("to", stage))
    if a == b:
        raise UsageError(f"--fault {args.fault}: ranks {args.values['from']} and {args.values['to']} share pod {a}")
    return a, b


def tamper(stage: Stage, rules: Mapping[tuple[str, str], str]) -> None:
    """
    Put nft statements into the forward path, before the policies: (source pod, destination pod) -> what to do with their
    packets, enforced at the source's node. Replaces what an earlier fault put there. Raises LabError when nft refuses.
    """
    nodes = {p.name: p.node for p in stage.cast.spec.pods}
    by_node: dict[str, list[str]] = {}
    for (source, destination), statement in rules.items():
        match = f"ip saddr {stage.cluster.ips[source]} ip daddr {stage.cluster.ips[destination]}"
        by_node.setdefault(nodes[source], []).append(f"    {match} {statement}")
    for node, lines in by_node.items():
        body = "\n".join(lines)
        text = f"""add table inet {TABLE}
delete table inet {TABLE}
table inet {TABLE} {{
  chain forward {{
    type filter hook forward priority -10
    policy accept
{body}
  }}
}}
"""
        with entered(stage.cluster.nodes[node].fd):
            run_nft(text)


def both_ways(a: str, b: str, statement: str) -> dict[tuple[str, str], str]:
    """The same statement for either direction."""
    return {(a, b): statement, (b, a): statement}
