"""The comments of a text, to prove that a patch neither lost nor made one."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from stallscope.model.source import ListNode, MapNode

_COMMENT = re.compile(r"(?:(?<=\s)|\A|(?<=\ufeff))#[^\n\r]*")


def comments(text: str, documents: Sequence[Any], begin: int = 0, stop: int | None = None) -> Counter[str]:
    """
    Every comment of ``text[begin:stop]``, as a multiset. A ``#`` inside a scalar is none: `documents` (trees with spans)
    say where those are. Comments on the header line of a block scalar count as part of it.
    """
    found: Counter[str] = Counter()
    at, limit = begin, len(text) if stop is None else stop
    for start, end in [*_scalars(documents), (limit, limit)]:
        if start >= at:
            found.update(m.group().rstrip() for m in _COMMENT.finditer(text, at, start))
        at = max(at, end)
    return found


def _scalars(documents: Sequence[Any]) -> list[tuple[int, int]]:
    """Start and end of every scalar and key, in order; shared nodes once."""
    spans: set[tuple[int, int]] = set()
    seen: set[int] = set()
    stack = list(documents)
    while stack:
        node = stack.pop()
        if not isinstance(node, MapNode | ListNode) or id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, MapNode):
            spans.update((s.start, s.end) for s in node.key_spans.values())
            parts = [(node[k], s) for k, s in node.value_spans.items()]
        else:
            parts = list(zip(node, node.item_spans, strict=False))
        spans.update((s.start, s.end) for value, s in parts if not isinstance(value, MapNode | ListNode))
        stack += [value for value, _ in parts]
    return sorted(spans)
