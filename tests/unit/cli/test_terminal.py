"""On a real (pseudo) terminal."""

from __future__ import annotations

import fcntl
import os
import re
import struct
import subprocess
import sys
import termios

import pytest


def on_terminal(*args: str, columns: int, **env: str) -> str:
    """What a terminal of that width is sent."""
    pty = pytest.importorskip("pty")
    try:
        master, slave = pty.openpty()
    except OSError as error:  # no /dev/pts, as in a plain chroot
        pytest.skip(f"no pseudo-terminal here: {error}")
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    clean = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "TERM")}
    process = subprocess.Popen(
        [sys.executable, "-m", "stallscope", *args],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env={**clean, "TERM": "xterm-256color", **env},
    )
    os.close(slave)
    shown = b""
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:  # Linux says EIO when the last writer is gone
            break
        if not part:
            break
        shown += part
    process.wait()
    os.close(master)
    return shown.decode().replace("\r\n", "\n")


def test_colours_and_links_for_a_person() -> None:
    shown = on_terminal("explain", "none-such", columns=80)
    assert shown.startswith("\x1b[1;31merror:\x1b[0m there is no rule 'none-such'")
    assert on_terminal("explain", "none-such", columns=80, NO_COLOR="1").startswith("error: there is no rule")


def test_a_report_on_80_columns(place) -> None:
    (place / "bad.yaml").write_text("apiVersion: v1\nkind: [\n")
    shown = on_terminal("check", "job.yaml", "bad.yaml", "-n", "train", columns=80)
    assert "\x1b]8;;file://" in shown and "/bad.yaml\x1b\\bad.yaml:" in shown
    plain = re.sub(r"\x1b\]8;;[^\x1b]*\x1b\\|\x1b\[[0-9;]*m", "", shown)
    assert "\x1b" not in plain
    report = [line for line in plain.splitlines() if not re.match(r"(error|warning|info|hint)[\[:]|\d+ findings", line)]
    assert report and max(map(len, report)) <= 80
