"""
Workflow commands of GitHub Actions (docs.github.com, "Workflow commands"). A step shows 10 annotations of each level, so
the most severe come first, the 10th says how many more there are, and those stand in the log as plain lines.
"""

from __future__ import annotations

from stallscope.findings import Finding, Severity
from stallscope.judge.inputs import Problem, ProblemKind
from stallscope.render import short
from stallscope.render.escape import visible
from stallscope.render.report import Report, by_severity, loose_problems, numbered, origin

LIMIT = 10
COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


def render(report: Report) -> str:
    """Annotations, then the findings beyond the limits."""
    lines = [_problem(p) for p in loose_problems(report)]
    rest: list[Finding] = []
    for severity in Severity:
        of_level = [f for f in by_severity(report.findings) if f.severity is severity]
        for position, finding in enumerate(of_level[:LIMIT], 1):
            more = len(of_level) - LIMIT if position == LIMIT else 0
            lines.append(_annotation(finding, more))
        rest += of_level[LIMIT:]
    lines += [f"  {f.severity} {short.line(f)}" for f in rest]
    return "".join(x + "\n" for x in lines)


def _annotation(finding: Finding, more: int) -> str:
    place = finding.primary
    text = "\n".join([finding.message, *_places(finding), *finding.notes, *([finding.help] if finding.help else [])])
    if more:
        kind = COMMANDS[finding.severity]
        text += f"\nand {numbered(more, f'more {kind}', f'more {kind}s')}, listed in the log of this step"
    return _command(COMMANDS[finding.severity], place.file, place.span, f"{finding.rule} {finding.slug}", text)


def _places(finding: Finding) -> list[str]:
    return [f"{x.location}{origin(x.location)}: {x.text}" for x in finding.labels if x.text and x.location.file]


def _problem(problem: Problem) -> str:
    kind = "error" if problem.kind is ProblemKind.UNREADABLE else "warning"
    text = f"{problem.message}\n{problem.hint}".rstrip()
    return _command(kind, problem.location.file, problem.location.span, str(problem.kind), text)


def _command(kind: str, file: str, span: tuple[int, ...], title: str, text: str) -> str:
    line, column, end_line, end_column = span[:4]
    parts = [f"file={_property(file.removeprefix('./'))}"] if file else []
    if file and line > 0:
        parts.append(f"line={line}")
        # columns are only shown within one line
        parts += [f"col={column}", f"endColumn={end_column}"] if end_line == line else [f"endLine={end_line}"]
    parts.append(f"title={_property(title)}")
    return f"::{kind} {','.join(parts)}::{_data(text)}"


def _data(text: str) -> str:
    safe = "\n".join(map(visible, text.split("\n")))
    return safe.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
