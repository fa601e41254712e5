"""Which files to read: named files always, directories by suffix, hidden and git-ignored ones left out."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from stallscope.errors import LoadError

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

SUFFIXES = frozenset({".yaml", ".yml", ".json"})
STDIN = "-"


class Source(NamedTuple):
    """A file to read, as people will see it named. `named`: the user named it, rather than a directory above it."""

    path: Path
    name: str
    named: bool

    @property
    def is_stdin(self) -> bool:
        return self.name == STDIN


class Found(NamedTuple):
    """
    The files of all paths, each once, in order; `empty` are the directories that hold none, `unlisted` those below a named
    one whose entries the system would not give, with its reason.
    """

    sources: tuple[Source, ...]
    empty: tuple[str, ...] = ()
    unlisted: tuple[tuple[str, str], ...] = ()


def discover(paths: Iterable[str]) -> Found:
    """
    The files that `paths` name: a file is read whatever it is called, a directory gives its .yaml, .yml and .json files in
    sorted order, ``-`` is standard input. Raises LoadError for a path that does not exist or cannot be listed.
    """
    sources: dict[str, Source] = {}
    empty = []
    unlisted: dict[str, str] = {}
    for text in paths:
        if not text:
            raise LoadError("a PATH is empty", hint="is a variable of the script unset? . is this directory")
        if text == STDIN:
            sources.setdefault(STDIN, Source(path=Path(STDIN), name=STDIN, named=True))
            continue
        path = Path(text)
        if path.is_dir():
            files = [Source(path=f, name=str(f), named=False) for f in _walk(path, unlisted)]
            if not files:
                empty.append(text)
        elif path.exists():
            files = [Source(path=path, name=text, named=True)]
        else:
            raise _missing(text, path)
        for source in files:
            key = os.path.realpath(source.path)
            if key not in sources or source.named:
                sources[key] = source
    return Found(sources=tuple(sources.values()), empty=tuple(empty), unlisted=tuple(unlisted.items()))


def _missing(text: str, path: Path) -> LoadError:
    if path.is_symlink():
        return LoadError(f"{text}: a symbolic link to nothing", hint="check where it points")
    parent = path.parent
    where = "the current directory" if parent == Path() else str(parent)
    if not parent.is_dir():
        return LoadError(f"{text}: no such file or directory", hint=f"{where} does not exist either")
    similar = _similar(path)
    hint = f"did you mean {similar}?" if similar else f"there is no {path.name} in {where}"
    return LoadError(f"{text}: no such file or directory", hint=hint)


def _similar(path: Path) -> str:
    """What stands beside the missing file under nearly the same name."""
    from difflib import get_close_matches

    try:
        names = [entry.name for entry in os.scandir(path.parent)]
    except OSError:
        return ""
    close = get_close_matches(path.name, names[:5000], n=1, cutoff=0.75)
    return str(path.parent / close[0]) if close else ""


def _walk(top: Path, unlisted: dict[str, str]) -> Iterator[Path]:
    """
    The manifests below `top`: a directory's files, then its directories, sorted. What links reach twice is read once.
    Directories below it that cannot be listed go to `unlisted`.
    """
    real = top.resolve()
    seen: set[tuple[int, int]] = set()
    pending = [(top, real.as_posix(), _Ignore.above(real))]
    while pending:
        directory, place, ignore = pending.pop()
        try:
            status = directory.stat()
            entries = sorted(os.scandir(directory), key=lambda e: e.name)
        except OSError as error:
            if directory == top:
                raise LoadError(f"{top}: cannot be listed: {reason(error)}", hint="check its permissions") from None
            unlisted[str(directory)] = reason(error)
            continue
        if (status.st_dev, status.st_ino) in seen:
            continue
        seen.add((status.st_dev, status.st_ino))
        if any(e.name == ".gitignore" for e in entries):
            ignore = ignore.adding(place, directory)
        below = []
        for entry in entries:
            inside = f"{place.rstrip('/')}/{entry.name}"
            if entry.name.startswith("."):
                continue
            if _is(entry.is_dir):
                if not ignore.covers(inside + "/"):
                    below.append((directory / entry.name, inside, ignore))
            elif Path(entry.name).suffix.lower() in SUFFIXES and _is(entry.is_file) and not ignore.covers(inside):
                yield directory / entry.name
        pending += reversed(below)


def _is(question: Callable[[], bool]) -> bool:
    """`is_dir` and `is_file` raise on a link that leads to itself."""
    try:
        return question()
    except OSError:
        return False


class _Rules:
    """
    One .gitignore. pathspec, which takes longer to load than a job takes to judge, is loaded for the first path that holds
    the fixed parts of some line: a path without them cannot match (no wildcard crosses a ``/``).
    """

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = [line for line in lines if line.strip() and not line.startswith("#")]
        self._fixed = [_fixed_parts(line) for line in self._lines]
        self._spec: GitIgnoreSpec | None = None

    def says(self, path: str) -> bool | None:
        """Whether the path is ignored; None when no line matches it."""
        if not any(all(part in path for part in parts) for parts in self._fixed):
            return None
        if self._spec is None:
            from pathspec import GitIgnoreSpec

            self._spec = GitIgnoreSpec.from_lines(self._lines)
        return self._spec.check_file(path).include


def _fixed_parts(line: str) -> list[str]:
    """The text between the wildcards of a line, up to the first bracket or escape."""
    plain = re.split(r"[\[\\]", line.strip().removeprefix("!"), maxsplit=1)[0]
    return [part for part in re.split(r"[*?/]+", plain) if part]


class _Ignore:
    """The .gitignore files in force at a directory, the nearest last."""

    def __init__(self, levels: Sequence[tuple[str, _Rules]] = ()) -> None:
        self._levels = tuple(levels)

    @classmethod
    def above(cls, top: Path) -> _Ignore:
        """Those of the directories between `top` and the root of its git repository; none when they ignore `top` itself."""
        chain = (top, *top.parents)
        depth = next((i for i, d in enumerate(chain) if (d / ".git").exists()), 0)
        ignore = cls()
        for directory in reversed(chain[1 : depth + 1]):
            ignore = ignore.adding(directory.as_posix(), directory)
        return cls() if any(ignore.covers(d.as_posix() + "/") for d in chain[:depth]) else ignore

    def adding(self, place: str, directory: Path) -> _Ignore:
        try:
            lines = (directory / ".gitignore").read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return self
        return _Ignore((*self._levels, (place.rstrip("/") + "/", _Rules(lines))))

    def covers(self, place: str) -> bool:
        """Whether git would ignore the path (a directory ends in "/"); the nearest .gitignore that says anything decides."""
        for base, rules in reversed(self._levels):
            if place.startswith(base) and place != base:
                said = rules.says(place[len(base) :])
                if said is not None:
                    return said
        return False


def reason(error: OSError) -> str:
    """Why the system refused, in its words."""
    return (error.strerror or str(error)).lower()
