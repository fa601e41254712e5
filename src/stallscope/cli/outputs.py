"""``-o FORMAT[=FILE]``: what to render and where to put it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from stallscope.cli.console import is_terminal, speaks_unicode, wants_color, width_of, write
from stallscope.cli.options import FORMATS
from stallscope.errors import UsageError
from stallscope.model.source import Location
from stallscope.render.formats import render
from stallscope.render.report import Look, Report, SourceCache


class Output(NamedTuple):
    """One format and its file; an empty `file` is standard output."""

    format: str
    file: str = ""


def parse_outputs(specs: Sequence[str], formats: Collection[str] = FORMATS) -> tuple[Output, ...]:
    """
    The outputs asked for, among `formats`; text on standard output when there is none. Raises UsageError for unknown
    formats, and when two reports would mix on one stream or in one file.
    """
    found = [_parse(spec, formats) for spec in specs] or [Output("text")]
    for index, output in enumerate(found):
        if any(output.file == other.file for other in found[:index]):
            where = output.file or "standard output"
            raise UsageError(
                f"-o: two reports for {where}", hint="give all but one a file of its own: -o sarif=report.sarif"
            )
    return tuple(found)


def _parse(spec: str, formats: Collection[str]) -> Output:
    name, sign, file = spec.partition("=")
    if name not in formats:
        from difflib import get_close_matches

        near = get_close_matches(name, formats, n=1)
        instead = f"; did you mean {near[0]!r}?" if near else ""
        raise UsageError(f"-o: unknown format {name!r}{instead}", hint=f"formats: {', '.join(formats)}")
    if sign and not file:
        raise UsageError(f"-o: no file after {spec!r}", hint=f"write -o {name} for standard output, or -o {name}=FILE")
    return Output(name, "" if file == "-" else file)


def emit(
    outputs: Sequence[Output],
    report: Report,
    sources: SourceCache,
    *,
    color: str = "auto",
    prog: str = "stallscope",
    again: str = "PATH",
) -> None:
    """
    Render every output: files first, so that a reader of standard output may rely on them. `again` are the arguments
    that give another verb the same input.
    """
    plain = Look(color=color == "always", prog=prog, inputs=again)
    for output in sorted(outputs, key=lambda o: not o.file):
        if output.file:
            replace_file(output.file, render(output.format, report, sources, plain))
            continue
        write(render(output.format, report, sources, look_for_stdout(color, prog, again)))
        if output.format == "github":
            _job_summary(report, sources, replace(plain, color=False))


def emit_views(outputs: Sequence[Output], views: Mapping[str, Callable[[], str]]) -> None:
    """Write each output with the view of its format: for verbs whose report is not a list of findings."""
    for output in sorted(outputs, key=lambda o: not o.file):
        text = views[output.format]()
        if output.file:
            replace_file(output.file, text)
        else:
            write(text)


def look_for_stdout(color: str, prog: str, again: str = "PATH") -> Look:
    """How text on standard output looks: as wide, coloured and linked as whoever reads it can show."""
    colored = wants_color(color, sys.stdout)
    return Look(
        width=width_of(sys.stdout),
        color=colored,
        unicode=speaks_unicode(sys.stdout),
        prog=prog,
        inputs=again,
        link=_file_url if colored and is_terminal(sys.stdout) else None,
    )


def _file_url(location: Location) -> str:
    path = Path(location.file)
    try:
        return path.absolute().as_uri() if location.file and path.is_file() else ""
    except (OSError, ValueError):
        return ""


def replace_file(file: str, text: str) -> None:
    """
    Write `text` to a temporary file beside `file` and rename it, so that nobody ever reads half a report. Devices and
    pipes are written in place. Raises UsageError when that fails.
    """
    import tempfile

    path = Path(file)
    data = text.encode("utf-8", "backslashreplace")
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(data)
            return
        target = path.resolve()  # a link stays a link
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".tmp")
        try:
            with os.fdopen(handle, "wb") as out:
                out.write(data)
            Path(temporary).chmod(_mode(target))
            Path(temporary).replace(target)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise UsageError(f"cannot write {file}: {error.strerror or error}") from error


def _mode(target: Path) -> int:
    """The permissions of the file that is replaced, or those a new file would get (mkstemp makes them private)."""
    if target.exists():
        return target.stat().st_mode & 0o777
    mask = os.umask(0o077)
    os.umask(mask)
    return 0o666 & ~mask


def _job_summary(report: Report, sources: SourceCache, look: Look) -> None:
    """On GitHub Actions, add the Markdown report to the summary page of the job: annotations stop at ten."""
    file = os.environ.get("GITHUB_STEP_SUMMARY")
    if not file:
        return
    try:
        with Path(file).open("a", encoding="utf-8", errors="backslashreplace") as out:
            out.write(render("md", report, sources, look))
    except OSError as error:
        raise UsageError(f"cannot write the job summary {file}: {error.strerror or error}") from error
