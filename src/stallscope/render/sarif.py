"""
SARIF 2.1.0 (OASIS Standard, errata 01). The primary place is the result's location; the others are related locations,
because `locations` holds places that must *all* be changed (§3.27.12). GitHub reads the subset listed in its "SARIF
support for code scanning".
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any
from urllib.parse import quote

from stallscope.findings import Finding, Label, Severity, Suppressed, SuppressedBy
from stallscope.judge.inputs import Problem, ProblemKind
from stallscope.model.source import Location
from stallscope.render.report import Report, origin
from stallscope.rules.base import Rule

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}


def render(report: Report) -> str:
    """One run."""
    return json.dumps(document(report), indent=2) + "\n"


def document(report: Report) -> dict[str, Any]:
    """The log as plain data."""
    rules = _used_rules(report)
    index = {rule["id"]: i for i, rule in enumerate(rules)}
    ordinals: Counter[str] = Counter()
    results = [_result(f, index, ordinals, []) for f in report.findings]
    results += [_result(s.finding, index, ordinals, [_suppression(s)]) for s in report.suppressed]
    run = {
        "tool": {
            "driver": {"name": "stallscope", "version": report.version, "semanticVersion": report.version, "rules": rules}
        },
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {"%SRCROOT%": {"description": {"text": "The directory in which stallscope was run."}}},
        "invocations": [_invocation(report)],
        "results": results,
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _used_rules(report: Report) -> list[dict[str, Any]]:
    """Metadata of the rules that the results name, ordered by id; a rule without documentation has its slug."""
    found = {f.rule: f.slug for f in report.findings} | {s.finding.rule: s.finding.slug for s in report.suppressed}
    return [_rule(report.rules[i]) if i in report.rules else {"id": i, "name": found[i]} for i in sorted(found)]


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.id,
        "name": rule.slug,
        "shortDescription": {"text": rule.what.partition(". ")[0].strip().rstrip(".") + "."},
        "fullDescription": {"text": f"{rule.what} {rule.why}".strip()},
        "help": {
            "text": f"{rule.why}\n\nFix: {rule.fix}",
            "markdown": f"{rule.why}\n\n**Fix.** {rule.fix}\n\n```yaml\n{rule.good.rstrip()}\n```\n",
        },
        "defaultConfiguration": {"level": LEVELS[rule.severity]},
        "properties": {"tags": ["kubernetes", "distributed-training"], "problem.severity": _github(rule.severity)},
    }


def _github(severity: Severity) -> str:
    return "recommendation" if severity is Severity.INFO else str(severity)


def _result(
    finding: Finding, index: dict[str, int], ordinals: Counter[str], suppressions: list[dict[str, Any]]
) -> dict[str, Any]:
    # §3.27.23: either no result of a run has `suppressions` or all have; an empty array says "not suppressed".
    primary = next((x for x in finding.labels if x.primary), finding.labels[0] if finding.labels else None)
    others = [x for x in finding.labels if x is not primary and x.location.file]
    mark = finding.fingerprint
    ordinals[mark] += 1
    return {
        "ruleId": finding.rule,
        "ruleIndex": index[finding.rule],
        "level": LEVELS[finding.severity],
        "message": {"text": _message(finding)},
        "locations": [_location(primary)] if primary and primary.location.file else [],
        "relatedLocations": [{"id": i, **_location(x)} for i, x in enumerate(others, 1)],
        "partialFingerprints": {"stallscope/v1": f"{mark}:{ordinals[mark]}"},
        "suppressions": suppressions,
        "properties": {
            "subject": finding.subject,
            "confidence": str(finding.confidence),
            "fixable": finding.fixable,
        },
    }


def _message(finding: Finding) -> str:
    lines = [finding.message, *finding.notes, *([f"Help: {finding.help}"] if finding.help else [])]
    return "\n".join(lines)


def _location(label: Label) -> dict[str, Any]:
    place = physical(label.location)
    text = (label.text + origin(label.location)).strip()
    return {"physicalLocation": place, **({"message": {"text": text}} if text else {})}


def physical(location: Location) -> dict[str, Any]:
    """A SARIF physicalLocation; the region is left out when no line is known."""
    span = location.span
    place: dict[str, Any] = {"artifactLocation": artifact(location.file)}
    if span.line > 0:
        place["region"] = {"startLine": span.line, "startColumn": max(span.column, 1)}
        if span.end_line >= span.line:
            place["region"] |= {"endLine": span.end_line, "endColumn": max(span.end_column, 1)}
    return place


def artifact(file: str) -> dict[str, str]:
    """A URI reference relative to the place of the run, or an absolute file URI (RFC 3986: percent-encoded)."""
    try:
        raw = file.encode("utf-8", "surrogateescape")  # names that are no UTF-8 keep their bytes
    except UnicodeEncodeError:
        raw = file.encode("utf-8", "replace")
    path = quote(raw, safe="/~")
    if path.startswith("/"):
        return {"uri": f"file://{path}"}
    while path.startswith("./"):
        path = path[2:]
    return {"uri": path or ".", "uriBaseId": "%SRCROOT%"}


def _suppression(item: Suppressed) -> dict[str, Any]:
    external = item.by is SuppressedBy.BASELINE
    data: dict[str, Any] = {"kind": "external" if external else "inSource", "status": "accepted"}
    if item.reason:
        data["justification"] = item.reason
    if item.location is not None and item.location.file:
        data["location"] = {"physicalLocation": physical(item.location)}
    return data


def _invocation(report: Report) -> dict[str, Any]:
    notices = [_notice(p) for p in report.problems]
    notices += [{"level": "note", "message": {"text": f"not judged: {text}"}} for text in report.unjudged]
    return {"executionSuccessful": report.unread == 0, "toolExecutionNotifications": notices}


def _notice(problem: Problem) -> dict[str, Any]:
    level = "error" if problem.kind is ProblemKind.UNREADABLE else "warning"
    notice: dict[str, Any] = {"level": level, "message": {"text": problem.message}}
    if problem.location.file:
        notice["locations"] = [{"physicalLocation": physical(problem.location)}]
    return notice
