"""The one line at the end, on stderr."""

from __future__ import annotations

from stallscope.findings import Severity
from stallscope.render.report import Report, numbered


def summary(report: Report) -> str:
    """``3 findings (1 fixable): 1 error, 2 warnings. Checked 4 jobs, … in 0.21 s; 1 suppressed, 2 unjudged``."""
    return f"{_found(report)}. {_checked(report)}{_besides(report)}"


def _found(report: Report) -> str:
    if not report.findings:
        return "No findings"
    fixable = f" ({report.fixable} fixable)" if report.fixable else ""
    counts = [
        numbered(n, severity.value, "info" if severity is Severity.INFO else "")
        for severity in Severity
        if (n := report.count(severity))
    ]
    return f"{numbered(len(report.findings), 'finding')}{fixable}: {', '.join(counts)}"


def _checked(report: Report) -> str:
    parts = [
        numbered(len(report.jobs), "job"),
        numbered(report.policies, "policy", "policies"),
        numbered(report.edges, "peer edge"),
    ]
    seconds = "" if report.seconds is None else f" in {report.seconds:.2f} s"
    return f"Checked {', '.join(parts)}{seconds}"


def _besides(report: Report) -> str:
    accepted = len(report.suppressed) - report.baselined
    counts = (
        (accepted, f"{accepted} suppressed"),
        (report.baselined, f"{report.baselined} in the baseline"),
        (report.stale, numbered(report.stale, "stale baseline entry", "stale baseline entries")),
        (len(report.unjudged), f"{len(report.unjudged)} unjudged"),
    )
    besides = [text for count, text in counts if count]
    return f"; {', '.join(besides)}" if besides else ""
