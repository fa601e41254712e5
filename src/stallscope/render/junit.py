"""
JUnit XML as Jenkins and GitLab read it: one suite a file; each finding a failed case, each suppressed one a skipped case,
each job without a finding a passed one, so that a clean run shows what was tested.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from xml.sax.saxutils import escape, quoteattr

from stallscope.findings import Finding, Severity, Suppressed
from stallscope.render.report import Report, loose_problems, origin

# XML 1.0 §2.2: these characters cannot stand in a document, not even as references
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

Case = tuple[str, str]


def render(report: Report) -> str:
    """The document. Infos pass, with their text in system-out."""
    suites: dict[str, list[Case]] = {}
    for problem in loose_problems(report):
        body = f"<error message={_attribute(problem.message)}>{_text(problem.hint)}</error>"
        _add(suites, problem.location.file, (str(problem.kind), body))
    for finding in report.findings:
        _add(suites, finding.primary.file, (f"{finding.rule} {finding.subject}".strip(), _body(finding)))
    for item in report.suppressed:
        _add(suites, item.finding.primary.file, _skipped(item))
    about = {f.subject for f in report.findings} | {s.finding.subject for s in report.suppressed}
    for judged in report.jobs:
        if judged.job.ref not in about:
            _add(suites, judged.job.source.file, (judged.job.ref, ""))
    return _document(suites)


def _add(suites: dict[str, list[Case]], file: str, case: Case) -> None:
    suites.setdefault(file or "(no file)", []).append(case)


def _body(finding: Finding) -> str:
    lines = [f"{x.location}{origin(x.location)}: {x.text}" for x in finding.labels] + list(finding.notes)
    text = _text("\n".join(lines + ([finding.help] if finding.help else [])))
    if finding.severity is Severity.INFO:
        return f"<system-out>{_text(finding.message)}\n{text}</system-out>"
    return f'<failure type="{finding.severity}" message={_attribute(finding.message)}>{text}</failure>'


def _skipped(item: Suppressed) -> Case:
    reason = f"suppressed by {item.by}" + (f": {item.reason}" if item.reason else "")
    return f"{item.finding.rule} {item.finding.subject}".strip(), f"<skipped message={_attribute(reason)}/>"


def _document(suites: dict[str, list[Case]]) -> str:
    cases = [c for found in suites.values() for c in found]
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', f'<testsuites name="stallscope" {_counts(cases)}>']
    for file, found in sorted(suites.items()):
        lines.append(f"  <testsuite name={_attribute(file)} {_counts(found)}>")
        for name, body in found:
            start = f"    <testcase classname={_attribute(file)} name={_attribute(name)}"
            lines.append(f"{start}>{body}</testcase>" if body else f"{start}/>")
        lines.append("  </testsuite>")
    return "\n".join([*lines, "</testsuites>"]) + "\n"


def _counts(cases: Iterable[Case]) -> str:
    bodies = [body for _, body in cases]
    failures, errors, skipped = (sum(b.startswith(f"<{tag}") for b in bodies) for tag in ("failure", "error", "skipped"))
    return f'tests="{len(bodies)}" failures="{failures}" errors="{errors}" skipped="{skipped}"'


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("\ufffd", text)


def _text(text: str) -> str:
    return escape(_clean(text))


def _attribute(text: str) -> str:
    return quoteattr(_clean(text))
