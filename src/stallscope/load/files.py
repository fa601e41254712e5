"""The bytes of a file, a pipe or standard input: bounded, and said clearly when they cannot be had."""

from __future__ import annotations

import sys
from typing import BinaryIO

from stallscope.errors import LoadError
from stallscope.judge.inputs import Problem, ProblemKind
from stallscope.load.complaints import too_large
from stallscope.load.discover import Source, reason
from stallscope.load.limits import Limits
from stallscope.load.text import NotText, decode
from stallscope.model.source import Location, Span

_FIRST = Span(1, 1, 1, 1, 0, 0)


def read_source(source: Source, limits: Limits) -> str | Problem:
    """The text of a source, or why it is none. Raises LoadError when a file that the user named cannot be opened."""
    try:
        if source.is_stdin:
            data = _read(sys.stdin.buffer, limits)
        else:
            with source.path.open("rb") as stream:
                data = _read(stream, limits)
    except (OSError, ValueError) as error:
        why = reason(error) if isinstance(error, OSError) else str(error)
        if source.named:
            raise LoadError(f"{source.name}: cannot be read: {why}", hint="check the path and its permissions") from None
        return _problem(source.name, f"cannot be read: {why}", "check its permissions", _FIRST)
    if len(data) > limits.json_size:
        complaint = too_large(len(data), limits.json_size, more=True)
        return _problem(source.name, complaint.message, complaint.hint, _FIRST)
    try:
        return decode(data)
    except NotText as wrong:
        return _problem(source.name, wrong.message, wrong.hint, wrong.span)


def _read(stream: BinaryIO, limits: Limits) -> bytes:
    """No more than one byte over the limit, whatever the stream is (a pipe has no size, /dev/zero no end)."""
    return stream.read(limits.json_size + 1)


def _problem(file: str, message: str, hint: str, span: Span) -> Problem:
    return Problem(kind=ProblemKind.UNREADABLE, message=message, location=Location(file=file, span=span), hint=hint)
