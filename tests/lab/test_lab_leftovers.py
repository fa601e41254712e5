"""Nothing stays behind: not after twenty runs, not after an error, not after kill -9; and the sweep touches only our own."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from stallscope.errors import LabError
from stallscope.lab import state
from stallscope.lab.firewall import Drop, install
from stallscope.lab.names import write_names
from stallscope.lab.netns import build
from stallscope.lab.plan import LoopPlan
from stallscope.lab.ranks import RankOrder, Zygote
from stallscope.lab.sandbox import Emit, isolated
from stallscope.lab.topology import LabPod, LabSpec
from stallscope.model.traffic import Direction, PortRange

pytestmark = [pytest.mark.root, pytest.mark.usefixtures("needs_nft")]

MARK = "STALLSCOPE_LAB_TEST"
SPEC = LabSpec(pods=tuple(LabPod(name=f"p{i}", node=f"n{i}") for i in range(3)), zones={"n0": "a", "n1": "a", "n2": "b"})


def whole_lab(emit: Emit, directory: Path, steps: int = 2) -> None:
    """Everything a rehearsal makes: namespaces, links, nft tables, name files, ranks."""
    with Zygote(directory, prefer_torch=False) as zygote, build(SPEC) as cluster:
        drop = Drop(direction=Direction.EGRESS, source="p0", destination="p1", ports=PortRange(1, 9), reason="r (f:1:1)")
        install(cluster, [drop])
        plan = LoopPlan(compute_seconds=0.01, gradient_bytes=6000, steps=steps, warmup=1)
        orders = [
            RankOrder(
                rank=i,
                pod=f"p{i}",
                plan=plan,
                files=write_names(directory, SPEC, cluster.plan.ips),
                env={"MASTER_ADDR": "p0", "MASTER_PORT": "29500", "RANK": str(i), "WORLD_SIZE": "3"},
            )
            for i in range(3)
        ]
        emit({"running": True})
        group = zygote.run(cluster, orders, limit_seconds=30)
        emit({"finished": [r.finished for r in group.ranks]})


def marked_processes(mark: str) -> list[int]:
    """Processes that carry the mark in their environment (zombies have none)."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if mark.encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
    return found


def net_namespaces() -> set[str]:
    """Every network namespace some process, descriptor or mount holds."""
    found: set[str] = set()
    for process in Path("/proc").glob("[0-9]*"):
        for link in (process / "ns/net", *_entries(process / "fd")):
            with suppress(OSError):
                target = str(link.readlink())
                if target.startswith("net:["):
                    found.add(target)
    found |= set(re.findall(r"net:\[\d+\]", Path("/proc/self/mountinfo").read_text()))
    return found


def _entries(directory: Path) -> Iterator[Path]:
    with suppress(OSError):
        yield from list(directory.iterdir())


def traces() -> dict[str, Any]:
    """What a lab could leave on the host, outside namespaces."""
    tables = subprocess.run(["nft", "list", "tables"], capture_output=True, text=True, check=False).stdout
    base = state.base_directory()
    return {
        "links": sorted(p.name for p in Path("/sys/class/net").iterdir()),
        "tables": [t for t in tables.splitlines() if "stsc" in t],
        "names": sorted(p.name for p in Path("/run/netns").glob("stsc-*")) if Path("/run/netns").is_dir() else [],
        "cgroups": sorted(str(p) for p in Path("/sys/fs/cgroup").glob("*stallscope*")),
        "directories": sorted(p.name for p in base.iterdir()) if base.is_dir() else [],
    }


