"""
The public benchmark: every fault once (or N times) on a small job, with its truth and what could be seen from outside.

A record holds no verdict of ours: it is material for any diagnosis. Sockets are read with `ss` in each pod some seconds
after the fault struck, because that is what a sidecar or a node agent can see without touching the job.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from stallscope.collective.links import Link
from stallscope.collective.rehearsal import FaultRecord, Repetition
from stallscope.lab import state
from stallscope.lab.cast import Cast, RankSeat
from stallscope.lab.faults.base import Armed, Expect
from stallscope.lab.faults.inject import Injection, run_with_faults
from stallscope.lab.kernel import entered
from stallscope.lab.netns import build
from stallscope.lab.plan import LoopPlan
from stallscope.lab.ranks import GroupRun, Zygote
from stallscope.lab.sandbox import Emit, isolated
from stallscope.lab.shaper import Shape
from stallscope.lab.stage import Stage, step_times
from stallscope.lab.topology import LabPod, LabSpec

RANKS = 4
PORT = 29500
_STEP_SECONDS = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchSettings:
    """The small job: `ranks` ranks over two zones, two nodes a zone, `steps` steps."""

    ranks: int = RANKS
    steps: int = 24
    prefer_torch: bool = True
    repeat: int = 1


def small_job(ranks: int) -> Cast:
    """`ranks` pods on as many nodes, first half in zone-a, second in zone-b."""
    pods = tuple(LabPod(name=f"bench-{i}", node=f"node-{i}", host_names=(f"bench-{i}.bench",), rank=i) for i in range(ranks))
    zones = {f"node-{i}": "zone-a" if i < (ranks + 1) // 2 else "zone-b" for i in range(ranks)}
    seats = tuple(
        RankSeat(
            rank=i,
            pod=f"bench-{i}",
            env={
                "MASTER_ADDR": "bench-0.bench",
                "MASTER_PORT": str(PORT),
                "RANK": str(i),
                "WORLD_SIZE": str(ranks),
                "LOCAL_RANK": "0",
                "LOCAL_WORLD_SIZE": "1",
                "GLOO_SOCKET_IFNAME": "eth0",
            },
        )
        for i in range(ranks)
    )
    return Cast(spec=LabSpec(pods=pods, zones=zones), seats=seats, endpoints={}, ports=(), rendezvous_port=PORT)


def bench_faults(armed: Sequence[Armed], settings: BenchSettings) -> Iterator[FaultRecord]:
    """
    One record per fault and repetition, as each is done. Raises LabError when the lab cannot be built.
    """
    with state.run_directory() as run:
        for event in isolated(lambda emit: _work(armed, settings, run.directory, emit)):
            if "sandbox" not in event:
                yield FaultRecord(**event)


def _work(armed: Sequence[Armed], settings: BenchSettings, directory: Path, emit: Emit) -> None:
    with Zygote(directory, prefer_torch=settings.prefer_torch) as zygote:
        for _ in range(settings.repeat):
            for item in armed:
                emit(asdict(record(item, zygote, directory, settings)))


def record(armed: Armed, zygote: Zygote, directory: Path, settings: BenchSettings) -> FaultRecord:
    """Run one fault on a fresh stage (in the current process's namespaces) and describe it."""
    cast = small_job(settings.ranks)
    sockets: dict[str, str] = {}
    with ExitStack() as stack:
        cluster = stack.enter_context(build(cast.spec))
        stage = Stage(
            label="bench",
            cast=cast,
            segments=lambda *_: (),
            cluster=cluster,
            directory=directory / "bench",
            plan=LoopPlan(
                compute_seconds=0.15,
                gradient_bytes=1_000_000,
                buckets=2,
                steps=settings.steps,
                timeout_seconds=20.0,
                record=True,
            ),
            shape=Shape(zone=Link(bandwidth=40e6, latency=0), cross_zone=Link(bandwidth=15e6, latency=0)),
        )
        stage.reshape()
        stage.enforce()

        def observe(at: Stage) -> None:
            sockets.update(read_sockets(at))

        repetition, group, injection = run_with_faults(stage, zygote, (armed,), expected_step=_STEP_SECONDS, observe=observe)
        truth = armed.fault.culprits(stage, armed.args)
    return _record(armed, truth, zygote.transport, repetition, group, injection, sockets)


def read_sockets(stage: Stage) -> dict[str, str]:
    """`ss -tineO` (every TCP socket with TCP_INFO, one a line) of each pod; empty where ss is missing."""
    found = {}
    for pod, namespace in stage.cluster.pods.items():
        try:
            with entered(namespace.fd):
                done = subprocess.run(["ss", "-taineOH"], capture_output=True, text=True, timeout=5, check=False)
        except (FileNotFoundError, subprocess.TimeoutExpired):
            return {}
        found[pod] = "\n".join(" ".join(line.split()) for line in done.stdout.splitlines())
    return found


def _record(
    armed: Armed,
    truth: tuple[str, ...],
    transport: str,
    repetition: Repetition,
    group: GroupRun,
    injection: Injection,
    sockets: dict[str, str],
) -> FaultRecord:
    struck = injection.struck_at.get(armed.fault.name)
    if struck is None and "step" in armed.args.values:
        struck = armed.args.step()
    times = step_times(group, 1)
    split = len(times) if struck is None else max(0, struck - 1)
    before, after = times[1:split], times[split:]
    if armed.fault.strike is None and struck is None:
        before, after = [], times[1:]
    started = all(r.init_seconds is not None for r in group.ranks) and len(group.ranks) == len(injection.stage.cast.seats)
    return FaultRecord(
        fault=armed.fault.name,
        label=armed.fault.label.value,
        args=dict(armed.args.values),
        culprits=truth,
        transport=transport,
        ranks=len(injection.stage.cast.seats),
        struck_at_step=struck,
        started=started,
        steps_before=len(before),
        steps_after=len(after),
        step_before=median(before) if before else 0.0,
        step_after=median(after) if after else 0.0,
        outcome=outcome(repetition, started),
        errors={str(r.rank): r.error for r in group.ranks if r.error},
        sockets=sockets,
        events={str(r.rank): [asdict(s) for s in r.steps] for r in group.ranks},
        flight_recorder={str(r.rank): r.flight_recorder for r in group.ranks if r.flight_recorder},
        seconds=group.seconds,
    )


def outcome(repetition: Repetition, started: bool) -> str:
    """``finished``, ``never-started`` or ``stopped``."""
    if repetition.finished:
        return "finished"
    return "stopped" if started else "never-started"


def as_expected(armed: Armed, found: FaultRecord) -> bool:
    """Whether the run ended as the fault's definition says; a record that did not is no ground truth."""
    match armed.fault.expect:
        case Expect.FINISHES:
            return found.outcome == "finished"
        case Expect.SLOWER:
            baseline = found.step_before or _STEP_SECONDS
            return found.outcome == "finished" and found.step_after > 1.2 * baseline
        case Expect.NEVER_STARTS:
            return found.outcome == "never-started"
        case Expect.STOPS:
            return found.outcome == "stopped"
