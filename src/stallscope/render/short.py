"""One line a finding, for editors and grep: ``file:line:col: STL201 message``."""

from __future__ import annotations

from stallscope.findings import Finding
from stallscope.render.escape import visible
from stallscope.render.report import Report, loose_problems, origin


def render(report: Report) -> str:
    """Findings in order of place, preceded by problems with the input."""
    lines = [f"{visible(str(p.location))}: {p.kind} {visible(p.message)}" for p in loose_problems(report)]
    lines += [line(f) for f in report.findings]
    return "".join(x + "\n" for x in lines)


def line(finding: Finding) -> str:
    """``file:line:col: STL201 message``, then the template it is rendered from. Without a file the subject is its place."""
    place = visible(str(finding.primary)) or visible(finding.subject) or "-"
    return f"{place}: {finding.rule} {visible(finding.message + origin(finding.primary))}"
