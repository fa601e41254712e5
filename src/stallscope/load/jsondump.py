"""
Large JSON, the dumps of ``kubectl get -o json``, twenty times faster than through the YAML parser.

Only the top level, and each item of a top-level ``items``, learn their place at once; the places inside an item are worked
out when a report asks for one (`LazyNode`). Small JSON goes through the YAML reader like everything else.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import chain
from typing import Any

from stallscope.load.scalars import resolve_plain
from stallscope.model.places import Places
from stallscope.model.source import LazyNode, ListNode, MapNode

#: Below this many characters exact places everywhere cost less than a blink.
SMALL = 256 * 1024

_CONTAINERS = frozenset({dict, list, LazyNode, ListNode, MapNode})
_SPACE = re.compile(r"[ \t\r\n]*")
Locate = Callable[[int, int], MapNode | None]


class NotJson(ValueError):
    """The text is not what this reader takes; the YAML reader decides what is wrong with it."""


def looks_like_json(text: str) -> bool:
    """Whether the first character that is no white space opens a JSON object or list."""
    return text[_skip(text, 1 if text.startswith("\ufeff") else 0) :][:1] in ("{", "[")


def read_json(text: str, places: Places, depth: int, locate: Locate) -> list[tuple[Any, int, int]]:
    """
    The concatenated JSON values of `text` with their start and end. `locate` reads ``text[start:end]`` again with the
    places of everything in it. Raises NotJson, also for values nested deeper than `depth`.
    """
    reader = _JsonReader(text, places, locate)
    found = []
    at = _skip(text, 1 if text.startswith("\ufeff") else 0)
    try:
        while at < len(text):
            value, end = reader.top(at)
            _check_depth(value, depth)
            found.append((value, at, end))
            at = _skip(text, end)
    except (ValueError, RecursionError, IndexError) as error:
        raise NotJson(str(error)) from None
    return found


class _JsonReader:
    def __init__(self, text: str, places: Places, locate: Locate) -> None:
        self.text, self.places, self.locate = text, places, locate
        from json.decoder import JSONDecoder  # here: most runs never need it

        decoder = JSONDecoder(parse_float=resolve_plain, parse_int=_integer, parse_constant=_refuse)
        self._value = decoder.raw_decode

    def top(self, at: int) -> tuple[Any, int]:
        """A whole value; an object's members one by one, so that its ``items`` can be split."""
        text = self.text
        if text[at] != "{":
            return self._value(text, at)
        node, marks, start = MapNode(flow=True), list[int](), at
        at = _skip(text, at + 1)
        if text[at] == "}":
            node.put(self.places, start, at + 1, len(self.places.offsets))
            return node, at + 1
        while True:
            if text[at] != '"':
                raise NotJson
            key, end = self._value(text, at)
            colon = _skip(text, end)
            if text[colon] != ":" or key in node:
                raise NotJson
            value_at = _skip(text, colon + 1)
            split = key == "items" and text[value_at] == "["
            node[key], value_end = self._items(value_at) if split else self._located(value_at)
            marks += (at, end, value_at, value_end)
            at = _skip(text, value_end)
            if text[at] == "}":
                break
            if text[at] != ",":
                raise NotJson
            at = _skip(text, at + 1)
        node.put(self.places, start, at + 1, len(self.places.offsets))
        self.places.offsets.fromlist(marks)
        return node, at + 1

    def _items(self, at: int) -> tuple[ListNode, int]:
        text = self.text
        node, marks, start = ListNode(flow=True), list[int](), at
        at = _skip(text, at + 1)
        while text[at] != "]":
            item, end = self._located(at)
            node.append(item)
            marks += (at, end)
            at = _skip(text, end)
            if text[at] == ",":
                at = _skip(text, at + 1)
            elif text[at] != "]":
                raise NotJson
        node.put(self.places, start, at + 1, len(self.places.offsets))
        self.places.offsets.fromlist(marks)
        return node, at + 1

    def _located(self, at: int) -> tuple[Any, int]:
        value, end = self._value(self.text, at)
        if value.__class__ is not dict:
            return value, end
        node = LazyNode(value, self.locate)
        node.put(self.places, at, end, 0)
        return node, end


def _skip(text: str, at: int) -> int:
    return _SPACE.match(text, at).end()  # type: ignore[union-attr]


def _integer(digits: str) -> Any:
    return int(digits) if len(digits) < 19 else resolve_plain(digits)


def _refuse(constant: str) -> Any:
    raise NotJson(constant)


def _check_depth(value: Any, depth: int) -> None:
    """Raise NotJson for more than `depth` levels: level by level, for recursion is what is to be prevented."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(depth):
        parts = chain.from_iterable(n.values() if isinstance(n, dict) else n for n in level)
        level = [v for v in parts if v.__class__ in _CONTAINERS]
        if not level:
            return
    raise NotJson
