"""
Where a value stands in its file.

Objects are plain ``dict``/``list`` trees, so every consumer indexes them as usual; trees that came from text are made of
`MapNode` and `ListNode`, which remember the span of each key and item. A place inside an object is a `Route` (keys and
indices), resolved to a `Span` only when somebody prints it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

Route = tuple[str | int, ...]


class Span(NamedTuple):
    """A stretch of text. Lines and columns are 1-based; `start`/`end` are 0-based character offsets into the file."""

    line: int
    column: int
    end_line: int
    end_column: int
    start: int
    end: int


NO_SPAN = Span(0, 0, 0, 0, 0, 0)


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


class MapNode(dict[str, Any]):
    """A mapping that knows where it stands. `key_spans` and `value_spans` have one entry a key; `shared` = anchor/alias."""

    __slots__ = ("flow", "key_spans", "shared", "span", "value_spans")

    def __init__(self) -> None:
        super().__init__()
        self.span: Span = NO_SPAN
        self.key_spans: dict[str, Span] = {}
        self.value_spans: dict[str, Span] = {}
        self.flow = False
        self.shared = False


class ListNode(list[Any]):
    """A sequence that knows where it and each of its items stand."""

    __slots__ = ("flow", "item_spans", "shared", "span")

    def __init__(self) -> None:
        super().__init__()
        self.span: Span = NO_SPAN
        self.item_spans: list[Span] = []
        self.flow = False
        self.shared = False


def span_of(tree: Any, route: Route, *, key: bool = True) -> Span:
    """
    Span of the value at `route` (of its key when the last step is a mapping key and `key` is true).

    A route that leaves the tree, or reaches a part without positions, gives the nearest enclosing span: a report should
    point somewhere useful even for an absent field.
    """
    best: Span = getattr(tree, "span", NO_SPAN)
    node = tree
    for depth, step in enumerate(route):
        inner = dig(node, step)
        if inner is None and not (isinstance(node, MapNode) and step in node):
            return span_of(tree, route[:depth]) if depth else best
        if isinstance(node, MapNode):
            wants_key = key if depth == len(route) - 1 else False
            best = node.key_spans[str(step)] if wants_key else node.value_spans[str(step)]
        elif isinstance(node, ListNode):
            best = node.item_spans[int(step)]
        node = inner
    return best


def dig(tree: Any, *route: str | int, default: Any = None) -> Any:
    """Value at `route`, or `default` where a step is absent or of the wrong type. Never raises: manifests are hostile."""
    node = tree
    for step in route:
        if isinstance(step, str) and isinstance(node, Mapping):
            if step not in node:
                return default
            node = node[step]
        elif isinstance(step, int) and isinstance(node, Sequence) and not isinstance(node, str):
            if not 0 <= step < len(node):
                return default
            node = node[step]
        else:
            return default
    return default if node is None else node


def as_map(value: Any) -> Mapping[str, Any]:
    """`value` when it is a mapping, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def as_list(value: Any) -> Sequence[Any]:
    """`value` when it is a sequence, else an empty one."""
    return value if isinstance(value, Sequence) and not isinstance(value, str) else ()


def as_str(value: Any, default: str = "") -> str:
    """`value` when it is text, else `default`."""
    return value if isinstance(value, str) else default


def as_str_map(value: Any) -> dict[str, str]:
    """A label-like mapping: text keys, scalar values as text (the API server would reject others)."""
    return {k: v for k, v in as_map(value).items() if isinstance(k, str) and isinstance(v, str)}
