"""Suppressions by comment, file and annotation, as docs/suppressions.md defines them."""

from __future__ import annotations

import pytest

from stallscope.findings import Finding, Label, Severity, SuppressedBy
from stallscope.load.directives import covered, in_annotations, in_comments
from stallscope.load.stream import parse_stream
from stallscope.load.suppress import find_directives, suppress
from stallscope.model.kube import KubeObject, from_body
from stallscope.model.source import Location, Span

KNOWN = {"STL101": "job-can-split", "STL201": "peer-denied", "STL203": "rendezvous-denied", "STL990": "unused-suppression"}


def finding(line: int, rule: str = "STL203", file: str = "a.yaml", subject: str = "") -> Finding:
    label = Label(location=Location(file=file, span=Span(line, 3, line, 9, 0, 0)), text="", primary=True)
    return Finding(rule=rule, slug=KNOWN[rule], severity=Severity.ERROR, message="m", labels=(label,), subject=subject)


def objects(text: str, file: str = "a.yaml") -> list[KubeObject]:
    documents, problems = parse_stream(text, file=file)
    assert not problems
    return [from_body(d.value, file=file, document=d.index) for d in documents]


def outcome(text: str, *findings: Finding, **settings):
    directives = find_directives(objects(text), {"a.yaml": text}.get)
    return suppress(findings, directives, known=KNOWN, **settings)


BLOCK = """\
apiVersion: v1
kind: Thing
spec:
  ingress:      # stallscope: ignore[STL203] reviewed
  - from: a
    ports: []
  egress: []
  # stallscope: ignore[STL203,STL101] on purpose
  other:
    deep: 1
  last: 2
"""


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (3, None),
        (4, "reviewed"),
        (5, "reviewed"),
        (6, "reviewed"),
        (7, None),
        (9, "on purpose"),
        (10, "on purpose"),
        (11, None),
    ],
)
def test_a_comment_covers_the_node_beside_or_below_it(line, reason) -> None:
    result = outcome(BLOCK, finding(line))
    if reason is None:
        assert len(result.kept) == 1
    else:
        (item,) = result.suppressed
        assert (item.reason, item.by, item.location.span.line) == (reason, SuppressedBy.COMMENT, 4 if line < 8 else 8)
        assert not result.kept


def test_any_label_counts_not_only_the_primary() -> None:
    place = Location(file="a.yaml", span=Span(5, 1, 5, 2, 0, 0))
    other = Location(file="b.yaml", span=Span(1, 1, 1, 2, 0, 0))
    labels = (Label(location=other, text="", primary=True), Label(location=place, text=""))
    both = Finding(rule="STL203", slug="rendezvous-denied", severity=Severity.ERROR, message="", labels=labels)
    assert len(outcome(BLOCK, both).suppressed) == 1


def test_a_slug_names_the_rule_too_and_other_rules_stay() -> None:
    text = "a: 1\nb: 2 # stallscope: ignore[rendezvous-denied] why\n"
    result = outcome(text, finding(2), finding(2, "STL101"))
    assert [f.rule for f in result.kept] == ["STL101"]


@pytest.mark.parametrize("head", ["# stallscope: ignore[STL203] x\na: 1\n", "a: 1 # stallscope: ignore[STL203] x\n"])
def test_at_the_first_line_of_a_document_a_comment_covers_the_document(head) -> None:
    text = "z: 0\n---\n" + head + "b: 2\nc:\n  d: 3\n---\ne: 4\n"
    last = text.splitlines().index("  d: 3") + 1
    result = outcome(text, finding(last), finding(1), finding(last + 2))
    assert [f.primary.span.line for f in result.kept] == [1, last + 2]


def test_a_comment_covers_the_list_item_below_it() -> None:
    lines = ["a: 1", "x:", "- p: 1", "# stallscope: ignore[STL203] x", "- p: 2", "  q: 3", "- p: 4"]
    assert covered(lines, 3) == (4, 6)
    assert covered(["a: 1", "# stallscope: ignore[STL203] x"], 1) == (2, 2)  # nothing below it


def test_ignore_file_covers_the_file() -> None:
    text = "a: 1\nb: 2\n# stallscope: ignore-file[STL203] generated\n"
    result = outcome(text, finding(1), finding(2), finding(2, "STL101"), finding(1, file="b.yaml"))
    assert len(result.suppressed) == 2
    assert len(result.kept) == 2


def test_text_that_looks_like_a_comment_is_none() -> None:
    text = 'a: 1\ndata:\n  run: |\n    # stallscope: ignore[STL203] x\n    echo\n  two: "# stallscope: ignore[STL203] y"\n'
    assert in_comments(text, "a.yaml", objects(text)) == []
    assert len(in_comments(text.replace("run: |", "run:"), "a.yaml", ())) == 1  # the second stands behind a quote


