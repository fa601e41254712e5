"""A unified diff that ``git apply`` and ``patch -p1`` accept as it is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from stallscope.remedy.align import Change, changes, hunks

_NO_NEWLINE = "\\ No newline at end of file\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """A file and its text before and after; `before` is None for a new file."""

    path: str
    before: str | None
    after: str


def unified_diff(files: Iterable[FileChange], *, context: int = 3) -> str:
    """The diff of all changes, files in order; unchanged ones add nothing."""
    return "".join(_one(file, context) for file in files if file.before != file.after)


def _one(change: FileChange, context: int) -> str:
    name = _quote(change.path)
    old = _lines(change.before or "")
    new = _lines(change.after)
    head = [f"--- {_side('a', name)}\n" if change.before is not None else "--- /dev/null\n", f"+++ {_side('b', name)}\n"]
    return "".join(
        [*head, *(line for group in hunks(changes(old, new), context) for line in _hunk(group, old, new, context))]
    )


def _side(letter: str, name: str) -> str:
    """``a/x``; a name with spaces is closed by a tab, as git writes it."""
    if name.startswith('"'):
        return f'"{letter}/{name[1:]}'
    return f"{letter}/{name}\t" if " " in name else f"{letter}/{name}"


def _quote(path: str) -> str:
    """git's C-style quoting for names with quotes, backslashes or control characters; the leading ``/`` goes."""
    path = path.lstrip("/").removeprefix("./")
    if not any(c in '"\\' or ord(c) < 32 or ord(c) == 127 for c in path):
        return path
    special = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
    return '"' + "".join(special.get(c) or (f"\\{ord(c):03o}" if ord(c) < 32 or ord(c) == 127 else c) for c in path) + '"'


def _lines(text: str) -> list[str]:
    """Lines with their ``\\n``; other characters that Python calls line ends are ordinary here."""
    lines = text.split("\n")
    last = lines.pop()
    return [line + "\n" for line in lines] + ([last] if last else [])


def _hunk(group: Sequence[Change], old: Sequence[str], new: Sequence[str], context: int) -> Iterable[str]:
    first, last = group[0], group[-1]
    start = max(first.old_start - context, 0)
    stop = min(last.old_end + context, len(old))
    shift = first.new_start - first.old_start
    new_stop = last.new_end + (stop - last.old_end)
    yield f"@@ -{_range(start, stop)} +{_range(start + shift, new_stop)} @@\n"
    at = start
    for change in group:
        yield from _marked(" ", old[at : change.old_start])
        yield from _marked("-", old[change.old_start : change.old_end])
        yield from _marked("+", new[change.new_start : change.new_end])
        at = change.old_end
    yield from _marked(" ", old[at:stop])


def _marked(mark: str, lines: Sequence[str]) -> Iterable[str]:
    for line in lines:
        yield mark + line if line.endswith("\n") else f"{mark}{line}\n{_NO_NEWLINE}"


def _range(start: int, stop: int) -> str:
    """``start,length`` as POSIX diff counts: 1-based, and the line before for an empty range."""
    length = stop - start
    first = start + 1 if length else start
    return str(first) if length == 1 else f"{first},{length}"
