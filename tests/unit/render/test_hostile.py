"""Whatever a manifest holds, every format renders, and no text for people carries a control character."""

from __future__ import annotations

import json
import unicodedata
from xml.etree import ElementTree

from hypothesis import given, settings
from hypothesis import strategies as st

from stallscope.findings import Confidence, Finding, Label, Severity, Suppressed, SuppressedBy
from stallscope.judge.inputs import Problem, ProblemKind
from stallscope.model.source import Location, Span
from stallscope.render.formats import FORMATS, render
from stallscope.render.report import Look, Report

ODD = st.text(
    st.one_of(
        st.characters(),
        st.sampled_from("\x00\x07\x1b\r\n\t\x7f\x9b\u202e\u2066\ufeff\u2028\ud800\udcff日é\u0301`<&%:,|[]{}"),
    ),
    max_size=30,
)
NUMBER = st.integers(0, 6)
SPANS = st.builds(Span, NUMBER, st.integers(0, 50), NUMBER, st.integers(0, 50), st.just(0), st.just(0))
STEP = st.one_of(ODD, st.integers(0, 3))
LOCATIONS = st.builds(
    Location, file=st.one_of(st.sampled_from(["a", "b", ""]), ODD), span=SPANS, route=st.tuples(STEP), rendered_from=ODD
)
LABELS = st.lists(st.builds(Label, location=LOCATIONS, text=ODD, primary=st.booleans()), max_size=4).map(tuple)
FINDINGS = st.builds(
    Finding,
    rule=st.sampled_from(["STL101", "STL201"]),
    slug=st.just("some-rule"),
    severity=st.sampled_from(Severity),
    message=ODD,
    labels=LABELS,
    subject=ODD,
    key=ODD,
    confidence=st.sampled_from(Confidence),
    notes=st.lists(ODD, max_size=2).map(tuple),
    help=ODD,
    fixable=st.booleans(),
)
PROBLEMS = st.builds(Problem, kind=st.sampled_from(ProblemKind), message=ODD, location=LOCATIONS, hint=ODD, subject=ODD)
SUPPRESSED = st.builds(
    Suppressed,
    finding=FINDINGS,
    by=st.sampled_from(SuppressedBy),
    reason=ODD,
    location=st.one_of(st.none(), LOCATIONS),
)
REPORTS = st.builds(
    Report,
    version=st.just("0"),
    findings=st.lists(FINDINGS, max_size=3).map(tuple),
    suppressed=st.lists(SUPPRESSED, max_size=2).map(tuple),
    problems=st.lists(PROBLEMS, max_size=2).map(tuple),
    unjudged=st.lists(ODD, max_size=2).map(tuple),
)
LOOKS = st.builds(Look, width=st.integers(40, 140), unicode=st.booleans(), inputs=ODD)
LINES = st.lists(ODD.map(lambda t: t.replace("\r", "").replace("\n", "")), max_size=7)


class Lines:
    def __init__(self, lines):
        self._lines = lines

    def lines(self, file):
        return self._lines if file in ("a", "b") else None


@settings(max_examples=300, deadline=None)
@given(REPORTS, LINES, LOOKS)
def test_every_format_holds(report, lines, look) -> None:
    shown = {name: render(name, report, Lines(lines), look) for name in FORMATS}
    for name in ("text", "short", "github", "md"):
        bad = {c for c in shown[name] if unicodedata.category(c) in ("Cc", "Cs") and c != "\n"}
        assert not bad, name
        assert not set(shown[name]) & set("\u202e\u2066\u2028\ufeff"), name
        shown[name].encode("utf-8")
    for name in ("json", "sarif", "gitlab"):
        json.loads(shown[name])
        assert shown[name].isascii()
    ElementTree.fromstring(shown["junit"].encode("utf-8"))  # noqa: S314
    commands = [x for x in shown["github"].splitlines() if x.startswith("::")]
    assert len(commands) <= len(report.findings) + len(report.problems)


@settings(max_examples=200, deadline=None)
@given(FINDINGS, LINES, st.integers(40, 100))
def test_excerpts_keep_to_the_width(finding, lines, width) -> None:
    from stallscope.render.escape import text_width
    from stallscope.render.excerpt import excerpt

    gutter, shown = excerpt(finding.labels, "error", Lines(lines), Look(width=width))
    for line in shown:
        bar = line[gutter:].startswith(" |") and " --> " not in line
        words = [len(w) for w in line.split()]
        if bar and max(words, default=0) < 20 and line[:gutter].strip():
            assert text_width(line) <= width
