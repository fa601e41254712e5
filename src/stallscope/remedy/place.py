"""Positions in a text: where a line ends, where a block ends, which comments belong to it. Offsets are 0-based."""

from __future__ import annotations

import re
from typing import Any

from stallscope.model.source import ListNode, MapNode, Span

_COMMENT_OR_BLANK = re.compile(r"[ \t]*(#.*)?\r?\Z")
_BLOCK_SCALAR = re.compile(r"(?:[!&][^\s]*[ \t]+)*[|>]([-+0-9]*)")


class Text:
    """A text and what can be asked about places in it."""

    def __init__(self, text: str) -> None:
        self.text = text

    def at(self, span: Span) -> str:
        return self.text[span.start : span.end]

    def line_start(self, offset: int) -> int:
        return self.text.rfind("\n", 0, offset) + 1

    def line_end(self, offset: int) -> int:
        """Just behind the newline of the line at `offset`; an offset behind a newline ends there already."""
        if offset > 0 and self.text[offset - 1] == "\n":
            return offset
        end = self.text.find("\n", offset)
        return len(self.text) if end < 0 else end + 1

    def column(self, offset: int) -> int:
        return offset - self.line_start(offset)

    def line_indent(self, offset: int) -> int:
        start = self.line_start(offset)
        line = self.text[start:offset]
        return len(line) - len(line.lstrip(" "))

    def begins_line(self, offset: int) -> bool:
        """Only spaces stand before `offset` on its line."""
        return not self.text[self.line_start(offset) : offset].strip(" ")

    def begins_entry(self, offset: int) -> bool:
        """Only spaces and dashes stand before: a key that starts a line or a list item."""
        return re.fullmatch(r" *(- +)*", self.text[self.line_start(offset) : offset]) is not None

    def before_comments(self, offset: int) -> int:
        """Start of the blank and comment lines right above the line at `offset` (or of that line)."""
        start = self.line_start(offset)
        while start > 0:
            above = self.line_start(start - 1)
            if not _COMMENT_OR_BLANK.match(self.text[above : start - 1]):
                break
            start = above
        return start

    def line_after(self, offset: int, column: int) -> int:
        """
        Where a new line of a block at `column` goes, when the block's content ends at `offset`: behind that line and
        behind comment lines that belong to the block. Those stand at `column` or deeper, and deeper than what follows.
        """
        best = at = self.line_end(offset)
        taken: list[tuple[int, int]] = []
        following = -1
        while at < len(self.text):
            end = self.line_end(at + 1) if self.text[at] != "\n" else at + 1
            line = self.text[at:end].rstrip("\r\n")
            if not _COMMENT_OR_BLANK.match(line):
                marker = line.startswith(("---", "..."))
                following = -1 if marker else len(line) - len(line.lstrip(" "))
                break
            if "#" in line:
                taken.append((len(line) - len(line.lstrip()), end))
            else:
                taken.append((-1, end))
            at = end
        for indent, end in taken:
            if indent < 0:
                continue
            if indent < column or indent <= following:
                break
            best = end
        return best

    def end_of(self, value: Any, span: Span, key: Span | None) -> int:
        """Where the text of a value ends: behind its last character, or behind the colon when there is none."""
        raw = self.at(span)
        if not raw.strip():
            return self.behind_colon(key) if key is not None else span.start
        tidy = span.start + len(raw.rstrip())
        if isinstance(value, MapNode | ListNode) and self._own_block(value, span):
            return max(tidy, self._end_of_last(value))
        block = _BLOCK_SCALAR.match(raw)
        return self._behind_blank_lines(tidy) if block is not None and "+" in block[1] else tidy

    def _behind_blank_lines(self, offset: int) -> int:
        """A kept block scalar (``|+``) owns the blank lines below it."""
        match = re.compile(r"[ \t\r\n]*\n").match(self.text, offset)
        return match.end() if match else offset

    def _end_of_last(self, node: MapNode | ListNode) -> int:
        """The end of the member written last (a repeated key is not last in the mapping's own order)."""
        if isinstance(node, ListNode):
            return self.end_of(node[-1], node.item_spans[-1], None)
        own = [k for k in node if k not in node.merged]
        if not own:
            return 0
        last = max(own, key=lambda k: node.key_spans[k].start)
        return self.end_of(node[last], node.value_spans[last], node.key_spans[last])

    def _own_block(self, value: MapNode | ListNode, span: Span) -> bool:
        """A block collection written here, not an alias to one written elsewhere."""
        return not value.flow and bool(value) and value.span.start == span.start

    def behind_colon(self, key: Span) -> int:
        """Behind the colon that follows a key; behind the key when it has none (a lone key in a flow mapping)."""
        match = re.compile(r"\s*:").match(self.text, key.end)
        return match.end() if match else key.end

    def dash_column(self, span: Span, item: Span) -> int:
        """The column of the dashes of a block sequence."""
        if self.text[span.start : span.start + 1] == "-":
            return self.column(span.start)
        dash = self.text.rfind("-", self.line_start(item.start), item.start)
        return self.column(dash if dash >= 0 else item.start)

    def comma_after(self, offset: int, end: int) -> int | None:
        """Behind a comma that follows `offset` (comments and breaks between); None when the collection closes first."""
        match = re.compile(r"(?:\s|#[^\n]*)*,").match(self.text, offset, end)
        return match.end() if match else None

    def flow_line_end(self, offset: int, end: int) -> int:
        """Before the line break that follows `offset` inside a flow collection; `offset` itself when none does."""
        newline = self.text.find("\n", offset, end)
        if newline < 0:
            return offset
        return newline - 1 if self.text[newline - 1] == "\r" and newline > offset else newline

    def breaks(self, start: int, end: int) -> bool:
        return "\n" in self.text[start:end]

    def spaces_before(self, offset: int) -> int:
        while offset > 0 and self.text[offset - 1] in " \t":
            offset -= 1
        return offset

    def as_lines(self, at: int, lines: list[str], newline: str) -> str:
        """Whole lines to insert at `at`, the start of a line or the end of a text whose last line is open."""
        body = newline.join(lines)
        return newline + body if at and self.text[at - 1] != "\n" else body + newline
