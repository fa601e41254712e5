"""The terminal: what it can show, and writing to it without ever failing because of it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TextIO

#: Width of reports that no terminal shows (logs, files).
LOG_WIDTH = 100


def wants_color(choice: str, stream: TextIO, environ: Mapping[str, str] | None = None) -> bool:
    """
    Whether to colour `stream`. `choice` is auto, always or never; under auto, NO_COLOR wins, then FORCE_COLOR and
    CLICOLOR_FORCE (any value but empty and 0), then whether it is a terminal (no-color.org, force-color.org).
    """
    env = os.environ if environ is None else environ
    if choice != "auto":
        return choice == "always"
    if env.get("NO_COLOR"):
        return False
    if any(env.get(name, "0") not in ("", "0") for name in ("FORCE_COLOR", "CLICOLOR_FORCE")):
        return True
    return is_terminal(stream) and env.get("TERM") != "dumb"


def is_terminal(stream: TextIO) -> bool:
    """True when a person reads `stream`; False for closed and odd streams."""
    try:
        return stream.isatty()
    except (AttributeError, ValueError):
        return False


def speaks_unicode(stream: TextIO) -> bool:
    """Whether `stream` can carry the two non-ASCII signs of the text report."""
    try:
        "…·".encode(getattr(stream, "encoding", None) or "ascii")
    except (LookupError, UnicodeError):
        return False
    return True


def width_of(stream: TextIO) -> int:
    """Columns to write for: the terminal's (40 to 140), else `LOG_WIDTH`."""
    if not is_terminal(stream):
        return LOG_WIDTH
    try:
        columns = int(os.environ.get("COLUMNS", "0")) or os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        columns = 80
    return max(40, min(140, columns))


def write(text: str, stream: TextIO | None = None) -> None:
    """
    Write `text`; what the stream's encoding lacks is escaped.

    A reader that went away (``| head``) is no error and does not change the exit code: the rest is dropped.
    """
    out = sys.stdout if stream is None else stream
    encoding = getattr(out, "encoding", None) or "utf-8"
    try:
        out.write(text.encode(encoding, "backslashreplace").decode(encoding))
        out.flush()
    except BrokenPipeError:
        _drop(out)


def say(text: str, stream: TextIO | None = None) -> None:
    """One line for a person, on stderr unless told otherwise."""
    write(text + "\n", sys.stderr if stream is None else stream)


def _drop(stream: TextIO) -> None:
    """Point the stream's descriptor at nowhere, so that the interpreter's flush at exit does not complain either."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
    except (OSError, ValueError):
        pass


@contextmanager
def progress(text: str, *, shown: bool, delay: float = 0.6) -> Iterator[None]:
    """A line on stderr while slow work runs; nothing for work shorter than `delay` seconds or when not `shown`."""
    if not (shown and is_terminal(sys.stderr)):
        yield
        return
    import threading

    started = threading.Event()

    def show() -> None:
        started.set()
        write(f"{text} …\r" if speaks_unicode(sys.stderr) else f"{text} ...\r", sys.stderr)

    timer = threading.Timer(delay, show)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        if started.is_set():
            write("\r\x1b[2K", sys.stderr)
