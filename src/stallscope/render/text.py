"""The report for a person: what is wrong, where, what to know, what to do."""

from __future__ import annotations

from stallscope.findings import Finding
from stallscope.judge.inputs import Problem, ProblemKind
from stallscope.render.escape import visible
from stallscope.render.excerpt import excerpt, place_text
from stallscope.render.report import Look, Report, SourceCache, by_severity, loose_problems, numbered
from stallscope.render.style import Style, wrap


def render(report: Report, sources: SourceCache, look: Look) -> str:
    """
    Problems with the input, findings (the most severe first), then what could not be judged. Empty when all is well, else
    it ends in an empty line.
    """
    style = Style(look.color)
    blocks = [_problem(p, look, style) for p in loose_problems(report)]
    blocks += [finding_text(f, sources, look) for f in by_severity(report.findings)]
    if report.unjudged:
        blocks.append(_unjudged(report.unjudged, look, style))
    return "".join(block + "\n" for block in blocks)


def finding_text(finding: Finding, sources: SourceCache, look: Look) -> str:
    """One finding, ending with a line break."""
    style = Style(look.color)
    head = style(finding.severity, f"{finding.severity}[{finding.rule}]") + style("strong", f": {visible(finding.message)}")
    gutter, lines = excerpt(finding.labels, finding.severity, sources, look)
    pad = " " * gutter
    tail = [("note", note) for note in finding.notes]
    if finding.help:
        tail.append(("help", finding.help))
    if finding.fixable:
        tail.append(("fix", f"`{look.prog} fix {visible(look.inputs)}` shows the patch"))
    for kind, text in tail:
        lines += _remark(pad, kind, text, look, style)
    return "\n".join([head, *lines]) + "\n"


def _remark(pad: str, kind: str, text: str, look: Look, style: Style) -> list[str]:
    lead = f"{pad} = {kind}: "
    lines = wrap(text, look.width, first=lead, rest=" " * len(lead))
    painted = f"{pad} {style('gutter', '=')} {style(kind, kind)}: "
    return [painted + lines[0][len(lead) :], *lines[1:]]


def _problem(problem: Problem, look: Look, style: Style) -> str:
    kind = "error" if problem.kind is ProblemKind.UNREADABLE else "warning"
    lines = [style(kind, kind) + style("strong", f": {visible(problem.message)}")]
    if problem.location.file:
        lines.append(f" {style('gutter', '-->')} {place_text(problem.location, look, style)}")
    if problem.hint:
        lines += _remark(" ", "help", problem.hint, look, style)
    return "\n".join(lines) + "\n"


def _unjudged(reasons: tuple[str, ...], look: Look, style: Style) -> str:
    lines = [style("note", f"note: not judged ({numbered(len(reasons), 'verdict')})")]
    for reason in reasons:
        lines += wrap(reason, look.width, first="  - ", rest="    ")
    return "\n".join(lines) + "\n"
