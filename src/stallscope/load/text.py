"""Bytes to text, and what in a text no YAML parser takes."""

from __future__ import annotations

import codecs
import re

from stallscope.model.source import Span

_PRINTABLE = bytes([0x09, 0x0A, 0x0D, *range(0x20, 0x7F)])
#: Outside YAML's c-printable (YAML 1.2 section 5.1), as libyaml's reader checks it; lone surrogates included.
_NOT_PRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class NotText(Exception):
    """The bytes are no text: `message` says what is wrong, `hint` what to do, `span` where."""

    def __init__(self, message: str, hint: str, span: Span) -> None:
        super().__init__(message)
        self.message, self.hint, self.span = message, hint, span


def decode(data: bytes) -> str:
    """
    The text of a file: UTF-8, or UTF-16 where a byte order mark says so (PowerShell's ``>``). A UTF-8 byte order mark
    stays, so that the text can be written back as it was. Raises NotText.
    """
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "utf-16"
    else:
        encoding = "utf-8"
        nul = data.find(b"\0")
        if nul >= 0:
            hint = "this looks like a binary file; or save the text as UTF-8 (it may be UTF-16 without a mark)"
            raise NotText(f"not text: a NUL byte at offset {nul:,}", hint, _span(data, nul))
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        at = error.start
        message = f"not {encoding.upper()}: byte 0x{data[at]:02x} at offset {at:,}"
        raise NotText(message, "save the file as UTF-8", _span(data, at) if encoding == "utf-8" else _span(b"", 0)) from None


def unprintable(text: str) -> re.Match[str] | None:
    """The first character that YAML forbids everywhere, if any."""
    if text.isascii() and not text.encode().translate(None, _PRINTABLE):
        return None
    return _NOT_PRINTABLE.search(text)


def next_unprintable(text: str, begin: int) -> int:
    """The offset of the next forbidden character from `begin` on, or the length of `text`."""
    match = _NOT_PRINTABLE.search(text, begin)
    return match.start() if match else len(text)


def _span(data: bytes, at: int) -> Span:
    before = data[:at]
    line = before.count(b"\n") + 1
    start = len(before.decode("utf-8", "replace"))
    column = len(before[before.rfind(b"\n") + 1 :].decode("utf-8", "replace")) + 1
    return Span(line, column, line, column + 1, start, start + 1)
