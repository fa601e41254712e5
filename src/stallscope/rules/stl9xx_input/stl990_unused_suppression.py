"""STL990: a suppression that suppresses nothing. Found by the command line, which applies suppressions."""

from __future__ import annotations

from collections.abc import Iterable

from stallscope.findings import Finding, Severity
from stallscope.judge.result import Judgement
from stallscope.rules.base import Report

REPORT = Report("STL990", "unused-suppression", Severity.WARNING)


def check(judgement: Judgement) -> Iterable[Finding]:  # noqa: ARG001  (suppressions are applied after all rules ran)
    return ()


RULE = REPORT.rule(
    check,
    what="A '# stallscope: ignore[...]' comment or a stallscope.dev/ignore annotation matches no finding.",
    why="A left-over suppression hides the next real finding on its line.",
    bad="""\
hostNetwork: false   # stallscope: ignore[STL207] reviewed in May
""",
    good="""\
hostNetwork: false
""",
    fix="Remove it, or correct the rule id.",
)
