"""Markdown for a pull request comment or a job summary: the counts, then each finding with its excerpt."""

from __future__ import annotations

import re
from dataclasses import replace

from stallscope.findings import Finding, Severity
from stallscope.render.escape import visible
from stallscope.render.excerpt import excerpt
from stallscope.render.report import Look, Report, SourceCache, by_severity, loose_problems, numbered
from stallscope.render.summary import summary

#: A GitHub comment holds 65,536 characters; a job summary 1 MiB.
LIMIT = 60_000
_SPECIAL = re.compile(r"([\\`*_\[\]<>|~$&])")
_REFERENCE = re.compile(r"([@#])(?=\w)")


def render(report: Report, sources: SourceCache, look: Look) -> str:
    """The comment; findings beyond GitHub's limit for one are counted instead of shown."""
    plain = Look(width=look.width, unicode=look.unicode, prog=look.prog, inputs=look.inputs)
    blocks = [f"### Stallscope: {_title(report)}\n", f"{escape(summary(replace(report, seconds=None)))}\n"]
    blocks += [f"**{p.kind}** {_code(str(p.location))}: {escape(p.message)}\n" for p in loose_problems(report)]
    size = sum(map(len, blocks))
    findings = by_severity(report.findings)
    for position, finding in enumerate(findings):
        block = _finding(finding, sources, plain)
        size += len(block)
        if size > LIMIT:
            blocks.append(
                f"… and {numbered(len(findings) - position, 'more finding')}; run `{look.prog} check` to see them.\n"
            )
            break
        blocks.append(block)
    if report.unjudged and size <= LIMIT:
        items = "\n".join(f"- {escape(reason)}" for reason in report.unjudged)
        blocks.append(f"<details><summary>Not judged ({len(report.unjudged)})</summary>\n\n{items}\n\n</details>\n")
    return "\n".join(blocks)


def _title(report: Report) -> str:
    if not report.findings:
        return "no findings"
    errors, warnings = report.count(Severity.ERROR), report.count(Severity.WARNING)
    worst = [numbered(n, word) for n, word in ((errors, "error"), (warnings, "warning")) if n]
    return ", ".join(worst) or numbered(len(report.findings), "finding")


def _finding(finding: Finding, sources: SourceCache, look: Look) -> str:
    _, lines = excerpt(finding.labels, finding.severity, sources, look)
    text = "\n".join(lines)
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    parts = [f"#### {finding.severity} {finding.rule}: {escape(finding.message)}\n"]
    parts.append(f"{fence}\n{text}\n{fence}\n")
    remarks = [f"- {_lines(note)}" for note in finding.notes]
    remarks += [f"- **Help:** {_lines(finding.help)}"] if finding.help else []
    remarks += [f"- **Fix:** {_code(f'{look.prog} fix {look.inputs}')} shows the patch"] if finding.fixable else []
    return "\n".join(parts + remarks) + ("\n" if remarks else "")


def escape(text: str) -> str:
    """One line of text with no markup in it: no HTML, links, emphasis, mentions (@team) or references (#12)."""
    # GitHub looks for mentions after rendering, so a backslash does not stop them; a zero-width space does
    return _REFERENCE.sub(r"\1&#8203;", _SPECIAL.sub(r"\\\1", visible(text)))


def _lines(text: str) -> str:
    return "<br>".join(escape(line.strip()) for line in text.split("\n"))


def _code(text: str) -> str:
    safe = visible(text).replace("`", "'")
    return f"`{safe}`"
