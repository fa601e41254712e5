"""JSON: small through the YAML reader, large dumps at once with places on demand. Both must agree."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from stallscope.load.jsondump import SMALL, NotJson, looks_like_json, read_json
from stallscope.load.stream import parse_stream
from stallscope.model.places import Places
from stallscope.model.source import LazyNode, MapNode, span_of

ITEMS = 40


def node(number: int) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"node-{number}", "labels": {"zone": "a", 'odd " key': "ü"}},
        "spec": {"taints": [{"key": "gpu", "effect": "NoSchedule"}], "ratio": 2.0, "big": 1e3},
        "padding": "x" * 8000,
    }


def dump(indent: int | None = 4) -> str:
    return json.dumps({"apiVersion": "v1", "items": [node(i) for i in range(ITEMS)], "kind": "List"}, indent=indent)


def tree_of(text: str) -> Any:
    (document,), problems = parse_stream(text, file="nodes.json")
    assert problems == ()
    return document.value


@pytest.mark.parametrize("indent", [4, None])
def test_a_large_dump_has_the_values_json_has(indent: int | None) -> None:
    text = dump(indent)
    assert len(text) > SMALL
    tree = tree_of(text)
    assert tree == json.loads(text)
    assert isinstance(tree["items"][0], LazyNode)


def test_places_in_a_large_dump_are_found_when_asked_for() -> None:
    text = dump()
    tree = tree_of(text)
    item = tree["items"][7]
    # Lines of json.dumps(indent=4): 3 before the items, and per item: "{", 2 + labels 3 + metadata 3, spec 9, padding, "}"
    lines_an_item = json.dumps(node(0), indent=4).count("\n") + 1
    first_line = 3 + 7 * lines_an_item + 1
    assert item.span[:2] == (first_line, 9)
    for route, line, cut in (
        (("apiVersion",), first_line + 1, '"apiVersion"'),
        (("metadata", "name"), first_line + 4, '"name"'),
        (("metadata", "labels", 'odd " key'), first_line + 7, '"odd \\" key"'),
        (("spec", "taints", 0, "effect"), first_line + 14, '"effect"'),
    ):
        span = span_of(item, route)
        assert (span.line, text[span.start : span.end]) == (line, cut)
        assert span_of(tree, ("items", 7, *route)) == span
    value = span_of(item, ("metadata", "name"), key=False)
    assert text[value.start : value.end] == '"node-7"'
    assert set(item.key_spans) == set(item)
    assert set(item.value_spans) == set(item)


def test_an_item_where_the_places_cannot_be_had_points_at_itself() -> None:
    """libyaml refuses JSON's escaped surrogate pairs; the values are right all the same."""
    text = dump().replace("node-7", "\\ud83d\\ude00")
    item = tree_of(text)["items"][7]
    assert item["metadata"]["name"] == "😀"
    assert span_of(item, ("metadata", "name")) == item.span


def test_small_json_has_places_everywhere() -> None:
    text = '{\n  "kind": "X",\n  "list": [1, {"a": null}]\n}\n'
    tree = tree_of(text)
    assert type(tree) is MapNode
    assert span_of(tree, ("list", 1, "a"))[:2] == (3, 16)
    assert tree["list"][1].flow


def test_surrogates_in_small_json() -> None:
    assert tree_of('{"a": "\\ud83d\\ude00"}') == {"a": "😀"}


def test_concatenated_values() -> None:
    documents, problems = parse_stream('{"a": 1}\n{"b": 2}\n')
    assert problems == ()
    assert [d.value for d in documents] == [{"a": 1}, {"b": 2}]
    assert [d.index for d in documents] == [0, 1]


@pytest.mark.parametrize(
    ("number", "value"), [("2.0", 2), ("1e3", 1000), ("1.5", 1.5), ("9" * 30, float("9" * 30)), ("9" * 5000, "9" * 5000)]
)
def test_numbers_are_those_of_the_yaml_reader(number: str, value: Any) -> None:
    small = parse_stream(f'{{"n": {number}}}')[0][0].value
    large = parse_stream(f'{{"n": {number}, "pad": "{"x" * SMALL}"}}')[0][0].value
    assert small["n"] == large["n"] == value
    assert type(small["n"]) is type(large["n"]) is type(value)


@pytest.mark.parametrize(
    "text",
    ['{"a": NaN}', '{"a": 1,}', '{"a" 1}', '{"a": 1', "{1: 2}", '{"a": 1, "a": 2}', "[" * 200, '{"items": [1 2]}'],
)
def test_what_is_no_strict_json_is_left_to_the_yaml_reader(text: str) -> None:
    with pytest.raises(NotJson):
        read_json(text, Places(text), 100, lambda *_: None)


def test_depth_of_large_json() -> None:
    padding = " " * SMALL
    _, problems = parse_stream(padding + '{"a": ' + "[" * 300 + "]" * 300 + "}")
    assert "nest" in problems[0].message


def test_broken_large_json_has_the_place_of_the_break() -> None:
    text = dump()[:-40]
    _, problems = parse_stream(text, file="nodes.json")
    assert len(problems) == 1
    assert problems[0].location.span.line > 300


def test_looks_like_json() -> None:
    assert looks_like_json(' \n\t{"a": 1}')
    assert looks_like_json("\ufeff[]")
    assert not looks_like_json("a: {}")
    assert not looks_like_json("")


def test_a_byte_order_mark_before_a_large_dump() -> None:
    text = "\ufeff" + dump()
    tree = tree_of(text)
    span = tree.key_spans["kind"]
    assert text[span.start : span.end] == '"kind"'


def test_lazy_nodes_can_be_copied() -> None:
    item = tree_of(dump())["items"][3]
    assert copy.deepcopy(item) == item
