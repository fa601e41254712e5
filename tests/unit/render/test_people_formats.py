"""The summary line, Markdown, and the documentation of rules."""

from __future__ import annotations

import re
from dataclasses import replace

from stallscope.findings import Finding, Label, Severity
from stallscope.render import markdown, ruledoc
from stallscope.render.report import Look, Report
from stallscope.render.summary import summary


def test_summary(report) -> None:
    assert summary(report) == (
        "3 findings (1 fixable): 1 error, 1 warning, 1 info. Checked 1 job, 11 policies, 36 peer edges in 0.21 s; "
        "1 suppressed, 1 in the baseline, 1 stale baseline entry, 1 unjudged"
    )


def test_summary_of_a_clean_run(job) -> None:
    clean = Report(version="0", jobs=(job, job), policies=1, edges=1, seconds=0.004)
    assert summary(clean) == "No findings. Checked 2 jobs, 1 policy, 1 peer edge in 0.00 s"


def test_summary_in_the_plural(denied, split) -> None:
    found = Report(version="0", findings=(denied, denied, split, split, split))
    assert summary(found) == "5 findings (2 fixable): 2 errors, 3 warnings. Checked 0 jobs, 0 policies, 0 peer edges"


def test_markdown(report, sources) -> None:
    shown = markdown.render(
        replace(report, findings=report.findings[2:], problems=()), sources, Look(width=100, inputs="deploy/")
    )
    assert shown.startswith(
        "### Stallscope: 1 error\n\n1 finding (1 fixable): 1 error. Checked 1 job, 11 policies, 36 peer edges; "
    )
    assert "#### error STL201: worker-1 cannot reach master-0 on TCP 32768\n\n```\n  --> policy.yaml:11:7\n   |\n" in shown
    assert "   |       ^^^^^^^^^^^^^ admits zone=a only\n" in shown
    assert "- witness: worker-1 lands in zone b\n- **Help:** admit every rank on all TCP ports\n" in shown
    assert "- **Fix:** `stallscope fix deploy/` shows the patch\n" in shown
    assert "<details><summary>Not judged (1)</summary>" in shown


def test_markdown_has_no_markup_of_strangers(at, texts) -> None:
    evil = "<img src=x onerror=y> @team [x](http://e.example) `c` ![i](u)\n# head\n```\n</details>"
    finding = Finding(
        rule="STL201",
        slug="x",
        severity=Severity.ERROR,
        message=evil,
        labels=(Label(location=at("p", 1, 1, 1), text=evil, primary=True),),
        notes=(evil,),
        help=evil,
    )
    shown = markdown.render(Report(version="0", findings=(finding,), unjudged=(evil,)), texts({"p": "``````"}), Look())
    fence = "`" * 7
    before, code, after = shown.split(fence)
    prose = before + after
    assert not re.search(r"(?<!\\)(<img|\[x\]|`c`)", prose)
    assert "@team" not in prose and "@&#8203;team" in prose
    assert not any(line.startswith("# head") for line in shown.splitlines())
    assert "``````" in code
    assert after.count("</details>") == 1


def test_markdown_keeps_the_lines_of_a_note(denied, sources) -> None:
    finding = replace(denied, notes=("placement:\n  zone-a: <w>\n  zone-b: x",))
    assert "- placement:<br>zone-a: \\<w\\><br>zone-b: x\n" in markdown.render(
        Report(version="0", findings=(finding,)), sources, Look()
    )


def test_markdown_fits_in_a_comment(denied, sources) -> None:
    many = tuple(replace(denied, message=f"number {i} " + "x" * 900) for i in range(200))
    shown = markdown.render(Report(version="0", findings=many), sources, Look())
    assert len(shown) < 65_536
    assert "more findings; run `stallscope check` to see them" in shown


def test_explain(rule) -> None:
    assert ruledoc.text(rule, Look(width=80)) == (
        "STL201 peer-denied  (error, since 0.1.0, `fix` knows a patch)\n"
        "\n"
        "What\n"
        "  A policy denies a connection. The job needs it.\n"
        "\n"
        "Why\n"
        "  The ring waits for ever.\n"
        "\n"
        "Bad\n"
        "  ports: [29500]\n"
        "\n"
        "Good\n"
        "  ports: []\n"
        "\n"
        "Fix\n"
        "  Admit the job's own pods.\n"
        "\n"
        "Suppress\n"
        "  # stallscope: ignore[STL201] why this is fine\n"
        "  metadata:\n"
        "    annotations:\n"
        '      stallscope.dev/ignore: "STL201=why this is fine"\n'
        "\n"
        "Sources\n"
        "  https://docs.cilium.io\n"
    )


def test_rules_are_one_line_each(rule) -> None:
    other = replace(rule, id="STL101", slug="job-can-split", severity=Severity.WARNING, what="word, " * 20)
    assert ruledoc.table([rule, other], Look(width=80)).splitlines() == [
        "STL101  warning  job-can-split  word, word, word, word, word, word, word, word…",
        "STL201  error    peer-denied    A policy denies a connection",
    ]
    assert ruledoc.table([rule], Look(width=40)) == "STL201  error    peer-denied\n"
