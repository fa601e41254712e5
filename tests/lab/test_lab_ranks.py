"""Ranks: both transports run the loop, bytes are the ring's, and no wait is without bound."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from stallscope.collective.links import Link
from stallscope.lab.faults.bench import BenchSettings, as_expected, record, small_job
from stallscope.lab.faults.inject import run_with_faults
from stallscope.lab.faults.registry import FAULTS, parse_fault
from stallscope.lab.netns import PocketCluster, build
from stallscope.lab.plan import LoopPlan
from stallscope.lab.ranks import Zygote
from stallscope.lab.shaper import Shape
from stallscope.lab.stage import Stage, run_once

pytestmark = [pytest.mark.root, pytest.mark.usefixtures("needs_nft")]

PLAN = LoopPlan(compute_seconds=0.05, gradient_bytes=400_000, buckets=2, steps=6, warmup=2, timeout_seconds=15)


@pytest.fixture(scope="module")
def ring(tmp_path_factory: pytest.TempPathFactory) -> Zygote:
    zygote = Zygote(tmp_path_factory.mktemp("ring"), prefer_torch=False)
    yield zygote
    zygote.close()


def stage(cluster: PocketCluster, directory: Path, ranks: int = 4, plan: LoopPlan = PLAN) -> Stage:
    made = Stage(
        label="test",
        cast=small_job(ranks),
        segments=lambda *_: (),
        cluster=cluster,
        directory=directory,
        plan=plan,
        shape=Shape(zone=Link(bandwidth=40e6, latency=0), cross_zone=Link(bandwidth=4e6, latency=0)),
    )
    made.reshape()
    return made


def test_the_built_in_ring_moves_what_a_ring_moves(ring: Zygote, tmp_path: Path) -> None:
    """
    4 ranks a a b b, S = 400 kB: 2(N-1)/N x S = 600 kB over each of 2 crossing edges a step; at 4 MB/s a ring edge that is
    150 ms, so a step of 50 ms compute is 200 ms and 25 % busy.
    """
    with build(small_job(4).spec) as cluster:
        runs = [run_once(stage(cluster, tmp_path), ring, expected_step=0.2) for _ in range(2)]
    assert [r.ended for r, _ in runs] == ["", ""]
    run, group = min(runs, key=lambda r: r[0].reduce_seconds)  # a busy machine only slows
    assert [len(r.steps) for r in group.ranks] == [8] * 4
    assert len(run.steps) == 6
    assert run.cross_zone_bytes == pytest.approx(2 * 600_000, rel=0.15)  # headers and acknowledgements
    assert run.reduce_seconds == pytest.approx(0.150, rel=0.25)
    assert run.busy == pytest.approx(0.25, rel=0.25)
    assert run.bus_bandwidth == pytest.approx(4e6, rel=0.25)


def test_gloo_moves_the_same(zygote_factory: Callable[[], Zygote], tmp_path: Path) -> None:
    zygote = zygote_factory()
    if zygote.transport != "torch":
        pytest.skip("torch is not installed (extra: lab)")
    with build(small_job(4).spec) as cluster:
        runs = [run_once(stage(cluster, tmp_path), zygote, expected_step=0.2)[0] for _ in range(2)]
    assert [r.ended for r in runs] == ["", ""]
    run = max(runs, key=lambda r: r.busy)
    assert run.cross_zone_bytes == pytest.approx(2 * 600_000, rel=0.15)
    assert run.busy == pytest.approx(0.25, rel=0.3)


def test_a_rank_sees_its_pod_and_nothing_else(ring: Zygote, tmp_path: Path) -> None:
    """--exec: the user's command runs in the pod: its host name, its interface, its names, the kind's environment."""
    script = (
        "hostname; cat /sys/class/net/eth0/address 2>/dev/null || ip -br link; getent hosts bench-0.bench; echo rank=$RANK"
    )
    with build(small_job(2).spec) as cluster:
        made = stage(cluster, tmp_path, 2)
        made.command = ("sh", "-c", script)
        run, group = run_once(made, ring, expected_step=0.2)
    assert run.ended == ""
    assert group.ranks[1].log.splitlines()[0] == "bench-1"
    assert "10.1.1.2" in group.ranks[1].log
    assert "rank=1" in group.ranks[1].log


def test_a_failing_command_is_named(ring: Zygote, tmp_path: Path) -> None:
    with build(small_job(2).spec) as cluster:
        made = stage(cluster, tmp_path, 2)
        made.command = ("sh", "-c", "exit 7")
        run, _ = run_once(made, ring, expected_step=0.2)
    assert run.ended == "your command ended with 7 in pod bench-0"


def test_a_missing_peer_is_waited_for_only_so_long(ring: Zygote, tmp_path: Path) -> None:
    with build(small_job(3).spec) as cluster:
        made = stage(cluster, tmp_path, 3, replace(PLAN, timeout_seconds=300))
        made.absent.add(2)
        begin = time.monotonic()
        run, group = run_once(made, ring, expected_step=0.2)
    assert time.monotonic() - begin < 14
    assert run.ended.startswith("never started: 0 of 2 ranks joined")
    assert group.timed_out


def test_a_stopped_rank_is_killed_in_the_end(ring: Zygote, tmp_path: Path) -> None:
    with build(small_job(2).spec) as cluster:
        made = stage(cluster, tmp_path, 2, replace(PLAN, steps=1000, timeout_seconds=300))
        run, group, _ = run_with_faults(made, ring, (parse_fault("frozen:rank=1,step=3"),), expected_step=0.2)
    assert run.ended.startswith("stalled after 3 steps") or run.ended.startswith("stalled after 4 steps")
    assert {r.exit_code for r in group.ranks} == {None}
    ring.signal(1, signal.SIGKILL)  # a rank that is gone: ignored


QUICK = ("healthy", "killed", "deny-midrun", "mtu-blackhole", "straggler:ms=100")


@pytest.mark.slow
@pytest.mark.parametrize("text", QUICK)
def test_faults_end_as_they_say(ring: Zygote, tmp_path: Path, text: str) -> None:
    armed = parse_fault(text)
    found = record(armed, ring, tmp_path, BenchSettings(steps=10))
    assert as_expected(armed, found), found.outcome
    assert found.label == armed.fault.label
    if armed.fault.name == "deny-midrun":
        assert found.culprits == ("bench-0 -> bench-1",)
        assert "backoff:" in found.sockets["bench-0"]  # the signature of telemetry.md §3.1


def test_every_fault_has_a_label_and_help() -> None:
    for name, fault in FAULTS.items():
        assert name == fault.name
        assert fault.help
        assert parse_fault(name).args.values == dict(fault.defaults)
