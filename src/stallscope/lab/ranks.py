"""
A group of ranks, from the lab's side: start one process a rank through the zygote, collect what they report, and never
wait without a bound of our own (a gloo process with an absent peer can block past its own timeout: reference lab.md §7).
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from stallscope.errors import LabError
from stallscope.lab.netns import PocketCluster
from stallscope.lab.plan import LoopPlan

_IMPORT_SECONDS = 120.0
_LOG_TAIL = 4000
#: Started by path, not through PYTHONPATH: the user's command inherits the environment and may be another Python.
_START = (
    f"import sys; sys.path.insert(0, {str(Path(__file__).parents[2])!r}); from stallscope.lab.zygote import main; main()"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RankOrder:
    """One rank to start: the pod it lives in, its environment, its loop or the user's command, and its name files."""

    rank: int
    pod: str
    env: Mapping[str, str]
    plan: LoopPlan | None = None
    command: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    cores: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One measured step of one rank, seconds; `start` on the machine's monotonic clock, `index` counts from 0."""

    index: int
    start: float
    input: float
    compute: float
    reduce: float

    @property
    def seconds(self) -> float:
        return self.input + self.compute + self.reduce


@dataclass(slots=True, kw_only=True)
class RankRun:
    """
    What became of one rank. `init_seconds` None: it never joined. `error` its last words, `exit_code` None: it was still
    running when the time was up (and was then killed). `log` is the end of its output, `flight_recorder` the last
    that torch knew of its collectives.
    """

    rank: int
    pod: str
    init_seconds: float | None = None
    steps: list[Step] = field(default_factory=list)
    error: str = ""
    finished: bool = False
    exit_code: int | None = None
    log: str = ""
    flight_recorder: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRun:
    """All ranks of one run; `timed_out`: our own bound ended it."""

    ranks: tuple[RankRun, ...]
    seconds: float
    timed_out: bool


Watch = Callable[["Zygote", Mapping[int, RankRun]], bool]


