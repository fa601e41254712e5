"""The text edits themselves: new keys, new items, content for an empty value, another scalar."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from stallscope.errors import PatchRefused
from stallscope.model.source import ListNode, MapNode, Route, Span
from stallscope.remedy import emit
from stallscope.remedy.emit import Style
from stallscope.remedy.ops import show_route
from stallscope.remedy.place import Text


class TextEdit(NamedTuple):
    """Replace `start`..`end` by `text`. Insertions at one place go deepest first, then in order."""

    start: int
    end: int
    depth: int
    text: str


@dataclass(slots=True)
class Writer:
    """Collects the edits of one document."""

    text: Text
    style: Style
    edits: list[TextEdit] = field(default_factory=list)

    def replace(self, start: int, end: int, depth: int, text: str) -> None:
        self.edits.append(TextEdit(start, end, depth, text))

    def insert(self, at: int, depth: int, text: str) -> None:
        self.edits.append(TextEdit(at, at, depth, text))

    def lines(self, at: int, depth: int, lines: list[str]) -> None:
        self.insert(at, depth, self.text.as_lines(at, lines, self.style.newline))


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """Where a value stands: its span, its route, its key if it has one, and whether a flow collection is around it."""

    span: Span
    route: Route = ()
    flow: bool = False
    key: Span | None = None

    @property
    def depth(self) -> int:
        return len(self.route)

    def of_key(self, node: MapNode, key: str) -> Slot:
        flow = self.flow or node.flow
        return Slot(span=node.value_spans[key], route=(*self.route, key), flow=flow, key=node.key_spans[key])

    def of_item(self, node: ListNode, index: int) -> Slot:
        return Slot(span=node.item_spans[index], route=(*self.route, index), flow=self.flow or node.flow)


def insert_keys(w: Writer, old: MapNode, after: str | None, added: Mapping[str, Any], slot: Slot) -> None:
    """New keys behind the key `after` (None: before all others where the layout allows, else at the end)."""
    own = [k for k in old if k not in old.merged]
    if not own and (old.flow or not w.text.text.startswith("<<", old.span.start)):
        raise PatchRefused(f"{show_route(slot.route)} holds nothing of its own to add beside")
    if old.flow:
        last = max(own, key=lambda k: old.key_spans[k].start)
        end = w.text.end_of(old[last], old.value_spans[last], old.key_spans[last])
        return _insert_flow(w, old.span, w.text.column(old.key_spans[own[0]].start), end, added, slot.depth)
    first = old.key_spans[own[0]].start if own else old.span.start
    column = w.text.column(first)
    if after is None and w.text.begins_line(first):
        at = w.text.before_comments(first) if slot.route else w.text.line_start(first)
    elif after is None or after in old.merged or after == list(old)[-1]:
        at = w.text.line_after(w.text.end_of(old, old.span, None), column)
    else:
        at = w.text.line_after(w.text.end_of(old[after], old.value_spans[after], old.key_spans[after]), column)
    return w.lines(at, slot.depth, emit.mapping_lines(added, column, w.style))


def insert_items(w: Writer, old: ListNode, added: list[Any], slot: Slot) -> None:
    """New items behind the last one."""
    end = w.text.end_of(old[-1], old.item_spans[-1], None)
    if old.flow:
        return _insert_flow(w, old.span, w.text.column(old.item_spans[0].start), end, added, slot.depth)
    column = w.text.dash_column(old.span, old.item_spans[0])
    lines = [line for item in added for line in emit.item_lines(item, column, w.style)]
    return w.lines(w.text.line_after(end, column), slot.depth, lines)


def _insert_flow(w: Writer, span: Span, column: int, end: int, added: Any, depth: int) -> None:
    """Members at the end of a non-empty flow collection, one a line when the existing ones are."""
    style = w.style
    multiline = w.text.breaks(span.start, end)
    parts = _members(added, column, multiline, style)
    if w.text.text[end - 1] == ":" and w.text.text[end : end + 1] == " ":  # an empty value: keep the colon's space
        end += 1
    comma = w.text.comma_after(end, span.end)
    if not multiline:
        glue = "," if style.compact else ", "
        return w.insert(end, depth, glue + glue.join(parts)) if comma is None else w.insert(comma, depth, _after(parts))
    pad = style.newline + " " * column
    body = pad + ("," + pad).join(parts)
    at = w.text.flow_line_end(end if comma is None else comma, span.end)
    if comma is not None:
        return w.insert(at, depth, body + ",")
    if at == end:
        return w.insert(end, depth, "," + body)
    w.insert(end, depth, ",")
    return w.insert(at, depth, body)


def _after(parts: list[str]) -> str:
    """Members behind a trailing comma, which stays the author's style."""
    return " " + ", ".join(parts) + ","


def _members(added: Any, column: int, multiline: bool, style: Style) -> list[str]:
    if not isinstance(added, Mapping):
        return [_flow_value(v, column, multiline, style) for v in added]
    colon = ":" if style.compact else ": "
    keys = {k: emit.scalar(k, as_json=style.json) + colon for k in added}
    return [keys[k] + _flow_value(v, column, multiline, style) for k, v in added.items()]


def _flow_value(value: Any, column: int, multiline: bool, style: Style) -> str:
    return emit.pretty_json(value, column, style) if style.json and multiline else emit.flow(value, style)


def fill(w: Writer, new: Any, slot: Slot) -> None:
    """Content for a null or an empty collection: in block form below a block key, else in place."""
    raw = w.text.at(slot.span).strip()
    if raw[:1] in ("*", "&", "!"):
        raise PatchRefused(f"{show_route(slot.route)} carries an anchor, alias or tag")
    if "#" in raw:
        raise PatchRefused(f"{show_route(slot.route)} is empty but for a comment")
    value = slot.span.start if slot.key is None else w.text.behind_colon(slot.key)
    if slot.flow or slot.key is None or w.style.json or not w.text.begins_entry(slot.key.start):
        body = _flow_value(new, w.text.line_indent(slot.span.start), w.style.multiline, w.style)
        if raw:
            w.replace(slot.span.start, slot.span.end, slot.depth, body)
        else:
            w.insert(value, slot.depth, " " + body)
        return
    if raw:
        w.replace(w.text.spaces_before(slot.span.start), slot.span.end, slot.depth, "")
    column = w.text.column(slot.key.start)
    w.lines(w.text.line_after(max(value, slot.span.end if raw else 0), column), slot.depth, _children(new, column, w.style))


def _children(new: Any, column: int, style: Style) -> list[str]:
    if isinstance(new, Mapping):
        return emit.mapping_lines(new, column + style.step, style)
    return [line for item in new for line in emit.item_lines(item, column + style.dash, style)]


def replace(w: Writer, new: Any, slot: Slot) -> None:
    """Another scalar, in the quotes of the old one when it is a string."""
    raw = w.text.at(slot.span)
    if not raw or raw[0] in "|>&!*":
        raise PatchRefused(f"{show_route(slot.route)} is written as {raw.split(maxsplit=1)[0] if raw else 'nothing'}")
    if isinstance(new, str) and raw[0] == '"':
        text = emit.quoted(new)
    elif isinstance(new, str) and raw[0] == "'" and new.isprintable():
        text = "'" + new.replace("'", "''") + "'"
    else:
        text = emit.scalar(new, as_json=w.style.json, block=not slot.flow)
    w.replace(slot.span.start, slot.span.end, slot.depth, text)
