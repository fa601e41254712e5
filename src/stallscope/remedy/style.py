"""How a document is written, read off its own nodes: indent, where list dashes stand, line ends, JSON or YAML."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from stallscope.model.source import ListNode, MapNode
from stallscope.remedy.emit import Style

_ENOUGH = 4000  # nodes looked at


def style_of(text: str, document: Any) -> Style:
    """The majority's style; Kubernetes' own (two columns, dashes below their key) where nothing shows."""
    newline = "\r\n" if "\r\n" in text[: text.find("\n") + 1] else "\n"
    if is_json(text):
        return _json_style(text, document, newline)
    steps: Counter[int] = Counter()
    dashes: Counter[int] = Counter()
    stack, looked = [document], 0
    while stack and looked < _ENOUGH:
        node = stack.pop()
        looked += 1
        if isinstance(node, ListNode):
            stack += node
        if not isinstance(node, MapNode):
            continue
        stack += node.values()
        if not node.flow:
            _vote(node, steps, dashes)
    dash = _winner(dashes, 0)
    return Style(step=_winner(steps, dash or 2), dash=dash, newline=newline)


def is_json(text: str) -> bool:
    """The whole text is one JSON value (what ``kubectl get -o json`` writes)."""
    if text.lstrip("\ufeff \t\r\n")[:1] not in ("{", "["):
        return False
    try:
        json.loads(text.lstrip("\ufeff"))
    except (ValueError, RecursionError):
        return False
    return True


def _vote(node: MapNode, steps: Counter[int], dashes: Counter[int]) -> None:
    for key, value in node.items():
        if key in node.merged or not isinstance(value, MapNode | ListNode) or value.flow or not value:
            continue
        if value.span.line <= node.key_spans[key].line:  # an alias, or an anchor on the key's line
            continue
        distance = value.span.column - node.key_spans[key].column
        if isinstance(value, MapNode) and distance > 0:
            steps[distance] += 1
        elif isinstance(value, ListNode) and distance >= 0:
            dashes[distance] += 1


def _winner(votes: Counter[int], default: int) -> int:
    return min(votes, key=lambda v: (-votes[v], v)) if votes else default


def _json_style(text: str, document: Any, newline: str) -> Style:
    if "\n" not in text.strip():
        return Style(json=True, newline=newline, compact=isinstance(document, MapNode) and ": " not in text[:200])
    step = 2
    if isinstance(document, MapNode) and document:
        step = max(next(iter(document.key_spans.values())).column - 1, 1)
    return Style(json=True, step=step, newline=newline, multiline=True)
