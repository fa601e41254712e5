"""The text of the files in a report, read once, for excerpts and suppressions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

_BREAK = re.compile(r"\r\n|\n|\r")  # YAML 1.1 §4.2, less the Unicode separators that libyaml does not count as lines here
MAX_BYTES = 64 << 20


class FileSources:
    """
    A `SourceCache` over the file system. `given` holds texts that are no files (standard input). A file that cannot be
    read, or is no text, has no lines: the report then goes without an excerpt.
    """

    def __init__(self, given: Mapping[str, str] | None = None) -> None:
        self._texts: dict[str, str | None] = dict(given or {})
        self._lines: dict[str, Sequence[str] | None] = {}

    def give(self, texts: Mapping[str, str]) -> None:
        """Add texts that were read already."""
        self._texts.update(texts)

    def text(self, file: str) -> str | None:
        """The whole text, without a byte order mark."""
        if file not in self._texts:
            self._texts[file] = _read(file)
        return self._texts[file]

    def lines(self, file: str) -> Sequence[str] | None:
        """The lines without their line ends."""
        if file not in self._lines:
            text = self.text(file)
            self._lines[file] = None if text is None else _BREAK.split(text.removeprefix("\ufeff"))
        return self._lines[file]


def _read(file: str) -> str | None:
    from stallscope.load.text import NotText, decode

    try:
        path = Path(file)
        if not path.is_file() or path.stat().st_size > MAX_BYTES:
            return None
        return decode(path.read_bytes())
    except (OSError, ValueError, NotText):
        return None
