"""Without libyaml PyYAML's own parser gives the events: same values, same places, only slower."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from stallscope.load import stream
from stallscope.load.stream import parse_stream
from stallscope.model.source import ListNode, MapNode

TEXTS = [
    "a: 1\nb:\n  - x   # comment\n  - {c: [1, 2], d: 3}\n\ne: |\n  text\n   more\n\n\nf: >-\n  g\n",
    "\ufeffa: 'ü😀'\r\nb: \"x\\ty\"\r\nc: |+\r\n  keep\r\n\r\n",
    "base: &b {x: 1}\nuse: *b\nmerged:\n  <<: *b\n  y: 2\n? z\n: - 1\n",
    "---\n# Source: t.yaml\napiVersion: v1\nkind: A\nkind: B\n---\n---\n- !!str 5\n- ! 6\n- &n 7\n",
    "a: 1\n---\nb: [\n---\nc: 3\n",
]


def outline(value: Any) -> Any:
    if isinstance(value, MapNode):
        return (
            value.span,
            value.flow,
            value.shared,
            [(k, value.key_spans[k], value.value_spans[k], outline(v)) for k, v in value.items()],
        )
    if isinstance(value, ListNode):
        return value.span, value.flow, value.shared, [(s, outline(v)) for s, v in zip(value.item_spans, value, strict=True)]
    return value


def outlines(text: str) -> list[Any]:
    documents, problems = parse_stream(text, file="f.yaml")
    return [(d.index, d.start, d.end, d.rendered_from, outline(d.value)) for d in documents] + [
        (p.kind, p.location.span.line) for p in problems
    ]


@pytest.mark.parametrize("text", TEXTS)
def test_both_parsers_agree(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    native = outlines(text)
    monkeypatch.setattr(stream, "_new_parser", yaml.Loader)
    assert outlines(text) == native
