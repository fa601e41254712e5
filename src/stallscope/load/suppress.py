"""Findings minus what users accepted; and findings about acceptances that accept nothing any more."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from stallscope.findings import Finding, Label, Severity, Suppressed
from stallscope.load.directives import ANNOTATION, Directive, in_annotations, in_comments
from stallscope.model.kube import KubeObject

RULE = ("STL990", "unused-suppression")


class Suppression(NamedTuple):
    """`kept` and `suppressed` together are what went in; `complaints` are new findings (STL990)."""

    kept: tuple[Finding, ...]
    suppressed: tuple[Suppressed, ...]
    complaints: tuple[Finding, ...]


def find_directives(
    objects: Sequence[KubeObject], text_of: Callable[[str], str | None], files: Iterable[str] = ()
) -> tuple[Directive, ...]:
    """
    Every directive of the given objects, their files and `files` (those that hold no object: templates, broken YAML).
    `text_of` gives a file's text, None when it has none.
    """
    by_file: dict[str, list[KubeObject]] = {file: [] for file in files}
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
    enabled: Callable[[str], bool] = lambda _rule: True,
    strict: bool = False,
) -> Suppression:
    """
    Apply the directives. `known` maps rule ids to slugs. A directive for a rule that is not `enabled` is not unused: the
    run could not tell. With `strict` a directive without a reason does not count; its finding stays and says so.
    """
    used: set[int] = set()
    kept: list[Finding] = []
    suppressed: list[Suppressed] = []
    for finding in findings:
        hits = [i for i, d in enumerate(directives) if _covers(d, finding)]
        used.update(hits)
        chosen = next((directives[i] for i in hits if directives[i].reason or not strict), None)
        if chosen is not None:
            item = Suppressed(finding=finding, by=chosen.by, reason=chosen.reason, location=chosen.location)
            suppressed.append(item)
        elif hits:
            note = f"the suppression at {directives[hits[0]].location} gives no reason, which --strict requires"
            kept.append(replace(finding, notes=(*finding.notes, note)))
        else:
            kept.append(finding)
    complaints = (_complaint(d, known, enabled) for i, d in enumerate(directives) if i not in used)
    return Suppression(
        kept=tuple(kept), suppressed=tuple(suppressed), complaints=tuple(c for c in complaints if c is not None)
    )


def _covers(directive: Directive, finding: Finding) -> bool:
    if directive.wrong or directive.rule not in (finding.rule, finding.slug):
        return False
    if directive.subject and directive.subject == finding.subject:
        return True
    lines = [x.location.span.line for x in finding.labels if x.location.file == directive.location.file]
    if directive.first == 0:
        return bool(lines) and not directive.subject
    return any(directive.first <= line <= directive.last for line in lines)


def _complaint(directive: Directive, known: Mapping[str, str], enabled: Callable[[str], bool]) -> Finding | None:
    wrong = directive.wrong or _unknown(directive.rule, known)
    if wrong:
        return _finding(directive, f"this suppression has no effect: {wrong}", "correct or remove it")
    rule = next(r for r, slug in known.items() if directive.rule in (r, slug))
    if not enabled(rule):
        return None
    return _finding(directive, f"unused suppression: {directive.rule} is not found here", "remove it")


def _unknown(rule: str, known: Mapping[str, str]) -> str:
    if rule in known or rule in known.values():
        return ""
    from difflib import get_close_matches

    near = get_close_matches(rule, [*known, *known.values()], n=1)
    return f"there is no rule {rule}" + (f"; did you mean {near[0]}?" if near else "")


def _finding(directive: Directive, message: str, help: str) -> Finding:
    return Finding(
        rule=RULE[0],
        slug=RULE[1],
        severity=Severity.WARNING,
        message=message,
        labels=(Label(location=directive.location, text="", primary=True),),
        subject=directive.subject or directive.location.file,
        key=directive.rule,
        help=help,
    )
