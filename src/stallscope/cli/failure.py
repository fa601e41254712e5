"""One place where failures become an exit code and two calm lines (the pattern of pre-commit's error_handler)."""

from __future__ import annotations

import sys
from collections.abc import Callable

import click

from stallscope import __version__
from stallscope.cli import exitcodes
from stallscope.cli.console import say, wants_color
from stallscope.errors import StallscopeError


def guarded(run: Callable[[], int], prog: str) -> int:
    """The exit code of `run`; expected errors print ``error:`` and ``hint:``, unexpected ones leave a log to paste."""
    try:
        return run()
    except StallscopeError as error:
        report(error.message, error.hint)
        return error.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        say(error.format_message())  # the help of a group of verbs, as it is
        return exitcodes.ERROR
    except click.ClickException as error:
        report(_click_message(error), _click_hint(error, prog))
        return exitcodes.ERROR
    except (KeyboardInterrupt, click.Abort):
        say("interrupted")
        return exitcodes.INTERRUPTED
    except BrokenPipeError:
        return exitcodes.ERROR
    except Exception as error:
        return _unexpected(error)


def report(message: str, hint: str = "") -> None:
    """``error: message`` and ``hint: hint`` on stderr, control characters escaped."""
    from stallscope.render.escape import visible

    strong, cyan, off = ("\x1b[1;31m", "\x1b[36m", "\x1b[0m") if wants_color("auto", sys.stderr) else ("", "", "")
    say(f"{strong}error:{off} {visible(message)}")
    for line in hint.splitlines():
        say(f"{cyan}hint:{off} {visible(line)}")


def _click_message(error: click.ClickException) -> str:
    message = error.format_message().rstrip(".")
    return message[:1].lower() + message[1:]


def _click_hint(error: click.ClickException, prog: str) -> str:
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else prog
    return f"`{path} --help` shows what it takes"


def _unexpected(error: Exception) -> int:
    kind = type(error).__name__
    where = _crash_log(error)
    text = " ".join(str(error).split())[:200]
    report(f"this is a bug in Stallscope: {kind}: {text}" if text else f"this is a bug in Stallscope: {kind}")
    if where:
        say(f"hint: please report it with the log in {where}")
    return exitcodes.ERROR


def _crash_log(error: Exception) -> str:
    """Write version, command line and traceback to a private temporary file; its path, empty when that failed."""
    import os
    import platform
    import tempfile
    import traceback

    lines = [
        f"stallscope {__version__}, Python {platform.python_version()}, {platform.platform()}",
        "command: " + " ".join(map(ascii, sys.argv)),
        "",
        *traceback.format_exception(error, limit=-40),
    ]
    try:
        handle, path = tempfile.mkstemp(prefix="stallscope-crash-", suffix=".log")
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as log:
            log.write("\n".join(lines))
    except OSError:
        return ""
    return path
