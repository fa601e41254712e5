"""Expected texts are written by hand from the look described in DESIGN §7 and docs/output.md."""

from __future__ import annotations

from dataclasses import replace

from stallscope.findings import Finding, Label, Severity
from stallscope.model.source import Location, Span
from stallscope.render.excerpt import excerpt
from stallscope.render.report import Look, NoSources, Report
from stallscope.render.text import finding_text, render

WIDE = Look(width=100, inputs="deploy/")


def test_a_finding_shows_the_primary_file_first_then_the_others(denied, sources) -> None:
    assert finding_text(denied, sources, WIDE) == (
        "error[STL201]: worker-1 cannot reach master-0 on TCP 32768\n"
        "  --> policy.yaml:11:7\n"
        "   |\n"
        "11 |     - fromEndpoints:\n"
        "   |       ^^^^^^^^^^^^^ admits zone=a only\n"
        "   |\n"
        "  ::: job.yaml:12:13\n"
        "   |\n"
        "12 |             zone: b\n"
        "   |             ---- this worker has zone=b\n"
        "   |\n"
        "   = note: witness: worker-1 lands in zone b\n"
        "   = help: admit every rank on all TCP ports\n"
        "   = fix: `stallscope fix deploy/` shows the patch\n"
    )


def test_labels_of_one_file_share_an_excerpt_and_gaps_are_dotted(denied, at, sources) -> None:
    labels = (
        Label(location=at("policy.yaml", 11, 7, 13), text="this rule", primary=True),
        Label(location=at("policy.yaml", 13, 13, 4), text="admits this"),
        Label(location=at("policy.yaml", 4, 3, 4), text="in this policy"),
    )
    shown = finding_text(replace(denied, labels=labels, notes=(), help="", fixable=False), sources, WIDE)
    assert shown == (
        "error[STL201]: worker-1 cannot reach master-0 on TCP 32768\n"
        "  --> policy.yaml:11:7\n"
        "   |\n"
        " 4 |   name: zone-boundary\n"
        "   |   ---- in this policy\n"
        "...\n"
        "11 |     - fromEndpoints:\n"
        "   |       ^^^^^^^^^^^^^ this rule\n"
        "12 |         - matchLabels:\n"
        "13 |             zone: a\n"
        "   |             ---- admits this\n"
        "   |\n"
    )


def test_two_labels_of_one_line_show_the_line_once(denied, at, texts) -> None:
    labels = (
        Label(location=at("a.yaml", 1, 1, 3), text="key", primary=True),
        Label(location=at("a.yaml", 1, 6, 1), text="value"),
    )
    shown = finding_text(replace(denied, labels=labels, notes=(), help="", fixable=False), texts({"a.yaml": "foo: b"}), WIDE)
    assert shown.splitlines()[2:] == ["  |", "1 | foo: b", "  | ^^^ key", "  |      - value", "  |"]


def test_without_sources_places_and_texts_remain(denied) -> None:
    shown = finding_text(denied, NoSources(), WIDE)
    assert shown.splitlines()[:5] == [
        "error[STL201]: worker-1 cannot reach master-0 on TCP 32768",
        "  --> policy.yaml:11:7",
        "   | admits zone=a only",
        "  ::: job.yaml:12:13",
        "   | this worker has zone=b",
    ]


def test_a_span_of_several_lines_is_marked_to_the_end_of_its_first(denied, texts) -> None:
    label = Label(location=Location(file="a.yaml", span=Span(1, 3, 3, 1, 2, 20)), text="all of it", primary=True)
    shown = finding_text(
        replace(denied, labels=(label,), notes=(), help="", fixable=False), texts({"a.yaml": "- ports:\n  - 1\n"}), WIDE
    )
    assert shown.splitlines()[3:5] == ["1 | - ports:", "  |   ^^^^^^ all of it"]


def test_text_for_narrow_terminals_stays_within_80_columns(denied, at, texts) -> None:
    long = " and ".join(["admits only pods of the namespace train"] * 3)
    deep = " " * 30 + "matchLabels: {zone: a}"
    labels = (Label(location=at("p.yaml", 1, 31, 11), text=long, primary=True),)
    finding = replace(denied, labels=labels, notes=(long,), help=long)
    lines = finding_text(finding, texts({"p.yaml": deep}), Look(width=80)).splitlines()
    assert max(map(len, lines)) <= 80
    assert "".join(lines).count("namespace") >= 6  # wrapped, not cut
    assert "  |                               ^^^^^^^^^^^ admits only pods of the namespace" in lines


def test_a_long_line_is_cut_around_its_label(denied, at, texts) -> None:
    line = "x" * 500 + " needle " + "y" * 500_000
    label = Label(location=at("p.json", 1, 502, 6), text="here", primary=True)
    finding = replace(denied, labels=(label,), notes=(), help="", fixable=False)
    source, marks = finding_text(finding, texts({"p.json": line}), Look(width=60)).splitlines()[3:5]
    assert len(source) <= 60 and source.startswith("1 | …x") and source.endswith("y…")
    column = source.index("needle")
    assert marks == "  |" + " " * (column - 3) + "^^^^^^ here"


def test_marks_stand_under_wide_characters(denied, at, texts) -> None:
    label = Label(location=at("p.yaml", 1, 3, 2), text="two", primary=True)
    finding = replace(denied, labels=(label,), notes=(), help="", fixable=False)
    shown = finding_text(finding, texts({"p.yaml": "东京東西"}), WIDE)
    assert shown.splitlines()[3:5] == ["1 | 东京東西", "  |     ^^^^ two"]  # two columns a character


