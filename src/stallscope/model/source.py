"""
Where a value stands in its file.

Objects are plain ``dict``/``list`` trees, so every consumer indexes them as usual; trees that came from text are made of
`MapNode` and `ListNode`, which remember the span of each key and item. A place inside an object is a `Route` (keys and
indices), resolved to a `Span` only when somebody prints it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from stallscope.model.places import NO_SPAN as NO_SPAN
from stallscope.model.places import Places
from stallscope.model.places import Span as Span

Route = tuple[str | int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """
    A place a person can open: file and span, plus the route inside the object.

    `rendered_from` names the real source (a chart template, a kustomize base) when `file` is the rendered text.
    """

    file: str
    span: Span = NO_SPAN
    route: Route = ()
    rendered_from: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.span.line}:{self.span.column}" if self.span.line else self.file


#: What counts as a mapping or a sequence; the built-in types first, for asking an abstract one costs five times as much.
_MAPS = (dict, Mapping)
_LISTS = (list, Sequence)
_NO_KEYS: AbstractSet[str] = frozenset()


class MapNode(dict[str, Any]):
    """
    A mapping that knows where it stands: `span`, and one entry a key in `key_spans` and `value_spans`.

    `flow` = written in braces; `shared` = anchored, aliased or brought in by a merge key, so that an edit would change
    more than one place; `merged` = the keys that a merge key brought in (their spans are where they are written).
    Trees from text are read-only by convention: change a copy. Spans are computed on first use.
    """

    __slots__ = ("_keys", "_place", "_span", "_values", "flow", "merged", "shared")

    def __init__(self, *, flow: bool = False, shared: bool = False) -> None:
        self._place: tuple[Places, int, int] | None = None  # the text, first offset, number of parts then
        self._span: Span | tuple[int, int] = NO_SPAN
        self._keys: dict[str, Span] | None = None
        self._values: dict[str, Span] | None = None
        self.flow = flow
        self.shared = shared
        self.merged: AbstractSet[str] = _NO_KEYS

    def put(self, places: Places, start: int, end: int, first: int) -> None:
        """Set the place: the node's own offsets, and the index in `places.offsets` of the four offsets a key has."""
        self._place = (places, first, len(self))
        self._span = (start, end)

    @property
    def marks(self) -> Sequence[int]:
        """The offsets behind `key_spans` and `value_spans`, four a key; empty for a node that was not read."""
        if self._place is None:
            return ()
        places, first, parts = self._place
        return places.offsets[first : first + 4 * parts]

    @property
    def span(self) -> Span:
        if self._place is not None and not isinstance(self._span, Span):
            self._span = self._place[0].span(*self._span)
        return cast(Span, self._span)

    @span.setter
    def span(self, span: Span) -> None:
        self._span = span

    @property
    def key_spans(self) -> dict[str, Span]:
        if self._keys is None:
            self._keys = self._spans(0)
        return self._keys

    @key_spans.setter
    def key_spans(self, spans: dict[str, Span]) -> None:
        self._keys = spans

    @property
    def value_spans(self) -> dict[str, Span]:
        if self._values is None:
            self._values = self._spans(2)
        return self._values

    @value_spans.setter
    def value_spans(self, spans: dict[str, Span]) -> None:
        self._values = spans

    def span_at(self, key: str, *, of_key: bool) -> Span:
        """The span of one key or its value, without working out the others; the node's own for a key without a place."""
        known = self._keys if of_key else self._values
        if known is not None or self._place is None:
            return (known or {}).get(key, self.span)
        places, first, parts = self._place
        index = list(self).index(key)
        at = first + 4 * index + (0 if of_key else 2)
        return places.span(*places.offsets[at : at + 2]) if index < parts else self.span

    def _spans(self, part: int) -> dict[str, Span]:
        if self._place is None:
            return {}
        places, first, parts = self._place
        offsets = places.offsets
        at = range(first + part, first + 4 * parts, 4)
        return {k: places.span(offsets[i], offsets[i + 1]) for k, i in zip(self, at, strict=False)}


class LazyNode(MapNode):
    """
    A mapping of plain values that knows only its own place; `located` reads it again, with the place of everything in
    it, the first time somebody asks. For dumps of thousands of objects of which a report names three.
    """

    __slots__ = ("_located", "_read")

    def __init__(self, content: Mapping[str, Any], read: Callable[[int, int], MapNode | None]) -> None:
        super().__init__(flow=True)
        self.update(content)
        self._read = read
        self._located: MapNode | None = None

    def located(self) -> MapNode:
        """The same mapping with places; this node itself where the text cannot be read so."""
        if self._located is None:
            span = self.span
            self._located = self._read(span.start, span.end) or self
        return self._located

    def span_at(self, key: str, *, of_key: bool) -> Span:
        node = self.located()
        return self.span if node is self else node.span_at(key, of_key=of_key)

    def _spans(self, part: int) -> dict[str, Span]:
        node = self.located()
        if node is self:
            return {}
        return node.key_spans if part == 0 else node.value_spans

    @property
    def marks(self) -> Sequence[int]:
        node = self.located()
        return () if node is self else node.marks


