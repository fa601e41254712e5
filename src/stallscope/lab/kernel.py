"""
The few Linux system calls the lab needs that Python 3.11's `os` does not have (os.setns and os.unshare came in 3.12).

Numbers are from linux/sched.h, linux/prctl.h and linux/mount.h. Every function raises OSError with the kernel's errno.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_BIND = 0x1000
MS_REC = 0x4000
MS_PRIVATE = 0x40000
MS_NOSUID, MS_NODEV, MS_NOEXEC = 0x2, 0x4, 0x8
MNT_DETACH = 2

PR_SET_PDEATHSIG = 1

_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def _call(name: str, *args: int | bytes | None) -> None:
    if _libc is None:
        raise OSError(0, "the pocket cluster needs Linux")
    if getattr(_libc, name)(*args) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")


def unshare(flags: int) -> None:
    """unshare(2): put the calling thread into new namespaces."""
    _call("unshare", flags)


def setns(fd: int, kind: int) -> None:
    """setns(2): enter the namespace `fd` refers to; `kind` is its CLONE_NEW* flag."""
    _call("setns", fd, kind)


def mount(source: str, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    """mount(2)."""
    _call("mount", source.encode(), target.encode(), kind.encode() if kind else None, flags, data.encode() if data else None)


def unmount(target: str) -> None:
    """umount2(2), lazily."""
    _call("umount2", target.encode(), MNT_DETACH)


def die_with_parent() -> None:
    """Ask for SIGKILL when the thread that made this process ends: the lab must not outlive whoever started it."""
    _call("prctl", PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def net_namespace() -> int:
    """A descriptor of the calling thread's network namespace."""
    return os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)


@contextmanager
def entered(fd: int) -> Iterator[None]:
    """The calling thread inside network namespace `fd`; sockets and processes made here belong to it."""
    back = net_namespace()
    try:
        setns(fd, CLONE_NEWNET)
        try:
            yield
        finally:
            setns(back, CLONE_NEWNET)
    finally:
        os.close(back)


def new_net_namespace() -> int:
    """Make a network namespace and give its descriptor. It lives as long as a descriptor, a process or a mount does."""
    back = net_namespace()
    try:
        unshare(CLONE_NEWNET)
        try:
            return net_namespace()
        finally:
            setns(back, CLONE_NEWNET)
    finally:
        os.close(back)
