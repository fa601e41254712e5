"""
Colours and hyperlinks of the text report. Own code, because it is these few lines: importing rich alone costs as much as
the whole of click (figures in docs/output.md), on every run with a finding.
"""

from __future__ import annotations

from textwrap import TextWrapper

from stallscope.render.escape import text_width, visible

_CODES = {
    "error": "1;31",
    "warning": "1;33",
    "info": "1;36",
    "note": "1",
    "fix": "1;32",
    "help": "1;36",
    "gutter": "1;34",
    "strong": "1",
    "dim": "2",
}


class Style:
    """Paints text when `color` is on; otherwise gives it back as it is."""

    __slots__ = ("color",)

    def __init__(self, color: bool) -> None:
        self.color = color

    def __call__(self, kind: str, text: str) -> str:
        """`text` in the colours of `kind`: a severity, or one of the parts of a report."""
        return f"\x1b[{_CODES[kind]}m{text}\x1b[0m" if self.color and text else text

    def link(self, text: str, url: str) -> str:
        """`text` as an OSC 8 hyperlink when there is a `url` and `color` is on (colours mean a terminal)."""
        if not (self.color and url):
            return text
        return f"\x1b]8;;{visible(url)}\x1b\\{text}\x1b]8;;\x1b\\"


def wrap(text: str, width: int, *, first: str = "", rest: str = "") -> list[str]:
    """
    Wrap safe `text` to `width` columns, words unbroken; lines begin with `first` and then `rest`. Own line breaks stay.
    """
    wrapper = TextWrapper(width=max(width, 20), break_long_words=False, break_on_hyphens=False)
    lines: list[str] = []
    for paragraph in text.splitlines() or [""]:
        wrapper.initial_indent = rest if lines else first
        wrapper.subsequent_indent = rest
        safe = visible(paragraph)
        if text_width(safe) == len(safe):
            lines += wrapper.wrap(safe) or [wrapper.initial_indent.rstrip()]
        else:
            lines.append(wrapper.initial_indent + safe)
    return lines
