"""Findings about the input itself: one rule per kind of problem the loader reports."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from stallscope.findings import Finding, Severity
from stallscope.judge.inputs import Problem, ProblemKind
from stallscope.judge.result import Judgement
from stallscope.rules.base import Report
from stallscope.rules.support.words import label


def problem_check(report: Report, *kinds: ProblemKind, help: str) -> Callable[[Judgement], Iterable[Finding]]:
    """A check that turns the problems of those kinds into findings, one each; `help` where the loader has no better hint."""

    def check(judgement: Judgement) -> Iterator[Finding]:
        for problem in judgement.inputs.problems:
            if problem.kind in kinds:
                yield _finding(report, problem, help)

    return check


def _finding(report: Report, problem: Problem, help: str) -> Finding:
    return report.finding(
        problem.message,
        (label(problem.location, problem.kind.value.replace("-", " "), primary=True),),
        subject=problem.subject or problem.location.file,
        key=problem.message,
        severity=Severity.INFO if problem.minor else None,
        help=problem.hint or help,
    )
