from __future__ import annotations

import os
import signal

import pytest

from stallscope.cli.ending import orderly


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_the_stack_is_unwound_and_the_shell_learns_the_signal(number: signal.Signals) -> None:
    before, steps = signal.getsignal(number), []
    with pytest.raises(SystemExit) as caught, orderly():
        try:
            os.kill(os.getpid(), number)
            signal.pause()
        finally:
            steps.append("taken down")
    assert steps == ["taken down"]
    assert caught.value.code == 128 + number
    assert signal.getsignal(number) is before


def test_nohup_is_respected() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with orderly():
            os.kill(os.getpid(), signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