VALUE = 'stallscope.dev/ignore: "STL203=because; STL101,STL201=two of them"'
ANNOTATED = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata:
  name: llm
  namespace: train
  annotations:
    {job}
spec:
  template:
    metadata:
      annotations:
        {template}
---
apiVersion: v1
kind: Pod
metadata: {{name: p}}
"""


@pytest.mark.parametrize("where", ["job", "template"])
def test_an_annotation_on_the_object_or_its_template_covers_the_object(where) -> None:
    text = ANNOTATED.format(**{"job": "a: b", "template": "a: b", where: VALUE})
    pod = text.splitlines().index("kind: Pod") + 1
    result = outcome(
        text, finding(4), finding(8, "STL101"), finding(pod), finding(99, "STL201", "b.yaml", "PyTorchJob train/llm")
    )
    assert [f.primary.span.line for f in result.kept] == [pod]
    assert [(s.finding.rule, s.reason) for s in result.suppressed] == [
        ("STL203", "because"),
        ("STL101", "two of them"),
        ("STL201", "two of them"),
    ]
    assert {s.by for s in result.suppressed} == {SuppressedBy.ANNOTATION}


def test_objects_without_text_are_annotated_too() -> None:
    body = {"kind": "Pod", "metadata": {"name": "p", "annotations": {"stallscope.dev/ignore": "STL203"}}}
    (directive,) = in_annotations([from_body(body)])
    assert (directive.rule, directive.reason, directive.subject) == ("STL203", "", "Pod default/p")


@pytest.mark.parametrize("value", [None, 3, [], {"a": 1}, "", " ; "])
def test_an_annotation_that_says_nothing_is_a_finding(value) -> None:
    body = {"kind": "Pod", "metadata": {"name": "p", "annotations": {"stallscope.dev/ignore": value}}}
    result = suppress([], in_annotations([from_body(body)]), known=KNOWN)
    assert [f.message for f in result.complaints] == [
        'this suppression has no effect: it names no rule; write "STL203=reason; STL101=reason"'
    ]


def test_unused_suppressions_are_findings_with_their_place() -> None:
    (complaint,) = outcome(BLOCK, finding(4), finding(9)).complaints
    assert (complaint.rule, complaint.slug, complaint.severity) == ("STL990", "unused-suppression", Severity.WARNING)
    assert complaint.message == "unused suppression: STL101 is not found here"
    assert (complaint.primary.file, complaint.primary.span.line, complaint.primary.span.column) == ("a.yaml", 8, 3)
    assert complaint.primary.span.end_column == len("  # stallscope: ignore[STL203,STL101] on purpose") + 1


def test_a_suppression_of_a_rule_that_did_not_run_is_not_unused() -> None:
    result = outcome(BLOCK, finding(4), finding(9), enabled=lambda rule: rule != "STL101")
    assert result.complaints == ()


@pytest.mark.parametrize(
    ("comment", "message"),
    [
        ("ignore", "it names no rule; write `ignore[STL203] reason`"),
        ("ignore STL203", "it names no rule; write `ignore[STL203] reason`"),
        ("ignore[]", "it names no rule; write `ignore[STL203] reason`"),
        ("ignore-file", "it names no rule; write `ignore-file[STL203] reason`"),
        ("ignore-line[STL203]", "`ignore-line` is no directive; use `ignore` or `ignore-file`"),
        ("ignore[STL207]", "there is no rule STL207; did you mean STL203?"),
        ("ignore[peer-deny]", "there is no rule peer-deny; did you mean peer-denied?"),
    ],
)
def test_a_suppression_that_cannot_work_says_why(comment, message) -> None:
    (complaint,) = outcome(f"a: 1\nb: 2 # stallscope: {comment}\n").complaints
    assert complaint.message == f"this suppression has no effect: {message}"


def test_other_words_after_the_name_are_just_comments() -> None:
    assert (
        outcome("a: 1 # stallscope: ignored by us\nb: 2 # stallscope: see the docs\n# stallscope is fine\n").complaints == ()
    )


def test_strict_wants_a_reason() -> None:
    text = "a: 1\nb: 2 # stallscope: ignore[STL203]\nc: 3 # stallscope: ignore[STL203] because\n"
    assert len(outcome(text, finding(2), finding(3)).suppressed) == 2
    strict = outcome(text, finding(2), finding(3), strict=True)
    assert [s.finding.primary.span.line for s in strict.suppressed] == [3]
    assert strict.kept[0].notes == ("the suppression at a.yaml:2:6 gives no reason, which --strict requires",)
    assert strict.complaints == ()


def test_line_ends_of_windows() -> None:
    text = BLOCK.replace("\n", "\r\n")
    assert [s.finding.primary.span.line for s in outcome(text, finding(6), finding(7)).suppressed] == [6]
