"""Hostile and broken text: each costs one clear problem, never a crash, and the other documents stay usable."""

from __future__ import annotations

import time
import tracemalloc

import pytest

from stallscope.judge.inputs import Problem, ProblemKind
from stallscope.load.limits import Limits
from stallscope.load.stream import Document, parse_stream
from stallscope.load.text import NotText, decode

GOOD = "apiVersion: v1\nkind: Good\n"


def read(text: str, **limits: int) -> tuple[list[object], list[Problem]]:
    documents, problems = parse_stream(text, file="f.yaml", limits=Limits(**limits))
    return [d.value for d in documents], list(problems)


def the_problem(text: str, **limits: int) -> Problem:
    _, problems = read(text, **limits)
    (problem,) = problems
    return problem


BROKEN = [
    # (text, line, column, words of the message, words of the hint)
    ("a: b: c\n", 1, 5, "mapping values are not allowed", "indentation"),
    ("a:\n\t- b\n", 2, 1, "a tab", "spaces"),
    ("a: [1, 2\n", 2, 1, "',' or ']'", "close the ["),
    ("a: {b: 1\nc: 2\n", 2, 2, "',' or '}'", "close the {"),
    ('a: "x\n', 2, 1, "unexpected end of stream", "never closed"),
    ("a: @x\n", 1, 4, "'@' cannot start a value", "quote"),
    ("a: `x`\n", 1, 4, "'`' cannot start a value", "quote"),
    ("- a\nb: 1\n", 2, 1, "expected '-' indicator", "list ends here"),
    ("a: *x\n", 1, 4, "alias *x has no anchor", "define &x"),
    ("a: &x [*x]\n", 1, 8, "alias *x has no anchor above it, or contains itself", ""),
    ("? [a]\n: b\n", 1, 3, "list or mapping stands where a key belongs", "quote"),
    ("a: {<<: 5}\n", 1, 9, "merge key", "alias"),
    ("a: \x1b[31mred\n", 1, 4, "U+001B", "terminal colour"),
    ("a: \ud800\n", 1, 4, "U+D800", ""),
    ('a: "\\q"\n', 1, 5, "unknown escape", "double the backslash"),
    ("%YAML 9.9\n---\na: 1\n", 1, 1, "incompatible", ""),
    ("!x!y a: 1\n", 1, 1, "undefined tag handle", "remove the tag"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "column", "message", "hint"), BROKEN)
def test_broken_text(text: str, line: int, column: int, message: str, hint: str) -> None:
    problem = the_problem(text)
    assert problem.kind is ProblemKind.UNREADABLE
    assert (problem.location.file, *problem.location.span[:2]) == ("f.yaml", line, column)
    assert message in problem.message
    assert hint in problem.hint
    assert problem.hint
    assert "\n" not in problem.message


@pytest.mark.parametrize("broken", [text for text, *_ in BROKEN if not text.startswith("%")])
def test_the_documents_around_a_broken_one_stay(broken: str) -> None:
    text = f"{GOOD}---\n{broken}---\n{GOOD}"
    documents, problems = parse_stream(text, file="f.yaml")
    assert [(d.index, d.value) for d in documents] == [
        (0, {"apiVersion": "v1", "kind": "Good"}),
        (2, {"apiVersion": "v1", "kind": "Good"}),
    ]
    assert len(problems) == 1
    assert documents[1].value.key_spans["kind"].line == text[: text.rfind("kind")].count("\n") + 1


def test_separator_inside_a_block_scalar_is_no_place_to_resume() -> None:
    values, problems = read(f"a: b: c\nd: |\n  ---\n  kind: x\n---\n{GOOD}")
    assert values == [{"apiVersion": "v1", "kind": "Good"}]
    assert len(problems) == 1


def test_many_broken_documents_are_not_all_told() -> None:
    values, problems = read("---\n[\n" * 10_000, broken=5)
    assert values == []
    assert len(problems) == 6
    assert "the rest is not read" in problems[-1].message


def bomb(levels: int) -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, levels)]
    return "\n".join(lines) + "\n"


