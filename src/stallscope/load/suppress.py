"""Findings minus what users accepted; and findings about acceptances that accept nothing any more."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from stallscope.findings import Finding, Label, Severity, Suppressed
from stallscope.load.directives import ANNOTATION, Directive, in_annotations, in_comments
from stallscope.model.kube import KubeObject

UNUSED = ("STL990", "unused-suppression")
INVALID = ("STL991", "invalid-suppression")


@dataclass(frozen=True, slots=True, kw_only=True)
class Suppression:
    """`kept` and `suppressed` together are what went in; `complaints` are new findings (STL990, STL991)."""

    kept: tuple[Finding, ...]
    suppressed: tuple[Suppressed, ...]
    complaints: tuple[Finding, ...]


def find_directives(objects: Sequence[KubeObject], text_of: Callable[[str], str | None]) -> tuple[Directive, ...]:
    """Every directive of the given objects and their files, in order of file and line. `text_of` gives a file's text."""
    by_file: dict[str, list[KubeObject]] = {}
    for obj in objects:
        by_file.setdefault(obj.file, []).append(obj)
    found: list[Directive] = []
    for file, held in by_file.items():
        text = text_of(file) if file else None
        if text is not None:
            found += in_comments(text, file, held)
        if text is None or ANNOTATION in text:
            found += in_annotations(held)
    return tuple(found)


def suppress(
    findings: Iterable[Finding],
    directives: Sequence[Directive],
    *,
    known: Mapping[str, str],
    enabled: Callable[[str, str], bool] = lambda _rule, _slug: True,
    strict: bool = False,
) -> Suppression:
    """
    Apply the directives. `known` maps rule ids to slugs. A directive for a rule that is not `enabled` is not unused: the
    run could not tell. `strict` demands a reason.
    """
    used: set[int] = set()
    kept: list[Finding] = []
    suppressed: list[Suppressed] = []
    for finding in findings:
        hits = [i for i, d in enumerate(directives) if _covers(d, finding)]
        used.update(hits)
        if hits:
            first = directives[hits[0]]
            item = Suppressed(finding=finding, by=first.by, reason=first.reason, location=first.location)
            suppressed.append(item)
        else:
            kept.append(finding)
    complaints = [
        complaint
        for i, d in enumerate(directives)
        if (complaint := _complaint(d, i in used, known, enabled, strict)) is not None
    ]
    return Suppression(kept=tuple(kept), suppressed=tuple(suppressed), complaints=tuple(complaints))


def _covers(directive: Directive, finding: Finding) -> bool:
    if directive.wrong or directive.rule not in (finding.rule, finding.slug):
        return False
    if directive.subject and directive.subject == finding.subject:
        return True
    file = directive.location.file
    places = [x.location for x in finding.labels if x.location.file == file]
    if directive.first == 0:
        return not directive.subject and bool(places)
    return any(directive.first <= p.span.line <= directive.last for p in places)


def _complaint(
    directive: Directive, used: bool, known: Mapping[str, str], enabled: Callable[[str, str], bool], strict: bool
) -> Finding | None:
    wrong = directive.wrong or _unknown(directive.rule, known)
    if wrong:
        return _finding(INVALID, directive, f"this suppression has no effect: {wrong}", Severity.WARNING)
    if used:
        if strict and not directive.reason:
            text = f"the suppression of {directive.rule} gives no reason (required by --strict)"
            return _finding(INVALID, directive, text, Severity.ERROR)
        return None
    rule = next(r for r, slug in known.items() if directive.rule in (r, slug))
    if not enabled(rule, known[rule]):
        return None
    return _finding(UNUSED, directive, f"unused suppression: {directive.rule} is not found here", Severity.WARNING)


def _unknown(rule: str, known: Mapping[str, str]) -> str:
    if rule in known or rule in known.values():
        return ""
    from difflib import get_close_matches

    near = get_close_matches(rule, [*known, *known.values()], n=1)
    return f"there is no rule {rule}" + (f"; did you mean {near[0]}?" if near else "")


def _finding(rule: tuple[str, str], directive: Directive, message: str, severity: Severity) -> Finding:
    help = "remove it" if rule is UNUSED else ""
    return Finding(
        rule=rule[0],
        slug=rule[1],
        severity=severity,
        message=message,
        labels=(Label(location=directive.location, text="", primary=True),),
        subject=directive.subject or directive.location.file,
        key=directive.rule,
        help=help,
    )
