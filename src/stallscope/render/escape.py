"""Text of manifests on a person's screen: nothing in it may move the cursor, change colours, or reorder the line."""

from __future__ import annotations

import re

# C0 and C1 controls, DEL; line and paragraph separators; bidirectional and zero-width controls ("Trojan Source",
# Unicode TR 36 and TR 39); surrogates, which no encoding carries.
_UNSAFE = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
_NAMED = {"\n": "\\n", "\r": "\\r"}


def _escape(match: re.Match[str]) -> str:
    char = match.group()
    code = ord(char)
    return _NAMED.get(char) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")


def visible(text: str) -> str:
    """One line: every unsafe character as an escape, tabs as one space."""
    return _UNSAFE.sub(_escape, text).replace("\t", " ")


def char_text(char: str) -> str:
    """What one character of a source line looks like on screen; a tab is four columns."""
    return "    " if char == "\t" else _UNSAFE.sub(_escape, char)


def char_width(char: str) -> int:
    """Columns a safe character takes on a terminal (UAX 11: wide and fullwidth two, combining none)."""
    if char < "\u0300":
        return 1
    from unicodedata import combining, east_asian_width

    if combining(char):
        return 0
    return 2 if east_asian_width(char) in "WF" else 1


def text_width(text: str) -> int:
    """Columns of a safe text."""
    return len(text) if text.isascii() else sum(map(char_width, text))
