"""
For any tree: our values are those of PyYAML's own loader (but for what Go reads differently), and every span, cut out of the
text, reads as the value it belongs to.
"""

from __future__ import annotations

from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from stallscope.load.scalars import as_key, resolve_plain
from stallscope.load.stream import parse_stream
from stallscope.model.source import ListNode, MapNode, Span, span_of

PRINTABLE = st.characters(
    codec="utf-8", exclude_categories=("Cs", "Cc"), exclude_characters="\x85\u2028\u2029\ufeff\ufffe\uffff"
)
TEXTS = st.one_of(
    st.text(PRINTABLE, max_size=20),
    st.text(st.sampled_from("ab \n\t:#-'\"{}[],&*!|>%@`\\?=~0123456789.xoe_"), max_size=30),
    st.sampled_from(
        ["yes", "on", "0777", "0o17", "1_000", "12:30:45", "2001-01-01", ".inf", "<<", "null", "1e3", "=", "---"]
    ),
)
KEYS = TEXTS.filter(lambda t: as_key(resolve_plain(t)) == t and t != "<<" and t.isprintable() and len(t) < 60)
LEAVES = st.one_of(
    TEXTS, st.integers(-(2**63), 2**64 - 1), st.booleans(), st.none(), st.floats(allow_nan=False, allow_infinity=False)
)
TREES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=25
)
STYLES = st.fixed_dictionaries(
    {
        "default_flow_style": st.sampled_from([False, True, None]),
        "default_style": st.sampled_from([None, None, None, '"', "'", "|", ">"]),
        "indent": st.integers(2, 7),
        "width": st.sampled_from([20, 80, 1000]),
        "allow_unicode": st.booleans(),
        "line_break": st.sampled_from(["\n", "\r\n", "\r"]),
    }
)


class Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


def dump(tree: Any, style: dict[str, Any]) -> str:
    return yaml.dump(tree, Dumper=Dumper, sort_keys=False, **style)


def same_but_for_go(ours: Any, safe: Any, raw: Any) -> bool:
    """`raw` is the tree with every scalar as its text."""
    if isinstance(raw, dict):
        return list(ours) == list(safe) and all(
            same_but_for_go(ours[k], safe[k], raw_value) for k, raw_value in zip(ours, raw.values(), strict=True)
        )
    if isinstance(raw, list):
        return len(ours) == len(raw) and all(map(same_but_for_go, ours, safe, raw))
    if ours == safe and isinstance(ours, bool) == isinstance(safe, bool):
        return True
    return bool(ours == resolve_plain(raw))


@settings(max_examples=300, deadline=None)
@given(TREES, STYLES)
def test_values_are_those_of_the_reference_loader(tree: Any, style: dict[str, Any]) -> None:
    text = dump(tree, style)
    documents, problems = parse_stream(text)
    assert [p for p in problems if p.kind == "unreadable"] == []
    (document,) = documents
    raw = yaml.load(text, yaml.CBaseLoader)  # noqa: S506 - text only
    try:
        safe = yaml.load(text, yaml.CSafeLoader)
    except ValueError:  # CSafeLoader makes dates of what looks like one, possible or not
        safe = raw
    assert same_but_for_go(document.value, safe, raw)


@settings(max_examples=300, deadline=None)
@given(TREES, STYLES)
def test_spans_read_as_their_values(tree: Any, style: dict[str, Any]) -> None:
    text = dump(tree, style)
    (document,), _ = parse_stream(text)
    for parent, span, value, key_span in places(document.value):
        assert reread(text, span, parent, key_span) == value
        if isinstance(value, MapNode | ListNode):
            assert span == value.span
            if not value.flow:
                ends = value.value_spans.values() if isinstance(value, MapNode) else value.item_spans
                assert span.end == max(s.end for s in ends)


@settings(max_examples=200, deadline=None)
@given(TREES, STYLES)
def test_lines_and_columns_agree_with_offsets(tree: Any, style: dict[str, Any]) -> None:
    text = dump(tree, style)
    (document,), _ = parse_stream(text)
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for _, span, _, key_span in places(document.value):
        for found in (span, key_span):
            if found is not None and found.start < found.end:
                head = text[found.start : found.end].splitlines()[0][:1]
                assert lines[found.line - 1][found.column - 1 :].startswith(head)


@settings(max_examples=200, deadline=None)
@given(st.lists(TREES, min_size=1, max_size=4), STYLES)
def test_documents_of_a_stream(trees: list[Any], style: dict[str, Any]) -> None:
    text = "".join(f"---\n{dump(t, style)}" if not dump(t, style).startswith("---") else dump(t, style) for t in trees)
    alone = [parse_stream(dump(t, style))[0][0].value for t in trees]
    assert [d.value for d in parse_stream(text)[0]] == alone


@settings(max_examples=300, deadline=None)
@given(st.text(st.sampled_from("ab:- \n\t{}[],&*!|>%#\"'?x0\x00\x1b\ud800é"), max_size=60))
def test_any_text_is_read_or_told(text: str) -> None:
    documents, problems = parse_stream(text, file="f")
    assert [d.index for d in documents] == sorted({d.index for d in documents})
    for problem in problems:
        assert problem.message
        assert problem.location.span.line >= 1
        assert 0 <= problem.location.span.start <= len(text)


def places(root: Any) -> list[tuple[Any, Span, Any, Span | None]]:
    """Parent, span, value and the key's span of every value below `root`."""
    found: list[tuple[Any, Span, Any, Span | None]] = []
    pending = [root]
    while pending:
        node = pending.pop()
        if isinstance(node, MapNode):
            found += [(node, node.value_spans[k], v, node.key_spans[k]) for k, v in node.items()]
            pending += node.values()
        elif isinstance(node, ListNode):
            found += [(node, s, v, None) for s, v in zip(node.item_spans, node, strict=True)]
            pending += node
    return found


def reread(text: str, span: Span, parent: Any, key: Span | None) -> Any:
    """The value of ``text[span]``, read in a context like its own."""
    cut = text[span.start : span.end]
    if parent.flow:
        context = f"[{cut}\n]" if cut else "[~]"
        return parse_stream(context)[0][0].value[0]
    if key is not None and key.line == span.line:
        return parse_stream(f"{' ' * (key.column - 1)}k: {cut}\n")[0][0].value["k"]
    if key is None and not is_block_collection(cut, span):
        return parse_stream(f"{' ' * max(span.column - 3, 0)}- {cut}\n")[0][0].value[0]
    return parse_stream(" " * (span.column - 1) + cut + "\n")[0][0].value


def is_block_collection(cut: str, span: Span) -> bool:
    return span.line != span.end_line and not cut.startswith(("|", ">", '"', "'", "[", "{"))


def test_the_helper_sees_every_value() -> None:
    (document,), _ = parse_stream("a: [1, {b: 2}]\nc: {}\n")
    assert len(places(document.value)) == 5
    assert span_of(document.value, ("a", 1, "b"), key=False).column == 12