class ListNode(list[Any]):
    """A sequence that knows where it and each of its items stand; `flow` and `shared` as for `MapNode`."""

    __slots__ = ("_items", "_place", "_span", "flow", "shared")

    def __init__(self, *, flow: bool = False, shared: bool = False) -> None:
        self._place: tuple[Places, int, int] | None = None  # the text, first offset, number of parts then
        self._span: Span | tuple[int, int] = NO_SPAN
        self._items: list[Span] | None = None
        self.flow = flow
        self.shared = shared

    def put(self, places: Places, start: int, end: int, first: int) -> None:
        """Set the place: the node's own offsets, and the index in `places.offsets` of the two offsets an item has."""
        self._place = (places, first, len(self))
        self._span = (start, end)

    @property
    def span(self) -> Span:
        if self._place is not None and not isinstance(self._span, Span):
            self._span = self._place[0].span(*self._span)
        return cast(Span, self._span)

    @span.setter
    def span(self, span: Span) -> None:
        self._span = span

    def span_at(self, index: int) -> Span:
        """The span of one item, without working out the others; the list's own for an item without a place."""
        if self._items is not None or self._place is None:
            return self._items[index] if self._items and index < len(self._items) else self.span
        places, first, parts = self._place
        at = first + 2 * index
        return places.span(*places.offsets[at : at + 2]) if index < parts else self.span

    @property
    def item_spans(self) -> list[Span]:
        if self._items is None:
            if self._place is None:
                self._items = []
            else:
                places, first, parts = self._place
                offsets = places.offsets
                at = range(first, first + 2 * parts, 2)
                self._items = [places.span(offsets[i], offsets[i + 1]) for i in at]
        return self._items

    @item_spans.setter
    def item_spans(self, spans: list[Span]) -> None:
        self._items = spans


def span_of(tree: Any, route: Route, *, key: bool = True) -> Span:
    """
    Span of the value at `route` (of its key when the last step is a mapping key and `key` is true).

    A route that leaves the tree, or reaches a part without positions, gives the nearest enclosing span: a report should
    point somewhere useful even for an absent field.
    """
    found: Callable[[], Span] = partial(getattr, tree, "span", NO_SPAN)  # a span costs: only the last one is worked out
    node = tree
    for depth, step in enumerate(route):
        node = node.located() if isinstance(node, LazyNode) else node
        last = depth == len(route) - 1
        if isinstance(node, MapNode) and isinstance(step, str) and step in node:
            found = partial(node.span_at, step, of_key=key and last)
        elif isinstance(node, ListNode) and isinstance(step, int) and 0 <= step < len(node):
            found = partial(node.span_at, step)
        elif dig(node, step) is None:
            return span_of(tree, route[:depth]) if depth else found()
        node = dig(node, step)
    return found()


def dig(tree: Any, *route: str | int, default: Any = None) -> Any:
    """Value at `route`, or `default` where a step is absent or of the wrong type. Never raises: manifests are hostile."""
    node = tree
    for step in route:
        if isinstance(step, str) and isinstance(node, _MAPS):
            if step not in node:
                return default
            node = node[step]
        elif isinstance(step, int) and isinstance(node, _LISTS) and not isinstance(node, str):
            if not 0 <= step < len(node):
                return default
            node = node[step]
        else:
            return default
    return default if node is None else node


def as_map(value: Any) -> Mapping[str, Any]:
    """`value` when it is a mapping, else an empty one."""
    return value if isinstance(value, _MAPS) else {}


def as_list(value: Any) -> Sequence[Any]:
    """`value` when it is a sequence, else an empty one."""
    return value if isinstance(value, _LISTS) and not isinstance(value, str) else ()


def as_str(value: Any, default: str = "") -> str:
    """`value` when it is text, else `default`."""
    return value if isinstance(value, str) else default


def as_str_map(value: Any) -> dict[str, str]:
    """A label-like mapping: text keys, scalar values as text (the API server would reject others)."""
    return {k: v for k, v in as_map(value).items() if isinstance(k, str) and isinstance(v, str)}
