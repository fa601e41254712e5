"""
Where the lab runs: a child in its own pid, mount and (without root) user namespace.

The child is pid 1 of its pid namespace, so when it dies, however it dies, the kernel kills every process of the lab; with
the last process go the network namespaces, their links, rules and routes. It asks to be killed when the caller dies
(PR_SET_PDEATHSIG), so even `kill -9` of the caller leaves nothing. The caller itself stays as it was.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from stallscope.errors import LabError, StallscopeError
from stallscope.lab import kernel

Emit = Callable[[dict[str, Any]], None]
Work = Callable[[Emit], None]

_HINT = (
    "run it as root, or allow unprivileged user namespaces: sysctl user.max_user_namespaces, "
    "kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns; "
    "in a container add CAP_SYS_ADMIN and CAP_NET_ADMIN"
)


def isolated(work: Work) -> Iterator[dict[str, Any]]:
    """
    Run `work` in the sandbox and yield what it emits (JSON-able mappings), in order, after ``{"sandbox": "started"}`` with
    the ``pid`` of its first process as the caller sees it. Closing the iterator, an exception in
    the caller's loop and Ctrl-C all end the sandbox at once.

    Raises LabError when the sandbox cannot be made, when `work` raised one, or when it ended without saying so.
    """
    reading, writing = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # 3.12 on: fork beside threads; the child only makes calls
        pid = os.fork()
    if pid == 0:
        os.close(reading)
        _outer(work, writing)
    os.close(writing)
    finished = False
    try:
        with os.fdopen(reading, "rb") as events:
            for line in events:
                event = json.loads(line)
                if event.get("sandbox") == "error":
                    raise LabError(event["message"], hint=event.get("hint", ""))
                if event.get("sandbox") == "done":
                    finished = True
                    break
                yield event
        if not finished:
            raise LabError("the lab ended before it was done")
    finally:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _outer(work: Work, writing: int) -> None:
    """The middle process: makes the namespaces, then waits for pid 1. Never returns."""
    try:
        kernel.die_with_parent()
        os.setsid()  # the terminal's Ctrl-C goes to the caller alone
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        _unshare()
        waiting, going = os.pipe()
        child = os.fork()
        if child == 0:
            os.read(waiting, 1)
            _init(work, writing)
        _write(writing, {"sandbox": "started", "pid": child})
        os.close(writing)
        os.write(going, b"!")
        os.waitpid(child, 0)
    except BaseException as error:
        _fail(writing, error)
    finally:
        os._exit(0)


def _unshare() -> None:
    flags = kernel.CLONE_NEWPID | kernel.CLONE_NEWNS
    if os.geteuid() == 0:
        with suppress(PermissionError):
            kernel.unshare(flags | kernel.CLONE_NEWNET)
            return
    uid, gid = os.geteuid(), os.getegid()
    try:
        kernel.unshare(kernel.CLONE_NEWUSER)
        for name, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
            Path(f"/proc/self/{name}").write_text(text)
        kernel.unshare(flags | kernel.CLONE_NEWNET)
    except OSError as error:
        raise LabError(
            f"this machine forbids the namespaces a pocket cluster needs ({error.strerror})", hint=_HINT
        ) from error


def _own_mounts() -> None:
    """Keep the lab's mounts to itself. Raises LabError where that is impossible, since they would leak to the host."""
    try:
        kernel.mount("none", "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
    except OSError as error:
        raise LabError(
            "no rehearsal here: this root directory is not a mount point (a plain chroot?)",
            hint="outside, bind it on itself before entering: mount --bind DIR DIR",
        ) from error


def _init(work: Work, writing: int) -> None:
    """Pid 1 of the lab. Never returns."""
    try:
        kernel.die_with_parent()
        _own_mounts()
        with suppress(OSError):  # masked in many containers; tools that want /proc then see the outer one
            kernel.mount("proc", "/proc", "proc", kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC)
        work(lambda event: _write(writing, event))
        _write(writing, {"sandbox": "done"})
    except BaseException as error:
        _fail(writing, error)
    finally:
        os._exit(0)


def _fail(writing: int, error: BaseException) -> None:
    if isinstance(error, StallscopeError):  # a fault that does not fit the job, too: the user's to correct, no failure
        _write(writing, {"sandbox": "error", "message": error.message, "hint": error.hint})
        return
    where = ""
    if error.__traceback__ is not None:
        last = error.__traceback__
        while last.tb_next:
            last = last.tb_next
        where = f" ({Path(last.tb_frame.f_code.co_filename).name}:{last.tb_lineno})"
    text = " ".join(str(error).split())[:300]
    _write(writing, {"sandbox": "error", "message": f"the lab failed: {type(error).__name__}: {text}{where}"})


def _write(fd: int, event: dict[str, Any]) -> None:
    data = json.dumps(event).encode() + b"\n"
    with suppress(OSError):
        while data:
            data = data[os.write(fd, data) :]
