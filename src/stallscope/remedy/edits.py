"""
From a tree that knows where it stands and the tree that is intended to the text edits between them.

Only three things are ever written: a new key or item, a scalar in place of another, and the text of a null or empty
collection that gets content. Everything else about the text stays, so comments, order, quoting and layout survive.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stallscope.errors import PatchRefused
from stallscope.model.source import LazyNode, ListNode, MapNode, Route
from stallscope.remedy.emit import Style
from stallscope.remedy.insert import Slot, TextEdit, Writer, fill, insert_items, insert_keys, replace
from stallscope.remedy.ops import same, show_route
from stallscope.remedy.place import Text


def edits_between(text: str, old: Any, new: Any, style: Style) -> list[TextEdit]:
    """
    The edits that make `text` say `new` where it says `old` (one document of it, made of MapNode and ListNode).

    Raises PatchRefused where that would need more than additions and scalar replacements, and where an anchored value
    is used elsewhere with another intention.
    """
    if not isinstance(old, MapNode | ListNode):
        raise PatchRefused("the document is no mapping")
    writer = Writer(Text(text), style)
    edited: dict[int, Any] = {}
    _visit(writer, edited, old, new, Slot(span=old.span))
    if edited:
        _check_other_users(edited, old, new)
    return writer.edits


def _visit(w: Writer, edited: dict[int, Any], old: Any, new: Any, slot: Slot) -> None:
    if old is new:
        return
    if isinstance(old, LazyNode):  # an item of a large dump: its places are read now
        old = old.located()
    if getattr(old, "shared", False):
        if id(old) in edited:  # written once, where the anchor stands
            return
        edited[id(old)] = new
    if isinstance(old, MapNode) and isinstance(new, Mapping):
        _visit_map(w, edited, old, new, slot)
    elif isinstance(old, ListNode) and isinstance(new, list):
        _visit_list(w, edited, old, new, slot)
    elif old is None and isinstance(new, Mapping | list):
        fill(w, new, slot)
    elif not same(old, new):
        if isinstance(old, Mapping | list) or isinstance(new, Mapping | list):
            raise PatchRefused(f"{show_route(slot.route)} would change its type")
        replace(w, new, slot)


def _visit_map(w: Writer, edited: dict[int, Any], old: MapNode, new: Mapping[str, Any], slot: Slot) -> None:
    if gone := [k for k in old if k not in new]:
        raise PatchRefused(f"{show_route((*slot.route, gone[0]))} would be removed")
    if not old:
        if new:
            fill(w, new, slot)
        return
    for key, value in old.items():
        if value is new[key]:
            continue
        if key in old.merged:
            raise PatchRefused(f"{show_route((*slot.route, key))} comes from a merge key")
        _visit(w, edited, value, new[key], slot.of_key(old, key))
    for anchor, added in _runs(list(new), old):
        insert_keys(w, old, anchor, {k: new[k] for k in added}, slot)


def _visit_list(w: Writer, edited: dict[int, Any], old: ListNode, new: list[Any], slot: Slot) -> None:
    if len(new) < len(old):
        raise PatchRefused(f"{show_route(slot.route)} would lose an item")
    if not old:
        if new:
            fill(w, new, slot)
        return
    for i, value in enumerate(old):
        _visit(w, edited, value, new[i], slot.of_item(old, i))
    if new[len(old) :]:
        insert_items(w, old, new[len(old) :], slot)


def _runs(order: list[str], old: Mapping[str, Any]) -> list[tuple[str | None, list[str]]]:
    """New keys grouped by the existing key they follow (None: before the first)."""
    runs: list[tuple[str | None, list[str]]] = []
    anchor: str | None = None
    for key in order:
        if key in old:
            anchor = key
        elif runs and runs[-1][0] == anchor:
            runs[-1][1].append(key)
        else:
            runs.append((anchor, [key]))
    return runs


def _check_other_users(edited: Mapping[int, Any], old: Any, new: Any) -> None:
    """Every place that uses an edited anchor must intend what the edit makes of it."""
    stack: list[tuple[Any, Any, Route]] = [(old, new, ())]
    while stack:
        before, after, route = stack.pop()
        if id(before) in edited and not same(edited[id(before)], after):
            raise PatchRefused(f"{show_route(route)} is anchored and used elsewhere, where the edit is not meant")
        if isinstance(before, MapNode):
            stack += [(v, after[k], (*route, k)) for k, v in before.items()]
        elif isinstance(before, ListNode):
            stack += [(v, after[i], (*route, i)) for i, v in enumerate(before)]


def apply_edits(text: str, edits: list[TextEdit]) -> str:
    """`text` with all edits made, from the end. Raises PatchRefused when two replacements overlap."""
    result, limit = text, len(text)
    order = sorted(enumerate(edits), key=lambda e: (e[1].start, e[1].end != e[1].start, -e[1].depth, e[0]))
    for _, edit in reversed(order):
        if edit.end > limit:
            raise PatchRefused("two edits overlap")
        result = result[: edit.start] + edit.text + result[edit.end :]
        limit = edit.start
    return result
