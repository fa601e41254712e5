"""An orderly end on the signals that CI systems, terminals and shutdowns send: what was built is taken down."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


def _leave(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)  # the shell's way to say which signal it was


@contextmanager
def orderly() -> Iterator[None]:
    """
    Inside, SIGTERM and SIGHUP unwind the stack as Ctrl-C does, instead of ending the process on the spot; SIGHUP stays
    ignored where the caller ignores it (nohup). For the main thread.
    """
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, _leave)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
