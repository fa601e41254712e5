"""Places in a text: spans, and the lines and columns behind character offsets, worked out when somebody asks."""

from __future__ import annotations

from array import array
from typing import NamedTuple

_BYTE_ORDER_MARK = "\ufeff"
_BLOCK = 4096  # characters between two remembered lines


class Span(NamedTuple):
    """A stretch of text. Lines and columns are 1-based; `start`/`end` are 0-based character offsets into the file."""

    line: int
    column: int
    end_line: int
    end_column: int
    start: int
    end: int


NO_SPAN = Span(0, 0, 0, 0, 0, 0)


class Places:
    """
    Where the nodes of one text stand: the text and, as plain character offsets, the start and end of every key, value
    and item. Lines and columns are worked out when somebody asks: most places of a manifest are never printed.
    """

    __slots__ = ("_blocks", "offsets", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.offsets: array[int] = array("I")
        self._blocks: tuple[array[int], array[int]] | None = None

    def __deepcopy__(self, memo: object) -> Places:
        return self

    def position(self, offset: int) -> tuple[int, int]:
        """
        Line and column, both 1-based, of a character offset. Lines end at LF, CR LF or a lone CR, as editors count; a
        byte order mark takes no column.
        """
        lines, starts = self._blocks or self._count()
        block = offset // _BLOCK if offset < len(self.text) else len(lines) - 1
        begin = block * _BLOCK
        column = offset - self._line_start(begin, offset, starts[block]) + 1
        return lines[block] + self._breaks(begin, offset), max(column, 1)

    def span(self, start: int, end: int) -> Span:
        """The span of ``text[start:end]``."""
        return Span(*self.position(start), *self.position(end), start, end)

    def _count(self) -> tuple[array[int], array[int]]:
        """The line at which each block of the text begins, and the offset at which that line begins."""
        line, start = 1, 1 if self.text.startswith(_BYTE_ORDER_MARK) else 0
        lines, starts = array("I"), array("I")
        for begin in range(0, len(self.text) + 1, _BLOCK):
            lines.append(line)
            starts.append(start)
            line += self._breaks(begin, begin + _BLOCK)
            start = self._line_start(begin, begin + _BLOCK, start)
        self._blocks = (lines, starts)
        return self._blocks

    def _breaks(self, begin: int, end: int) -> int:
        text = self.text
        return text.count("\n", begin, end) + text.count("\r", begin, end) - text.count("\r\n", begin, end + 1)

    def _line_start(self, begin: int, end: int, before: int) -> int:
        """Where the line of offset `end` begins; `before` when that is before `begin`."""
        text = self.text
        feed, back = text.rfind("\n", begin, end), text.rfind("\r", begin, end)
        if text.startswith("\r\n", back):  # only when `end` stands between the two
            back = text.rfind("\r", begin, back) if back > feed else -1
        return max(feed, back) + 1 if max(feed, back) >= 0 else before