def test_an_alias_bomb_is_refused_where_it_would_explode() -> None:
    values, problems = read(f"{bomb(30)}---\n{GOOD}")
    assert values == [{"apiVersion": "v1", "kind": "Good"}]
    assert "more than 2,000,000 values" in problems[0].message
    assert problems[0].location.span.line == 7  # ten to the sixth fits the limit, the seventh line does not


def test_a_merge_bomb_is_refused() -> None:
    lines = ["a0: &a0 {x: [1, 2, 3, 4, 5, 6, 7, 8, 9, 0]}"]
    lines += [f"a{i}: &a{i} {{<<: *a{i - 1}, k{i}: [{', '.join([f'*a{i - 1}'] * 10)}]}}" for i in range(1, 30)]
    problem = the_problem("\n".join(lines) + "\n")
    assert "more than 2,000,000 values" in problem.message


def test_modest_aliases_are_fine() -> None:
    values, problems = read(bomb(4))
    assert problems == []
    assert len(values[0]) == 4  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text", ["[" * 50_000, "{a: " * 50_000, "- " * 50_000, "".join("  " * i + f"k{i}:\n" for i in range(200))]
)
def test_depth(text: str) -> None:
    started = time.process_time()
    problem = the_problem(text)
    assert time.process_time() - started < 5
    assert "nested deeper than 100" in problem.message or "nesting depth" in problem.message


def test_depth_at_the_limit() -> None:
    assert read("[" * 100 + "]" * 100)[1] == []
    assert len(read("[" * 101 + "]" * 101)[1]) == 1


def test_count_of_values() -> None:
    problem = the_problem("a: [" + "x," * 1000 + "]\n", nodes=500)
    assert "more than 500 values" in problem.message


def test_length_of_a_value() -> None:
    assert "too long" in the_problem("a: " + "x" * 2000 + "\n", scalar=1000).message
    assert "too long" in the_problem('a: "' + "x" * 2000 + '"\n', scalar=1000).message
    assert "too long" in the_problem("a: |\n  " + "x" * 2000 + "\n", scalar=1000).message


def test_count_of_documents_stops_the_file() -> None:
    values, problems = read("---\na: 1\n" * 20, documents=10)
    assert len(values) == 10
    assert "more than 10 documents" in problems[0].message
    assert len(problems) == 1


def test_size() -> None:
    assert "too large" in the_problem("a: 1\n" * 100_000, size=1000).message


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("!!python/object/apply:os.system [id]", "!!python/object/apply:os.system"),
        ("!!python/name:os.system x", "!!python/name:os.system"),
        ("!Ref x", "!Ref"),
        ("!!binary aGk=", "!!binary"),
        ("!!set {a, b}", "!!set"),
        ("!!int many", "'many' is no !!int"),
    ],
)
def test_a_tag_refuses_the_object_and_builds_nothing(value: str, message: str) -> None:
    documents, problems = parse_stream(f"{GOOD}spec: {value}\n---\n{GOOD}", file="f.yaml")
    assert [d.value is None for d in documents] == [True, False]
    assert message in problems[0].message
    assert problems[0].location.span[:2] == (3, 7)
    assert len(problems) == 1


def test_what_is_no_manifest_may_have_any_tag_or_repeat_keys() -> None:
    """mkdocs.yml, CloudFormation and .gitlab-ci.yml are none of our business."""
    values, problems = read("a: !Ref x\na: !!python/name:os.system\n")
    assert problems == []
    assert values == [{"a": ""}]


def test_plain_tags_are_fine() -> None:
    """A lone ``!`` makes even a quoted scalar plain (parserc.go, yaml_parser_parse_node: plain_implicit)."""
    values, problems = read(f"{GOOD}a: !!str 5\nb: !!int '5'\nc: ! 5\nx: ! '6'\nd: !!map {{}}\ne: !!seq []\n")
    assert problems == []
    assert values == [{"apiVersion": "v1", "kind": "Good", "a": "5", "b": 5, "c": 5, "x": 6, "d": {}, "e": []}]