def test_a_label_beyond_the_file_does_not_fail(denied, at, sources) -> None:
    labels = (Label(location=at("policy.yaml", 999, 7, 1), text="gone", primary=True),)
    assert "gone" in finding_text(replace(denied, labels=labels), sources, WIDE)
    labels = (Label(location=at("policy.yaml", 4, 400, 5), text="past the end", primary=True),)
    assert "past the end" in finding_text(replace(denied, labels=labels), sources, WIDE)


def test_a_finding_without_place(telemetry) -> None:
    assert finding_text(telemetry, NoSources(), WIDE) == "info[STL401]: nothing reports collectives\n"


def test_rendered_text_names_its_template(denied, at, sources) -> None:
    place = replace(at("policy.yaml", 4, 3, 4), rendered_from="chart/templates/p.yaml")
    finding = replace(denied, labels=(Label(location=place, text="", primary=True),))
    assert "\n --> policy.yaml:4:3 (rendered from chart/templates/p.yaml)" in finding_text(finding, sources, WIDE)


def test_nothing_in_a_manifest_can_drive_the_terminal(at, texts) -> None:
    evil = "\x1b[2J\x1b]0;owned\x07\r\u202eabc\u009b31m\ud800\x00"
    finding = Finding(
        rule="STL201",
        slug="x",
        severity=Severity.ERROR,
        message=f"m{evil}\nerror[STL999]: forged",
        labels=(Label(location=at(f"f{evil}", 1, 1, 40), text=f"l{evil}", primary=True),),
        subject=evil,
        notes=(f"n{evil}",),
        help=f"h{evil}",
        fixable=True,
    )
    report = Report(version="0", findings=(finding,), unjudged=(evil,))
    for color in (False, True):
        shown = render(report, texts({f"f{evil}": evil}), Look(width=200, color=color))
        for escape in ("\x1b[0m", "\x1b[1m", "\x1b[2m", *(f"\x1b[1;{n}m" for n in (31, 32, 33, 34, 36))):
            shown = shown.replace(escape, "")
        assert not set(shown) & set("\x1b\x07\r\u202e\u009b\ud800\x00")
        assert "\nerror[STL999]" not in shown


def test_colour_only_adds_escapes(denied, sources) -> None:
    import re

    colored = finding_text(denied, sources, replace(WIDE, color=True))
    assert colored.startswith("\x1b[1;31merror[STL201]\x1b[0m")
    assert re.sub("\x1b\\[[0-9;]*m", "", colored) == finding_text(denied, sources, WIDE)


def test_locations_are_links_where_the_terminal_can_follow_them(denied, sources) -> None:
    look = replace(WIDE, color=True, link=lambda place: f"file:///repo/{place.file}")
    shown = finding_text(denied, sources, look)
    assert "\x1b]8;;file:///repo/policy.yaml\x1b\\policy.yaml:11:7\x1b]8;;\x1b\\" in shown


def test_the_report_has_problems_then_errors_first_then_what_was_not_judged(report, sources) -> None:
    shown = render(report, sources, WIDE)
    heads = [line for line in shown.splitlines() if line and not line[0].isspace() and "|" not in line]
    assert heads == [
        "warning: a Helm template",
        "error[STL201]: worker-1 cannot reach master-0 on TCP 32768",
        "warning[STL101]: the ranks can land in 2 zones",
        "info[STL401]: nothing reports collectives",
        "note: not judged (1 verdict)",
    ]
    assert " --> chart/job.yaml:1:1\n  = help: render it\n" in shown
    assert shown.endswith("  - host network of PyTorchJob train/llm\n\n")


def test_a_problem_that_a_finding_reports_is_not_said_twice(report, sources, at) -> None:
    told = Finding(
        rule="STL902",
        slug="unrendered-template",
        severity=Severity.WARNING,
        message="a Helm template",
        labels=(Label(location=at("chart/job.yaml", 1, 1, 2), text="", primary=True),),
    )
    shown = render(replace(report, findings=(told,), suppressed=()), sources, WIDE)
    assert shown.count("a Helm template") == 1


def test_a_clean_report_is_empty(sources) -> None:
    assert render(Report(version="0"), sources, WIDE) == ""


def test_two_places_on_one_long_line_are_shown_apart() -> None:
    """A JSON dump is one line: each label gets the part of the line it speaks of."""
    line = '{"first": 1, ' + '"x": 0, ' * 60 + '"second": 2}'
    at = line.index('"second"') + 1
    labels = [
        Label(location=Location(file="d.json", span=Span(1, 2, 1, 9, 1, 8)), text="one", primary=True),
        Label(location=Location(file="d.json", span=Span(1, at, 1, at + 8, at - 1, at + 7)), text="two"),
    ]

    class Sources:
        def text(self, file: str) -> str:
            return line

        def lines(self, file: str) -> list[str]:
            return [line]

    _, shown = excerpt(labels, "error", Sources(), Look(width=80))
    first, second = (i for i, text in enumerate(shown) if text.startswith("1 | "))
    for place, word in ((first, '"first"'), (second, '"second"')):
        marks = shown[place + 1]
        begin = min(i for i, c in enumerate(marks) if c in "^-")
        assert shown[place][begin : begin + len(word)] == word
