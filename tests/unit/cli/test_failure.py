"""Every failure is one or two calm lines and an exit code."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from stallscope.cli import exitcodes
from stallscope.cli.failure import guarded
from stallscope.cli.main import run
from stallscope.errors import LoadError, NothingToCheck


def raising(error: BaseException):
    def run() -> int:
        raise error

    return run


def test_expected_errors_tell_what_and_what_to_do(capsys) -> None:
    assert guarded(raising(LoadError("a.yaml:3: not YAML", hint="indent it\nor leave it out")), "stallscope") == 2
    assert capsys.readouterr() == ("", "error: a.yaml:3: not YAML\nhint: indent it\nhint: or leave it out\n")
    assert guarded(raising(NothingToCheck("nothing")), "stallscope") == 3
    assert capsys.readouterr().err == "error: nothing\n"


def test_an_error_text_cannot_drive_the_terminal(capsys) -> None:
    guarded(raising(LoadError("\x1b[2J\nerror: forged")), "stallscope")
    assert capsys.readouterr().err == "error: \\x1b[2J\\nerror: forged\n"


def test_interruption(capsys) -> None:
    assert guarded(raising(KeyboardInterrupt()), "stallscope") == 130
    assert capsys.readouterr().err == "interrupted\n"


@pytest.mark.parametrize("error", [RuntimeError("odd\nthing"), RecursionError(), MemoryError(), NotImplementedError()])
def test_a_bug_leaves_a_log_and_no_traceback_on_screen(error, capsys, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert guarded(raising(error), "stallscope") == 2
    out, err = capsys.readouterr()
    assert out == "" and "Traceback" not in err
    first, second = err.splitlines()
    assert first.startswith(f"error: this is a bug in Stallscope: {type(error).__name__}")
    (log,) = tmp_path.glob("*.log")
    assert second == f"hint: please report it with the log in {log}"
    text = log.read_text()
    assert "stallscope 0" in text and "Traceback" in text and "test_failure.py" in text
    assert log.stat().st_mode & 0o077 == 0


def test_a_bug_without_a_place_for_the_log(capsys, monkeypatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(Path("/nonexistent")))
    assert guarded(raising(RuntimeError("x")), "stallscope") == 2
    assert capsys.readouterr().err == "error: this is a bug in Stallscope: RuntimeError: x\n"


def test_a_group_without_a_verb_shows_its_help_as_it_is(capsys) -> None:
    assert run(["bench"]) == exitcodes.ERROR
    told = capsys.readouterr().err.splitlines()
    assert told[0] == "Usage: stallscope bench [OPTIONS] COMMAND [ARGS]..."
    assert any(line.split()[:1] == ["faults"] for line in told)
