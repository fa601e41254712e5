"""Exit codes from a report alone."""

from __future__ import annotations

import pytest

from stallscope.cli.pipeline import Gate, exit_code, nothing_checked
from stallscope.cli.selection import Selection
from stallscope.findings import Finding, Severity
from stallscope.judge.inputs import Problem, ProblemKind
from stallscope.model.source import Location
from stallscope.render.report import Report


def finding(rule: str, severity: Severity = Severity.ERROR) -> Finding:
    return Finding(rule=rule, slug="x", severity=severity, message="m", labels=())


def problem(kind: ProblemKind) -> Problem:
    return Problem(kind=kind, message="what", location=Location(file="a.yaml"), hint="do")


def gate(**settings) -> Gate:
    return Gate(selection=Selection(), **settings)


@pytest.mark.parametrize(
    ("findings", "problems", "unjudged", "settings", "code"),
    [
        ((), (), (), {}, 0),
        ((finding("STL201"),), (), (), {}, 1),
        ((finding("STL201", Severity.WARNING),), (), (), {}, 0),
        ((finding("STL201", Severity.WARNING),), (), (), {"fail_on": Severity.WARNING}, 1),
        ((finding("STL201", Severity.INFO),), (), (), {"fail_on": Severity.INFO}, 1),
        ((finding("STL201"),), (), (), {"fail_on": None}, 0),
        ((finding("STL201"),), (), (), {"exit_zero": True}, 0),
        ((), (), ("x",), {}, 0),
        ((), (), ("x",), {"strict": True}, 1),
        ((), (), ("x",), {"strict": True, "exit_zero": True}, 0),
        ((finding("STL201"),), (problem(ProblemKind.UNREADABLE),), (), {}, 2),
        ((), (problem(ProblemKind.UNREADABLE),), (), {"exit_zero": True}, 2),
        ((), (problem(ProblemKind.DUPLICATE_KEY),), (), {}, 0),
    ],
)
def test_exit_codes(findings, problems, unjudged, settings, code) -> None:
    unread = sum(p.kind is ProblemKind.UNREADABLE for p in problems)
    report = Report(version="0", findings=findings, problems=problems, unjudged=unjudged, unread=unread)
    assert exit_code(report, gate(**settings)) == code


@pytest.mark.parametrize(
    ("findings", "problems", "message"),
    [
        (("STL903",), (), "nothing to check: no training job in 2 files"),
        (("STL902", "STL903"), (ProblemKind.UNRENDERED,), "nothing to check: only unrendered templates in 2 files"),
        (("STL906",), (ProblemKind.UNSUPPORTED,), "nothing to check: what"),
        (("STL990",), (), "nothing to check: no training job in 2 files"),
        (("STL905",), (ProblemKind.INVALID,), None),
        (("STL211",), (), None),
    ],
)
def test_when_nothing_was_checked(findings, problems, message) -> None:
    report = Report(version="0", files=2, findings=tuple(map(finding, findings)), problems=tuple(map(problem, problems)))
    found = nothing_checked(report)
    assert (found.message if found else None) == message


def test_a_job_without_findings_was_checked(monkeypatch) -> None:
    assert nothing_checked(Report(version="0", jobs=(object(),))) is None  # type: ignore[arg-type]
