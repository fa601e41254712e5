"""Source excerpts with labelled places, in the look that rustc and cargo made familiar."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap as wrap_words
from typing import NamedTuple

from stallscope.findings import Label
from stallscope.model.source import Location, Span
from stallscope.render.escape import char_text, char_width, text_width, visible
from stallscope.render.report import Look, SourceCache
from stallscope.render.style import Style

#: A label's text stands beside its marks when at least this many columns are left there, else below them.
_BESIDE = 28


class Cropped(NamedTuple):
    """A source line as shown: safe text, and the columns `mark` to `mark + length` to underline."""

    text: str
    mark: int
    length: int


def excerpt(labels: Sequence[Label], severity: str, sources: SourceCache, look: Look) -> tuple[int, list[str]]:
    """
    The gutter's width, and the lines showing every label: the primary label's file first, files in order after it.

    A label whose text cannot be had (no line, or the file changed) gives its place and its text without an excerpt.
    """
    style = Style(look.color)
    groups = _by_file(labels)
    gutter = max((len(str(x.location.span.line)) for x in labels), default=1)
    lines: list[str] = []
    for position, group in enumerate(groups):
        lines += _group(group, gutter, "-->" if position == 0 else ":::", severity, sources, look, style)
    return gutter, lines


def _by_file(labels: Sequence[Label]) -> list[list[Label]]:
    ordered = sorted(labels, key=lambda x: not x.primary)
    files: dict[str, list[Label]] = {}
    for label in ordered:
        files.setdefault(label.location.file, []).append(label)
    return list(files.values())


def _group(
    labels: list[Label], gutter: int, arrow: str, severity: str, sources: SourceCache, look: Look, style: Style
) -> list[str]:
    pad = " " * gutter
    place = labels[0].location
    lines = [pad + style("gutter", arrow) + " " + place_text(place, look, style)]
    source = sources.lines(place.file) if place.span.line else None
    shown, printed = 0, ""
    bar = style("gutter", f"{pad} |")
    for label in sorted(labels, key=lambda x: (x.location.span.line, x.location.span.column)):
        line = label.location.span.line
        if source is None or not 0 < line <= len(source):
            text = visible(label.text)
            where = "" if len(labels) == 1 else f"{visible(str(label.location))}: "
            lines += [f"{bar} {style('dim', where)}{text}"] if text else []
            continue
        if shown == 0:
            lines.append(bar)
        elif line == shown + 2:
            lines.append(_numbered(shown + 1, gutter, source, look, style))
        elif line > shown + 2:
            lines.append(style("gutter", "..."))
        text = _numbered(line, gutter, source, look, style, label.location.span)
        if text != printed:  # also for another part of the same long line
            lines.append(text)
        printed = text
        lines += [f"{bar} {x}" for x in _marks(label, source[line - 1], severity, gutter, look, style)]
        shown = line
    return [*lines, bar] if shown else lines


def place_text(location: Location, look: Look, style: Style) -> str:
    """``file:line:col``, linked on a terminal, with the real source of rendered text."""
    text = visible(str(location)) or "(no file)"
    if look.link is not None:
        text = style.link(text, look.link(location))
    origin = visible(location.rendered_from)
    return f"{text} (rendered from {origin})" if origin else text


def _numbered(line: int, gutter: int, source: Sequence[str], look: Look, style: Style, span: Span | None = None) -> str:
    shown = crop(source[line - 1], span or Span(line, 1, line, 1, 0, 0), _room(gutter, look), look.unicode)
    return (style("gutter", f"{line:>{gutter}} |") + " " + shown.text).rstrip()


def _room(gutter: int, look: Look) -> int:
    return max(20, look.width - gutter - 3)


def _marks(label: Label, raw: str, severity: str, gutter: int, look: Look, style: Style) -> list[str]:
    room = _room(gutter, look)
    shown = crop(raw, label.location.span, room, look.unicode)
    kind = severity if label.primary else "gutter"
    marks = ("^" if label.primary else "-") * shown.length
    text = visible(label.text)
    head = " " * shown.mark + style(kind, marks)
    start = shown.mark + shown.length + 1
    if not text:
        return [head]
    if start + text_width(text) <= room:
        return [f"{head} {style(kind, text)}"]
    if room - start >= _BESIDE:
        words = wrap_words(text, room - start, break_long_words=False, break_on_hyphens=False)
        return [f"{head} {style(kind, words[0])}", *(" " * start + style(kind, x) for x in words[1:])]
    indent = min(shown.mark, max(0, room - 48))
    words = wrap_words(text, room - indent, break_long_words=False, break_on_hyphens=False)
    return [head, *(" " * indent + style(kind, x) for x in words)]


def crop(raw: str, span: Span, room: int, unicode: bool) -> Cropped:
    """
    `raw` made safe and cut to `room` columns around `span`; a span that goes on over further lines ends with the line.

    Only the part that can be seen is looked at: a JSON dump may be one line of megabytes.
    """
    dots = "…" if unicode else "..."
    first = min(max(span.column - 1, 0), len(raw))
    last = min(max(span.end_column - 1, first), len(raw)) if span.end_line <= span.line else len(raw.rstrip())
    skip = 0 if _columns(raw[: min(last, room + 1)]) <= room and last <= room else max(0, first - room // 3)
    text, column = (dots, len(dots)) if skip else ("", 0)
    mark = end = None
    for index in range(skip, len(raw)):
        if index == first:
            mark = column
        if index == last:
            end = column
        shown = char_text(raw[index])
        wide = len(shown) if len(shown) != 1 else char_width(shown)
        if column + wide > room - (0 if index == len(raw) - 1 else len(dots)):
            text += dots
            break
        text, column = text + shown, column + wide
    mark = column if mark is None else mark
    end = column if end is None else end
    return Cropped(text.rstrip(), mark, max(1, end - mark))


def _columns(raw: str) -> int:
    if raw.isascii() and raw.isprintable():
        return len(raw)
    return sum(len(s) if len(s := char_text(c)) != 1 else char_width(s) for c in raw)
