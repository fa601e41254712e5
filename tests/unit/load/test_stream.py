"""Documents, values and places, worked out by hand from the texts."""

from __future__ import annotations

from typing import Any

import pytest

from stallscope.load.stream import parse_stream
from stallscope.model.source import ListNode, MapNode, Span, span_of


def one(text: str) -> Any:
    documents, problems = parse_stream(text, file="f.yaml")
    assert problems == ()
    (document,) = documents
    return document.value


def cut(text: str, span: Span) -> str:
    return text[span.start : span.end]


NESTED = """\
# a comment
kind: Job          # behind a value
spec:
  parallelism: 2

  # between keys
  args: ["a",
    b]
  env:
    - name: X
      value: "1"
    -
      name: Z

status:
"""


def test_values() -> None:
    assert one(NESTED) == {
        "kind": "Job",
        "spec": {"parallelism": 2, "args": ["a", "b"], "env": [{"name": "X", "value": "1"}, {"name": "Z"}]},
        "status": None,
    }


@pytest.mark.parametrize(
    ("route", "key", "expected"),
    [
        # line, column, end line, end column, counted in NESTED; `cut` checks the offsets against the text
        (("kind",), True, (2, 1, 2, 5, "kind")),
        (("kind",), False, (2, 7, 2, 10, "Job")),
        (("spec", "parallelism"), True, (4, 3, 4, 14, "parallelism")),
        (("spec", "parallelism"), False, (4, 16, 4, 17, "2")),
        (("spec", "args"), False, (7, 9, 8, 7, '["a",\n    b]')),
        (("spec", "args", 0), False, (7, 10, 7, 13, '"a"')),
        (("spec", "args", 1), False, (8, 5, 8, 6, "b")),
        (("spec", "env"), False, (10, 5, 13, 14, '- name: X\n      value: "1"\n    -\n      name: Z')),
        (("spec", "env", 0), False, (10, 7, 11, 17, 'name: X\n      value: "1"')),
        (("spec", "env", 1), False, (13, 7, 13, 14, "name: Z")),
        (("spec", "env", 1, "name"), True, (13, 7, 13, 11, "name")),
        (("status",), False, (15, 8, 15, 8, "")),
    ],
)
def test_spans(route: tuple[str | int, ...], key: bool, expected: tuple[int, int, int, int, str]) -> None:
    span = span_of(one(NESTED), route, key=key)
    assert (span.line, span.column, span.end_line, span.end_column) == expected[:4]
    assert cut(NESTED, span) == expected[4]


def test_a_block_collection_ends_with_its_content_not_at_the_next_token() -> None:
    spec = one(NESTED)["spec"]
    assert cut(NESTED, spec.span).endswith("name: Z")
    assert spec.span.end_line == 13


def test_span_of_an_absent_field_is_the_nearest_enclosing_key() -> None:
    tree = one(NESTED)
    assert cut(NESTED, span_of(tree, ("spec", "env", 0, "valueFrom", "x"))) == 'name: X\n      value: "1"'
    assert cut(NESTED, span_of(tree, ("spec", "completions"))) == "spec"
    assert span_of(tree, ("nothing",)) == tree.span


def test_flow_marks() -> None:
    tree = one("a: {b: [1, {c: 2}]}\nd:\n- 1\n")
    assert not tree.flow
    assert tree["a"].flow
    assert tree["a"]["b"].flow
    assert tree["a"]["b"][1].flow
    assert not tree["d"].flow
    assert isinstance(tree["d"], ListNode)
    assert isinstance(tree["a"], MapNode)


BLOCKS = """\
a: |
  x
    y

b: >-
  one
  two


# a comment
c: |+
  keep

d: |
  last"""


@pytest.mark.parametrize(
    ("key", "value", "text", "end_line"),
    [
        ("a", "x\n  y\n", "|\n  x\n    y", 3),
        ("b", "one two", ">-\n  one\n  two", 7),
        ("c", "keep\n\n", "|+\n  keep\n", 13),
        ("d", "last", "|\n  last", 15),
    ],
)
def test_block_scalars_end_with_their_content(key: str, value: str, text: str, end_line: int) -> None:
    tree = one(BLOCKS)
    assert tree[key] == value
    assert cut(BLOCKS, tree.value_spans[key]) == text
    assert tree.value_spans[key].end_line == end_line


