from __future__ import annotations

import io
import os
import subprocess
import sys

import pytest

from stallscope.cli.console import speaks_unicode, wants_color, width_of, write


class Stream(io.StringIO):
    def __init__(self, terminal: bool, encoding: str = "utf-8") -> None:
        super().__init__()
        self._terminal, self._encoding = terminal, encoding

    @property
    def encoding(self) -> str:
        return self._encoding

    def isatty(self) -> bool:
        return self._terminal


@pytest.mark.parametrize(
    ("choice", "terminal", "env", "colored"),
    [
        ("auto", True, {}, True),
        ("auto", False, {}, False),
        ("auto", True, {"NO_COLOR": "1"}, False),
        ("auto", True, {"NO_COLOR": ""}, True),  # no-color.org: "when present and not an empty string"
        ("auto", False, {"FORCE_COLOR": "1"}, True),
        ("auto", False, {"FORCE_COLOR": "0"}, False),
        ("auto", False, {"CLICOLOR_FORCE": "1"}, True),
        ("auto", False, {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        ("auto", True, {"TERM": "dumb"}, False),
        ("always", False, {"NO_COLOR": "1"}, True),
        ("never", True, {"FORCE_COLOR": "1"}, False),
    ],
)
def test_colours(choice, terminal, env, colored) -> None:
    assert wants_color(choice, Stream(terminal), env) is colored


def test_what_the_encoding_lacks_is_escaped() -> None:
    stream = Stream(False, "ascii")
    write("a…é\n", stream)
    assert stream.getvalue() == "a\\u2026\\xe9\n"
    assert not speaks_unicode(stream)
    assert speaks_unicode(Stream(False))


def test_width() -> None:
    assert width_of(Stream(False)) == 100
    assert 40 <= width_of(Stream(True)) <= 140


def test_a_reader_that_leaves_is_no_error_and_does_not_change_the_exit_code() -> None:
    code = "import sys; from stallscope.cli.console import write\nfor _ in range(50): write('x' * 65536)\nsys.exit(7)"
    read, written = os.pipe()
    os.close(read)
    done = subprocess.run([sys.executable, "-c", code], stdout=written, stderr=subprocess.PIPE, check=False)
    os.close(written)
    assert (done.returncode, done.stderr) == (7, b"")