class Zygote:
    """The rank starter. `transport` is ``torch`` or ``ring`` once started."""

    def __init__(self, directory: Path, *, prefer_torch: bool = True) -> None:
        self._directory = directory
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._orders = ours
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-W", "ignore", "-c", _START, str(theirs.fileno()), "torch" if prefer_torch else "ring"],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
            )
        self._transport = ""

    @property
    def transport(self) -> str:
        """Waits for the import the first time. Raises LabError when the zygote died."""
        if not self._transport:
            self._orders.settimeout(_IMPORT_SECONDS)
            try:
                answer = json.loads(self._orders.recv(4096))
            except (OSError, ValueError) as error:
                raise LabError(f"the process that starts ranks did not come up: {error}") from error
            self._transport = "torch" if answer["torch"] else "ring"
        return self._transport

    def run(
        self, cluster: PocketCluster, orders: Sequence[RankOrder], *, limit_seconds: float, watch: Watch | None = None
    ) -> GroupRun:
        """
        Start `orders` together and collect until all ended or `limit_seconds` passed; what still runs is then killed.
        `watch` is called about ten times a second with what is known so far: faults act from there. It ends the run by
        returning true.
        """
        transport = self.transport
        runs = {o.rank: RankRun(rank=o.rank, pod=o.pod) for o in orders}
        begin = time.monotonic()
        with selectors.DefaultSelector() as selector:
            try:
                for order in orders:
                    self._spawn(cluster, order, transport, selector)
                timed_out = self._collect(selector, runs, begin + limit_seconds, watch)
            finally:
                self._stop(runs)
                for key in list(selector.get_map().values()):
                    if isinstance(key.fileobj, int):
                        os.close(key.fileobj)
        for run in runs.values():
            run.log = self._tail(run.rank)
        return GroupRun(ranks=tuple(runs.values()), seconds=time.monotonic() - begin, timed_out=timed_out)

    def signal(self, rank: int, number: int) -> None:
        """Signal one rank (and what it started)."""
        self._send({"op": "signal", "id": rank, "signal": number})

    def _send(self, order: dict[str, Any], fds: Sequence[int] = ()) -> None:
        try:
            socket.send_fds(self._orders, [json.dumps(order).encode()], fds)
        except OSError as error:
            raise LabError(f"the process that starts ranks is gone: {error}") from error

    def _spawn(self, cluster: PocketCluster, order: RankOrder, transport: str, selector: selectors.BaseSelector) -> None:
        log = self._log(order.rank)
        log.unlink(missing_ok=True)
        reading, writing = os.pipe()
        os.set_blocking(reading, False)
        selector.register(reading, selectors.EVENT_READ, (order.rank, bytearray()))
        body = {
            "op": "spawn",
            "id": order.rank,
            "name": order.pod,
            "env": dict(order.env),
            "files": dict(order.files),
            "log": str(log),
            "transport": transport,
            "cores": list(order.cores),
        }
        if order.command:
            body["exec"] = list(order.command)
        elif order.plan:
            body["plan"] = order.plan.to_json()
        try:
            self._send(body, [cluster.pods[order.pod].fd, writing])
        finally:
            os.close(writing)

    def _collect(
        self, selector: selectors.BaseSelector, runs: Mapping[int, RankRun], deadline: float, watch: Watch | None
    ) -> bool:
        """True when the deadline or the watch ended it."""
        selector.register(self._orders, selectors.EVENT_READ, None)
        next_watch = 0.0
        while any(run.exit_code is None for run in runs.values()):
            now = time.monotonic()
            if now > deadline:
                return True
            if watch and now >= next_watch:
                if watch(self, runs):
                    return True
                next_watch = now + 0.1
            for key, _ in selector.select(0.1):
                if key.data is None:
                    self._answer(runs)
                else:
                    _events(selector, key, runs)
        for key in list(selector.get_map().values()):  # what was still in the pipes
            if key.data is not None:
                _events(selector, key, runs)
        return False

    def _answer(self, runs: Mapping[int, RankRun]) -> None:
        data = self._orders.recv(4096)
        if not data:
            raise LabError("the process that starts ranks died")
        answer = json.loads(data)
        if "exit" in answer and answer["id"] in runs:
            runs[answer["id"]].exit_code = answer["exit"]

    def _stop(self, runs: Mapping[int, RankRun]) -> None:
        """Kill what still runs and wait until the zygote has reaped it, a few seconds at most."""
        alive = {rank for rank, run in runs.items() if run.exit_code is None}
        with suppress(LabError, OSError):
            for rank in alive:
                self.signal(rank, signal.SIGKILL)
            self._orders.settimeout(3.0)
            while alive:
                answer = json.loads(self._orders.recv(4096) or b"{}")
                if "exit" in answer:
                    alive.discard(answer["id"])

    def _log(self, rank: int) -> Path:
        return self._directory / f"rank-{rank}.log"

    def _tail(self, rank: int) -> str:
        try:
            with self._log(rank).open("rb") as log:
                log.seek(0, os.SEEK_END)
                log.seek(max(0, log.tell() - _LOG_TAIL))
                return log.read().decode("utf-8", "replace")
        except OSError:
            return ""

    def close(self) -> None:
        """End the zygote; its ranks end with it."""
        self._orders.close()
        try:
            self._process.wait(2.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _events(selector: selectors.BaseSelector, key: selectors.SelectorKey, runs: Mapping[int, RankRun]) -> None:
    """Read what a rank reported."""
    rank, rest = key.data
    fd = key.fileobj
    assert isinstance(fd, int)  # noqa: S101  only report pipes carry data
    try:
        data = os.read(fd, 65536)
    except BlockingIOError:
        return
    if not data:
        selector.unregister(fd)
        os.close(fd)
        return
    rest += data
    *lines, last = bytes(rest).split(b"\n")
    rest[:] = last
    for line in lines:
        _apply(runs[rank], json.loads(line))


def _apply(run: RankRun, event: Mapping[str, Any]) -> None:
    match event["e"]:
        case "init":
            run.init_seconds = event["seconds"]
        case "step":
            run.steps.append(
                Step(
                    index=event["i"],
                    start=event["start"],
                    input=event["input"],
                    compute=event["compute"],
                    reduce=event["reduce"],
                )
            )
        case "fr":
            run.flight_recorder = {"status": event["status"], "last": event["last"]}
        case "error":
            run.error = event["message"]
        case "end":
            run.finished = True
