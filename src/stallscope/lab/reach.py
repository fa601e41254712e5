"""
Reachability, measured: a real TCP connect for every ordered pair of pods and every probed port.

Listeners and connecting sockets are made inside the pods' namespaces by one process and driven by one loop, so a whole
matrix costs one timeout, not one per pair. A probe that was expected to pass and did not is tried again with more
patience before anything is concluded: a busy machine must not look like a firewall.
"""

from __future__ import annotations

import errno
import select
import socket
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from enum import StrEnum

from stallscope.errors import LabError
from stallscope.lab.kernel import entered
from stallscope.lab.netns import PocketCluster

#: A SYN inside the machine is answered within a millisecond; the kernel repeats a lost one after 1 s.
QUICK, PATIENT = 0.35, 3.5
#: Sockets in flight at once.
_BATCH = 2000

Probe = tuple[str, str, int]


class Reached(StrEnum):
    """What a connect met."""

    OPEN = "open"  # three-way handshake done
    SILENT = "silent"  # nothing came back: dropped
    REFUSED = "refused"  # RST or ICMP: rejected


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One probe's result; `seconds` from connect to answer (0 when silent)."""

    source: str
    destination: str
    port: int
    reached: Reached
    seconds: float = 0.0


def all_pairs(pods: Iterable[str], ports: Iterable[int]) -> list[Probe]:
    """Every ordered pair of distinct pods, on every port."""
    names = list(pods)
    return [(a, b, port) for a in names for b in names if a != b for port in ports]


def measure(
    cluster: PocketCluster, probes: Sequence[Probe], *, expected_open: frozenset[Probe] | None = None
) -> dict[Probe, Measured]:
    """
    Run `probes`. With `expected_open`, only those get the patient second try; without, all silent ones do.

    Raises LabError when a port to listen on is taken inside a pod (a fault of the lab, not of a policy).
    """
    result: dict[Probe, Measured] = {}
    with ExitStack() as stack:
        _listen(cluster, probes, stack)
        for start in range(0, len(probes), _BATCH):
            result |= _run(cluster, probes[start : start + _BATCH], QUICK)
        again = [
            p for p, m in result.items() if m.reached is Reached.SILENT and (expected_open is None or p in expected_open)
        ]
        for start in range(0, len(again), _BATCH):
            result |= _run(cluster, again[start : start + _BATCH], PATIENT)
    return result


def _listen(cluster: PocketCluster, probes: Sequence[Probe], stack: ExitStack) -> None:
    wanted: dict[str, set[int]] = {}
    for _, destination, port in probes:
        wanted.setdefault(destination, set()).add(port)
    for pod, ports in wanted.items():
        with entered(cluster.pods[pod].fd):
            for port in sorted(ports):
                listener = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                try:
                    listener.bind(("0.0.0.0", port))  # noqa: S104  inside a namespace of the lab
                except OSError as error:
                    raise LabError(f"cannot listen on port {port} in pod {pod}: {error.strerror}") from error
                listener.listen(len(cluster.pods) + 8)


def _run(cluster: PocketCluster, probes: Sequence[Probe], patience: float) -> dict[Probe, Measured]:
    poll = select.poll()
    open_sockets: dict[int, tuple[socket.socket, Probe]] = {}
    result: dict[Probe, Measured] = {}
    by_source: dict[str, list[Probe]] = {}
    for probe in probes:
        by_source.setdefault(probe[0], []).append(probe)
    try:
        for source, members in by_source.items():
            with entered(cluster.pods[source].fd):
                for probe in members:
                    _connect(cluster.plan.ips, probe, poll, open_sockets, result)
        _collect(poll, open_sockets, result, patience)
        for _, probe in open_sockets.values():
            result[probe] = _measured(probe, Reached.SILENT)
    finally:
        for connection, _ in open_sockets.values():
            connection.close()
    return result


def _connect(
    ips: Mapping[str, str],
    probe: Probe,
    poll: select.poll,
    open_sockets: dict[int, tuple[socket.socket, Probe]],
    result: dict[Probe, Measured],
) -> None:
    connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    code = connection.connect_ex((ips[probe[1]], probe[2]))
    if code not in (0, errno.EINPROGRESS):
        connection.close()
        result[probe] = _measured(probe, Reached.REFUSED)
        return
    open_sockets[connection.fileno()] = (connection, probe)
    poll.register(connection, select.POLLOUT)


def _collect(
    poll: select.poll,
    open_sockets: dict[int, tuple[socket.socket, Probe]],
    result: dict[Probe, Measured],
    patience: float,
) -> None:
    """Until all answered or nothing has for `patience` seconds."""
    start = last = time.monotonic()
    while open_sockets and time.monotonic() - last < patience:
        for fd, _ in poll.poll(20):
            last = time.monotonic()
            connection, probe = open_sockets.pop(fd)
            poll.unregister(fd)
            code = connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            connection.close()
            result[probe] = _measured(probe, Reached.REFUSED if code else Reached.OPEN, last - start)


def _measured(probe: Probe, reached: Reached, seconds: float = 0.0) -> Measured:
    return Measured(source=probe[0], destination=probe[1], port=probe[2], reached=reached, seconds=seconds)
