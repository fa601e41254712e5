"""
Delay between zones where the kernel has no netem: a delay line in user space.

Packets that a zone namespace receives from a trunk are routed into a TUN device (policy routing by incoming link), held by
a small process for the wanted time, and written back into the same device, from where they go on as routed. The trunk's
rate shaping stays in force. GSO packets pass whole (IFF_VNET_HDR), so a few thousand packets a second carry the lab's
rates. Good for milliseconds, not for microseconds: the wake-up of a process on a busy machine may be late by some
(reference lab.md §6).
"""

from __future__ import annotations

import fcntl
import os
import select
import signal
import struct
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass

from stallscope.errors import LabError
from stallscope.lab import netlink
from stallscope.lab.kernel import die_with_parent, entered
from stallscope.lab.netns import End, PocketCluster

_TUNSETIFF, _TUNSETOFFLOAD = 0x400454CA, 0x400454D0
_IFF_TUN, _IFF_NO_PI, _IFF_VNET_HDR = 0x0001, 0x1000, 0x4000
_TUN_F_CSUM, _TUN_F_TSO4 = 0x01, 0x02
_TABLE = 100
_MAX_HELD = 20_000  # packets; beyond, the line drops as a full router queue would


@dataclass(slots=True)
class DelayLine:
    """A running delay line."""

    pid: int

    def close(self) -> None:
        """End its process."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(self.pid, 0)


def insert(cluster: PocketCluster, seconds: float) -> DelayLine:
    """
    Hold everything that crosses zones for `seconds`, each way. Raises LabError when TUN or policy routing is missing.
    """
    lines = []
    try:
        for end in cluster.links_of("trunk"):
            lines.append(_divert(end))
    except OSError as error:
        for fd in lines:
            os.close(fd)
        raise LabError(
            f"no delay between zones on this kernel: it has no netem, and the stand-in failed ({error.strerror})",
            hint="load the modules sch_netem or tun",
        ) from error
    pid = os.fork()
    if pid == 0:
        _run(lines, seconds)
    for fd in lines:
        os.close(fd)
    return DelayLine(pid)


def _divert(end: End) -> int:
    """Send what arrives over `end` through a TUN device of its zone; the device's descriptor."""
    name = f"d{end.name}"
    with entered(end.namespace.fd):
        fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            flags = _IFF_TUN | _IFF_NO_PI | _IFF_VNET_HDR
            fcntl.ioctl(fd, _TUNSETIFF, struct.pack("16sH22x", name.encode(), flags))
            fcntl.ioctl(fd, _TUNSETOFFLOAD, _TUN_F_CSUM | _TUN_F_TSO4)
            index = _index(name)
            end.namespace.netlink.send(
                [
                    netlink.link_up(index),
                    netlink.default_route(index, table=_TABLE + end.index),
                    netlink.rule_by_link(end.name, _TABLE + end.index),
                ]
            )
        except BaseException:
            os.close(fd)
            raise
    return fd


def _index(name: str) -> int:
    import socket

    return socket.if_nametoindex(name)


def _run(lines: list[int], seconds: float) -> None:
    """The process: read, hold, write. Never returns."""
    die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(OSError):
        os.nice(-10)
    held: dict[int, deque[tuple[float, bytes]]] = {fd: deque() for fd in lines}
    poll = select.poll()
    for fd in lines:
        poll.register(fd, select.POLLIN)
    while True:
        due = min((queue[0][0] for queue in held.values() if queue), default=None)
        wait = None if due is None else max(0.0, (due - time.monotonic()) * 1000)
        for fd, _ in poll.poll(wait if wait is None or wait >= 1 else 0):
            _read(fd, held[fd], seconds)
        now = time.monotonic()
        for fd, queue in held.items():
            while queue and queue[0][0] <= now:
                with suppress(OSError):
                    os.write(fd, queue.popleft()[1])


def _read(fd: int, queue: deque[tuple[float, bytes]], seconds: float) -> None:
    with suppress(BlockingIOError):
        while True:
            packet = os.read(fd, 1 << 17)
            if len(queue) < _MAX_HELD:
                queue.append((time.monotonic() + seconds, packet))
