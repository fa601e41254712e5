"""``check --base``: the other state to compare with, a directory or a git revision, judged in the same way."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from stallscope.cli.options import InputOptions
from stallscope.errors import UsageError

GIT_TIMEOUT_S = 60


@contextmanager
def base_options(options: InputOptions, base: str) -> Iterator[InputOptions]:
    """
    `options` as they would have been in `base`: that directory instead of the paths, or the same paths at that git
    revision, unpacked into a temporary directory. Raises UsageError when `base` is neither.
    """
    if Path(base).is_dir():
        yield replace(options, paths=(base,))
        return
    if "-" in options.paths:
        raise UsageError("--base with a git revision cannot read standard input", hint="name files, or --base DIR")
    with tempfile.TemporaryDirectory(prefix="stallscope-base-") as scratch:
        _unpack(base, scratch)
        root = Path(_git("rev-parse", "--show-toplevel").decode().strip())
        paths = tuple(p for path in options.paths if (p := _moved(path, root, scratch)))
        nodes = tuple(_moved(path, root, scratch) or path for path in options.nodes)
        if not paths:
            raise UsageError(
                f"--base {base}: none of the paths existed there", hint="compare with a later revision, or --base DIR"
            )
        yield replace(options, paths=paths, nodes=nodes)


def _moved(path: str, root: Path, scratch: str) -> str:
    """
    Where `path` lies in the unpacked revision; empty when it did not exist there. What is outside the repository (the
    jobs, when a policy repository is under review) is the same on both sides.
    """
    try:
        relative = Path(path).resolve().relative_to(root.resolve())
    except ValueError:
        return path
    found = Path(scratch) / relative
    return str(found) if found.exists() else ""


def _unpack(revision: str, target: str) -> None:
    if revision.startswith("-"):
        raise UsageError(f"--base: '{revision}' is no revision", hint="a branch, a tag, a commit, or a directory")
    commit = _git("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}", what=revision).decode().strip()
    # An index of its own: the user's index and work tree stay as they are.
    index = {"GIT_INDEX_FILE": str(Path(target) / ".stallscope-index")}
    top = _git("rev-parse", "--show-toplevel").decode().strip()
    _git("-C", top, "read-tree", commit, env=index)
    _git("-C", top, "checkout-index", "--all", "--quiet", f"--prefix={target}/", env=index)


def _git(*args: str, what: str = "", env: Mapping[str, str] | None = None) -> bytes:
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", **(env or {})}
    try:
        done = subprocess.run(["git", *args], capture_output=True, timeout=GIT_TIMEOUT_S, env=environment, check=False)
    except FileNotFoundError:
        raise UsageError("--base needs git, which is not installed", hint="use --base DIR") from None
    except subprocess.TimeoutExpired:
        raise UsageError(f"git did not answer within {GIT_TIMEOUT_S} s", hint="use --base DIR") from None
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise UsageError(
            f"--base: '{what or args[0]}' is no revision here" + (f" ({said[0]})" if said else ""),
            hint="a branch, a tag, a commit, or a directory",
        )
    return done.stdout