def settle(check: Any, seconds: float = 3.0) -> Any:
    """`check`'s value once it is falsy, or its last: the kernel removes namespaces a moment later."""
    deadline = time.monotonic() + seconds
    while (value := check()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return value


@pytest.fixture
def private_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run directories of this test alone."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path / "stallscope-lab"


def test_twenty_runs_leave_nothing(tmp_path: Path, private_runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mark = f"{MARK}={uuid.uuid4()}"
    monkeypatch.setenv(*mark.split("=", 1))
    before, spaces = traces(), net_namespaces()
    for _ in range(20):
        with state.run_directory() as run:
            events = list(isolated(lambda emit, d=run.directory: whole_lab(emit, d)))
        assert events[-1] == {"finished": [True, True, True]}
    assert settle(lambda: marked_processes(mark)) == []
    assert settle(lambda: net_namespaces() - spaces) == set()
    assert traces() == before
    assert not private_runs.exists()


def test_an_error_inside_becomes_one_line_and_leaves_nothing(private_runs: Path) -> None:
    def broken(emit: Emit) -> None:
        with build(SPEC):
            raise RuntimeError("x" * 10)

    spaces = net_namespaces()
    with pytest.raises(LabError, match="the lab failed: RuntimeError: xxxxxxxxxx"), state.run_directory():
        list(isolated(broken))
    assert settle(lambda: net_namespaces() - spaces) == set()
    assert not private_runs.exists()


SCRIPT = """
import sys, signal
sys.path.insert(0, {here!r})
from pathlib import Path
from stallscope.lab import state
from stallscope.lab.sandbox import isolated
import test_lab_leftovers as t
with state.run_directory() as run:
    for event in isolated(lambda emit: t.whole_lab(emit, run.directory, steps=100000)):
        print(event, flush=True)
"""


def start(tmp_path: Path, mark: str) -> subprocess.Popen[str]:
    """A rehearsal in a process of its own, running."""
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", SCRIPT.format(here=str(Path(__file__).parent))],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, MARK: mark.partition("=")[2], "XDG_RUNTIME_DIR": str(tmp_path)},
    )
    assert process.stdout is not None
    assert "started" in process.stdout.readline()
    assert "running" in process.stdout.readline()
    time.sleep(0.5)
    return process


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_a_killed_run_leaves_no_process_and_no_namespace(tmp_path: Path, private_runs: Path, number: signal.Signals) -> None:
    mark = f"{MARK}={uuid.uuid4()}"
    before, spaces = traces(), net_namespaces()
    with start(tmp_path, mark) as process:
        assert len(marked_processes(mark)) >= 5  # caller, sandbox, zygote, ranks
        assert len(net_namespaces() - spaces) >= 7  # 3 pods, 2 or 3 nodes, 2 zones
        process.send_signal(number)
        process.wait(5)
    assert settle(lambda: marked_processes(mark)) == []
    assert settle(lambda: net_namespaces() - spaces) == set()
    left = traces()
    assert {k: v for k, v in left.items() if k != "directories"} == {k: v for k, v in before.items() if k != "directories"}
    if number is not signal.SIGINT:  # the directory alone outlives a kill; the next run sweeps it
        assert len(left["directories"]) == 1
        assert state.sweep() == (f"directory {private_runs / left['directories'][0]}",)
    assert not private_runs.exists()


def test_the_sweep_leaves_living_runs_and_foreign_things_alone(private_runs: Path) -> None:
    private_runs.mkdir(mode=0o700)
    foreign = private_runs / "notes"
    foreign.mkdir()
    dead = private_runs / "0123abcd"
    dead.mkdir()
    (dead / "state.json").write_text(json.dumps({"run": "0123abcd", "pid": os.getpid(), "started": "1"}))  # a reused pid
    with state.run_directory() as living:
        assert not dead.exists()
        assert state.sweep() == ()
        assert living.directory.exists()
    assert foreign.exists()


def test_names_for_people_are_swept_by_run_id(private_runs: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("naming namespaces needs root")
    foreign = Path("/run/netns/stsc-not-ours")
    with build(SPEC) as cluster:
        names = state.name_namespaces("00c0ffee", {p: f"/proc/self/fd/{ns.fd}" for p, ns in cluster.pods.items()})
        # Asked while the cluster stands: afterwards the kernel takes the far ends of its links, and with them the address.
        shown = subprocess.run(
            ["ip", "netns", "exec", names[0], "ip", "-br", "addr"], capture_output=True, text=True, check=False
        )
    foreign.touch()
    try:
        assert names[0] == "stsc-00c0ffee-p0"
        assert "10.1.1.2/32" in shown.stdout
        (private_runs / "00c0ffee").mkdir(parents=True, mode=0o700)
        removed = state.sweep()
        assert [r for r in removed if r.startswith("network")] == [f"network namespace {n}" for n in names]
        assert foreign.exists()
    finally:
        foreign.unlink()
        state.forget_names("00c0ffee")
