"""
What a rehearsal leaves on disk while it runs, and how to sweep it when it could not do so itself.

A run owns one directory ``stallscope-lab/<run id>`` below the user's runtime directory, with a state file naming its
owner process. Processes and namespaces need no sweeping (see `stallscope.lab.sandbox`), the directory and the names under
/run/netns that `--named` makes do. Only what carries a run id of ours, and whose owner is gone, is ever touched.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from stallscope.errors import LabError
from stallscope.lab import kernel

PREFIX = "stsc"
_NETNS = Path("/run/netns")
_RUN_ID = re.compile(r"[0-9a-f]{8}\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run: its id, its directory (private to the user)."""

    id: str
    directory: Path


def base_directory() -> Path:
    """Where runs live: XDG_RUNTIME_DIR, /run for root, else the temporary directory."""
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if runtime and os.access(runtime, os.W_OK):
        return Path(runtime) / "stallscope-lab"
    if os.geteuid() == 0 and os.access("/run", os.W_OK):
        return Path("/run/stallscope-lab")
    return Path(tempfile.gettempdir()) / f"stallscope-lab-{os.geteuid()}"


@contextmanager
def run_directory() -> Iterator[Run]:
    """Sweep what dead runs left, then own a fresh directory until the end. Raises LabError when the place is not ours."""
    sweep()
    base = base_directory()
    base.mkdir(mode=0o700, parents=True, exist_ok=True)
    if base.is_symlink() or base.stat().st_uid != os.geteuid():
        raise LabError(f"{base} belongs to somebody else", hint="set XDG_RUNTIME_DIR to a directory of your own")
    run = Run(id=secrets.token_hex(4), directory=base)
    directory = base / run.id
    directory.mkdir(mode=0o700)
    (directory / "state.json").write_text(json.dumps({"run": run.id, "pid": os.getpid(), "started": _started(os.getpid())}))
    try:
        yield Run(id=run.id, directory=directory)
    finally:
        forget_names(run.id)
        shutil.rmtree(directory, ignore_errors=True)
        with suppress(OSError):
            base.rmdir()


def sweep() -> tuple[str, ...]:
    """Remove what runs left whose owner is gone; one line per thing removed."""
    removed: list[str] = []
    base = base_directory()
    if not base.is_dir() or base.stat().st_uid != os.geteuid():
        return ()
    for directory in sorted(base.iterdir()):
        if not _RUN_ID.match(directory.name) or directory.is_symlink() or _owner_lives(directory):
            continue
        removed += forget_names(directory.name)
        shutil.rmtree(directory, ignore_errors=True)
        removed.append(f"directory {directory}")
    with suppress(OSError):
        base.rmdir()
    return tuple(removed)


def _owner_lives(directory: Path) -> bool:
    try:
        state = json.loads((directory / "state.json").read_text())
        pid, started = int(state["pid"]), str(state["started"])
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return bool(started) and _started(pid) == started


def _started(pid: int) -> str:
    """Start time of a process in clock ticks since boot (proc(5), field 22): with the pid, an identity. Empty: gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    return text.rpartition(")")[2].split()[19]


def name_namespaces(run_id: str, sources: Mapping[str, str]) -> tuple[str, ...]:
    """
    Bind namespaces (pod -> a /proc path that refers to it) to ``/run/netns/stsc-<run id>-<pod>``, so that `ip netns exec`
    finds them. Needs real root.

    Raises OSError when the system has no writable /run/netns.
    """
    _NETNS.mkdir(parents=True, exist_ok=True)
    names = []
    for pod, source in sources.items():
        name = f"{PREFIX}-{run_id}-{re.sub(r'[^A-Za-z0-9.-]', '-', pod)}"
        target = _NETNS / name
        target.touch(mode=0o600, exist_ok=False)
        kernel.mount(source, str(target), None, kernel.MS_BIND)
        names.append(name)
    return tuple(names)


def forget_names(run_id: str) -> tuple[str, ...]:
    """Unmount and remove the names of one run; one line per name."""
    removed = []
    if not _NETNS.is_dir():
        return ()
    for target in sorted(_NETNS.glob(f"{PREFIX}-{run_id}-*")):
        with suppress(OSError):
            kernel.unmount(str(target))
        with suppress(OSError):
            target.unlink()
            removed.append(f"network namespace {target.name}")
    return tuple(removed)
