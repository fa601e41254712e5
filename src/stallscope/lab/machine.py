"""What this machine carries: measured before anything is scaled to it."""

from __future__ import annotations

from pathlib import Path

from stallscope.collective.links import Link
from stallscope.errors import LabError
from stallscope.lab.cast import Cast, RankSeat
from stallscope.lab.netns import build
from stallscope.lab.plan import LoopPlan
from stallscope.lab.ranks import Zygote
from stallscope.lab.shaper import Shape
from stallscope.lab.stage import Stage, run_once
from stallscope.lab.topology import LabPod, LabSpec


def measure_machine(zygote: Zygote, directory: Path, ranks: int) -> float:
    """Bytes/s one ring edge carries with `ranks` ranks over unshaped links here and now: the transport's own figure."""
    pods = tuple(LabPod(name=f"probe-{i}", node=f"node-{i}", rank=i) for i in range(ranks))
    spec = LabSpec(pods=pods, zones={p.node: "one" for p in pods})
    size = max(1_600_000, 100_000 * ranks)  # large enough that bytes, not turns, set the pace
    plan = LoopPlan(compute_seconds=0.0, gradient_bytes=size, buckets=1 if ranks > 8 else 2, steps=5, warmup=2)
    with build(spec) as cluster:
        stage = Stage(
            label="machine",
            cast=_bare_cast(spec, ranks),
            segments=lambda *_: (),
            cluster=cluster,
            directory=directory / "machine",
            plan=plan,
            shape=Shape(zone=Link(bandwidth=1, latency=0), cross_zone=Link(bandwidth=1, latency=0)),
        )
        repetition, _ = run_once(stage, zygote, expected_step=1.0)
    if not repetition.finished:
        raise LabError(
            f"the machine cannot carry {ranks} ranks: {repetition.ended}", hint="rehearse a smaller copy of the job"
        )
    return repetition.bus_bandwidth


def _bare_cast(spec: LabSpec, ranks: int) -> Cast:
    seats = tuple(
        RankSeat(
            rank=i,
            pod=spec.pods[i].name,
            env={
                "MASTER_ADDR": spec.pods[0].name,
                "MASTER_PORT": "29500",
                "RANK": str(i),
                "WORLD_SIZE": str(ranks),
                "LOCAL_RANK": "0",
                "GLOO_SOCKET_IFNAME": "eth0",
            },
        )
        for i in range(ranks)
    )
    return Cast(spec=spec, seats=seats, endpoints={}, ports=(), rendezvous_port=29500)