def test_crlf_and_lone_cr_count_as_one_break_each() -> None:
    text = "a: 1\r\nb:\r\n  - x\r\n  - z\r\nc: |\r\n  t\r\nd: e\rf: g\r\n"
    tree = one(text)
    assert tree == {"a": 1, "b": ["x", "z"], "c": "t\n", "d": "e", "f": "g"}
    assert tree.key_spans["b"][:2] == (2, 1)
    assert tree["b"].item_spans[1][:2] == (4, 5)
    assert cut(text, tree.value_spans["b"]) == "- x\r\n  - z"
    assert cut(text, tree.value_spans["c"]) == "|\r\n  t"
    assert tree.key_spans["f"][:2] == (8, 1)


def test_a_byte_order_mark_moves_offsets_but_no_column() -> None:
    text = "\ufeffa: 1\nb: 2\n"
    tree = one(text)
    assert tree.key_spans["a"] == Span(1, 1, 1, 2, 1, 2)
    assert tree.value_spans["b"] == Span(2, 4, 2, 5, 9, 10)


def test_offsets_count_characters_not_bytes() -> None:
    text = "ä: ü😀\nb: 1\n"
    tree = one(text)
    assert cut(text, tree.value_spans["ä"]) == "ü😀"
    assert tree.value_spans["b"] == Span(2, 4, 2, 5, 9, 10)


ANCHORS = """\
base: &base
  image: x
  limits: {gpu: 8}
one: *base
two:
  image: y
  <<: *base
three:
  <<: *base
  image: z
p: &p 5
q: *p
"""


def test_anchors_and_aliases() -> None:
    tree = one(ANCHORS)
    assert tree["one"] is tree["base"]
    assert tree["base"].shared
    assert not tree["two"].shared
    assert tree["q"] == 5
    assert cut(ANCHORS, tree.value_spans["one"]) == "*base"
    assert cut(ANCHORS, tree.value_spans["p"]) == "&p 5"
    assert tree["base"].span.line == 1  # the anchor is part of the value


def test_merge_keys_apply_where_they_stand() -> None:
    """go-yaml v2 (decode.go, mapping): a merge overrides the keys above it, the keys below override the merge."""
    tree = one(ANCHORS)
    assert tree["two"] == {"image": "x", "limits": {"gpu": 8}}
    assert tree["three"] == {"image": "z", "limits": {"gpu": 8}}
    assert tree["three"].merged == {"limits"}
    assert tree["two"].merged == {"image", "limits"}
    assert tree["three"]["limits"].shared
    assert tree["three"].key_spans["limits"].line == 3  # where it is written
    assert tree["three"].key_spans["image"].line == 10
    assert tree["three"].value_spans["image"][:2] == (10, 10)


def test_merge_of_a_list_takes_the_first() -> None:
    tree = one("a: &a {x: 1}\nb: &b {x: 2, z: 2}\nc:\n  <<: [*a, *b]\n")
    assert tree["c"] == {"x": 1, "z": 2}


def test_merging_nothing() -> None:
    text = "a:\n  <<: {}\n\nb: 1\n"
    tree = one(text)
    assert tree == {"a": {}, "b": 1}
    assert cut(text, tree["a"].span) == "<<: {}"


def test_a_quoted_merge_key_is_a_key() -> None:
    assert one('a: {"<<": {b: 1}}') == {"a": {"<<": {"b": 1}}}


def test_documents_and_their_places() -> None:
    text = "# only a comment\n---\na: 1\n---\n---\n- b\n...\n---\nc\n"
    documents, problems = parse_stream(text, file="f.yaml")
    assert problems == ()
    assert [d.value for d in documents] == [{"a": 1}, None, ["b"], "c"]
    assert [d.index for d in documents] == [0, 1, 2, 3]
    assert [str(d.location) for d in documents] == ["f.yaml:3:1", "f.yaml:5:1", "f.yaml:6:1", "f.yaml:9:1"]


def test_nothing_at_all() -> None:
    for text in ("", "\n\n", "# comment\n", "\ufeff", "---\n"):
        documents, problems = parse_stream(text)
        assert problems == ()
        assert all(d.value is None for d in documents)


def test_helm_names_the_template_of_each_document() -> None:
    text = (
        "---\n# Source: chart/templates/a.yaml\napiVersion: v1\nkind: A\n"
        "---\n# Source: chart/templates/b.yaml\n# a comment\napiVersion: v1\nkind: B\n# Source: not/above/it.yaml\n"
        "---\nkind: C\napiVersion: v1\n"
    )
    documents, _ = parse_stream(text)
    assert [d.rendered_from for d in documents] == ["chart/templates/a.yaml", "chart/templates/b.yaml", ""]