def test_duplicate_keys_the_last_wins_and_each_is_told() -> None:
    text = f"{GOOD}spec:\n  replicas: 1\n  image: a\n  replicas: 2\n  replicas: 3\n"
    documents, problems = parse_stream(text, file="f.yaml")
    spec = documents[0].value["spec"]
    assert spec == {"replicas": 3, "image": "a"}
    assert [p.kind for p in problems] == [ProblemKind.DUPLICATE_KEY] * 2
    assert [str(p.location) for p in problems] == ["f.yaml:6:3", "f.yaml:7:3"]
    assert "'replicas' is given twice, first at line 4" in problems[0].message
    assert spec.value_spans["replicas"][:2] == (7, 13)
    assert spec.value_spans["image"][:2] == (5, 10)
    assert list(spec) == ["replicas", "image"]


def test_keys_that_are_the_same_only_after_resolution_are_duplicates() -> None:
    _, problems = read(f'{GOOD}on: 1\n"true": 2\n')
    assert problems[0].kind is ProblemKind.DUPLICATE_KEY


@pytest.mark.parametrize("number", [".inf", "-.Inf", "+.INF", ".nan"])
def test_numbers_json_does_not_have(number: str) -> None:
    values, problems = read(f"{GOOD}a: {number}\nb: [{number}]\n")
    assert values[0]["a"] == number  # type: ignore[index]
    assert [p.kind for p in problems] == [ProblemKind.INVALID] * 2
    assert number in problems[0].message


def test_null_keys_refuse_the_object() -> None:
    values, problems = read(f"{GOOD}~: 1\n")
    assert values == [None]
    assert "null" in problems[0].message


def test_unprintable_character_among_documents() -> None:
    text = f"{GOOD}---\na: 1\n---\nb: x\x07y\nc: \x08\n---\n{GOOD}---\n\x00\n---\n{GOOD}"
    documents, problems = parse_stream(text, file="f.yaml")
    assert [d.value["kind"] for d in documents if isinstance(d.value, dict) and "kind" in d.value] == ["Good"] * 3
    assert [p.location.span.line for p in problems] == [6, 12]


def test_no_recursion_in_what_is_read() -> None:
    """A wide and legal document: values of every kind in 100 levels."""
    text = "".join("{a: [" for _ in range(50)) + "1" + "]}" * 50
    values, problems = read(text)
    assert problems == []
    assert str(values[0]).count("a") == 50


def test_memory_stays_in_proportion() -> None:
    text = bomb(40)
    tracemalloc.start()
    read(text)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 5_000_000


# -- bytes


def test_utf16_with_a_mark_is_read() -> None:
    for encoding in ("utf-16-le", "utf-16-be"):
        mark = "\ufeff".encode(encoding)
        assert decode(mark + "a: ü\r\n".encode(encoding)) == "a: ü\r\n"


def test_utf8_mark_stays() -> None:
    assert decode(b"\xef\xbb\xbfa: 1") == "\ufeffa: 1"


@pytest.mark.parametrize(
    ("data", "message", "position"),
    [
        (b"\x7fELF\x00\x01", "NUL byte at offset 4", (1, 5)),
        (b"a: 1\nb: \xff\n", "not UTF-8: byte 0xff at offset 8", (2, 4)),
        ("ä: 1\n".encode() + b"\xc3(", "not UTF-8: byte 0xc3 at offset 6", (2, 1)),
        ("a: 1\n".encode("utf-16-le"), "NUL byte", (1, 2)),
        (b"\xff\xfea", "not UTF-16", (1, 1)),
    ],
)
def test_no_text(data: bytes, message: str, position: tuple[int, int]) -> None:
    with pytest.raises(NotText) as caught:
        decode(data)
    assert message in caught.value.message
    assert caught.value.hint
    assert caught.value.span[:2] == position


def test_problems_are_lines_a_person_can_read() -> None:
    for text, *_ in BROKEN:
        for problem in parse_stream(text, file="f.yaml")[1]:
            assert len(problem.message) < 200
            assert problem.message.isprintable()


def test_document_type_is_frozen() -> None:
    documents, _ = parse_stream(GOOD)
    assert isinstance(documents[0], Document)
    with pytest.raises(AttributeError):
        documents[0].index = 3  # type: ignore[misc]
