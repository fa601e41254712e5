"""A rule's documentation: for the terminal, as Markdown (docs/rules is generated from it), and as data."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from stallscope.render.report import Look
from stallscope.render.style import Style, wrap
from stallscope.rules.base import Rule


def text(rule: Rule, look: Look) -> str:
    """What ``explain`` prints."""
    style = Style(look.color)
    about = [str(rule.severity), f"since {rule.since}", *(["`fix` knows a patch"] if rule.fixable else [])]
    lines = [style(rule.severity, rule.id) + style("strong", f" {rule.slug}") + f"  ({', '.join(about)})", ""]
    lines += [*_part("What", rule.what, look, style), *_part("Why", rule.why, look, style)]
    lines += [*_code("Bad", rule.bad, style), *_code("Good", rule.good, style)]
    lines += _part("Fix", rule.fix, look, style)
    lines += _code("Suppress", suppression(rule), style)
    if rule.sources:
        lines += [style("strong", "Sources"), *(f"  {s}" for s in rule.sources), ""]
    return "\n".join(lines)


def suppression(rule: Rule) -> str:
    """How to accept a finding of the rule: a comment, or an annotation of the object."""
    return f"""\
# stallscope: ignore[{rule.id}] why this is fine
metadata:
  annotations:
    stallscope.dev/ignore: "{rule.id}=why this is fine"
"""


def _part(title: str, body: str, look: Look, style: Style) -> list[str]:
    if not body:
        return []
    return [style("strong", title), *wrap(" ".join(body.split()), min(look.width, 100), first="  ", rest="  "), ""]


def _code(title: str, body: str, style: Style) -> list[str]:
    if not body.strip():
        return []
    return [style("strong", title), *(f"  {line}".rstrip() for line in body.rstrip().splitlines()), ""]


def markdown(rule: Rule) -> str:
    """The page of a rule."""
    fixable = " · `stallscope fix` knows a patch" if rule.fixable else ""
    parts = [
        f"# {rule.id} {rule.slug}\n",
        f"**{rule.severity}** · since {rule.since}{fixable}\n",
        f"{rule.what}\n",
        f"## Why it matters\n\n{rule.why}\n",
    ]
    parts += [
        f"## {title}\n\n```yaml\n{body.rstrip()}\n```\n"
        for title, body in (("Bad", rule.bad), ("Good", rule.good))
        if body.strip()
    ]
    parts.append(f"## Fix\n\n{rule.fix}\n")
    parts.append(f"## Suppress\n\n```yaml\n{suppression(rule).rstrip()}\n```\n")
    if rule.sources:
        parts.append("## Sources\n\n" + "\n".join(f"- {s}" for s in rule.sources) + "\n")
    return "\n".join(parts)


def data(rule: Rule) -> dict[str, Any]:
    """The rule as plain data for JSON."""
    return {
        "id": rule.id,
        "slug": rule.slug,
        "severity": str(rule.severity),
        "fixable": rule.fixable,
        "since": rule.since,
        "what": rule.what,
        "why": rule.why,
        "bad": rule.bad,
        "good": rule.good,
        "fix": rule.fix,
        "sources": list(rule.sources),
    }


def table(rules: Iterable[Rule], look: Look) -> str:
    """One line a rule: id, severity, slug, and what it finds, as much as fits."""
    style = Style(look.color)
    rows = sorted(rules, key=lambda r: r.id)
    slugs = max((len(r.slug) for r in rows), default=0)
    lines = []
    for rule in rows:
        head = f"{rule.id}  {style(rule.severity, f'{rule.severity:<7}')}  {rule.slug:<{slugs}}"
        room = look.width - len(f"{rule.id}  warning  ") - slugs - 2
        lines.append(f"{head}  {_shortened(_first_sentence(rule), room, look.unicode)}" if room >= 20 else head.rstrip())
    return "".join(x + "\n" for x in lines)


def _first_sentence(rule: Rule) -> str:
    return " ".join(rule.what.split()).partition(". ")[0].rstrip(".")


def _shortened(text: str, room: int, unicode: bool) -> str:
    dots = "…" if unicode else "..."
    return text if len(text) <= room else text[: room - len(dots) + 1].rsplit(" ", 1)[0].rstrip(",;:") + dots


def index(rules: Iterable[Rule]) -> str:
    """The rules as a Markdown table that links to their pages."""
    lines = ["| rule | severity | fix | finds |", "| --- | --- | --- | --- |"]
    for rule in sorted(rules, key=lambda r: r.id):
        what = _first_sentence(rule).replace("|", "\\|")
        fix = "yes" if rule.fixable else ""
        lines.append(f"| [{rule.id}](rules/{rule.id}.md) {rule.slug} | {rule.severity} | {fix} | {what} |")
    return "\n".join(lines) + "\n"
