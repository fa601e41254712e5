"""
The report as JSON, schema version 1 (``render/schema/report-1.json``). Lines and columns are 1-based; 0 is never written:
a place without a line has ``null``. New keys may appear within a version; none goes away or changes its meaning.
"""

from __future__ import annotations

import json
from typing import Any

from stallscope.findings import Finding, Label, Severity, Suppressed
from stallscope.judge.inputs import Problem
from stallscope.judge.result import JobJudgement, Witness
from stallscope.model.source import Location, Route
from stallscope.model.traffic import Outcome
from stallscope.render.report import Report

SCHEMA_VERSION = "1"


def render(report: Report) -> str:
    """The document, indented, keys in a fixed order, ASCII only (so that any encoding carries it)."""
    return json.dumps(document(report), indent=2) + "\n"


def document(report: Report) -> dict[str, Any]:
    """The document as plain data."""
    return {
        "schemaVersion": SCHEMA_VERSION,
        "tool": {"name": "stallscope", "version": report.version},
        "summary": _summary(report),
        "jobs": [job_data(j) for j in report.jobs],
        "findings": [finding_data(f) for f in report.findings],
        "suppressed": [_suppressed(s) for s in report.suppressed],
        "unjudged": list(report.unjudged),
        "problems": [_problem(p) for p in report.problems],
    }


def _summary(report: Report) -> dict[str, int]:
    return {
        "findings": len(report.findings),
        "errors": report.count(Severity.ERROR),
        "warnings": report.count(Severity.WARNING),
        "infos": report.count(Severity.INFO),
        "fixable": report.fixable,
        "suppressed": len(report.suppressed) - report.baselined,
        "baselined": report.baselined,
        "staleBaseline": report.stale,
        "unjudged": len(report.unjudged),
        "jobs": len(report.jobs),
        "policies": report.policies,
        "peerEdges": report.edges,
        "files": report.files,
    }


def route_text(route: Route) -> str:
    """``spec.ingress[0].fromEndpoints``; keys that hold a dot or a bracket are quoted as in JSONPath."""
    text = ""
    for step in route:
        if isinstance(step, int):
            text += f"[{step}]"
        elif any(c in step for c in ".[]'\"") or not step:
            text += "[" + json.dumps(step) + "]"
        else:
            text += f".{step}" if text else step
    return text


def location_data(location: Location) -> dict[str, Any]:
    """A place; `line` and the others are None when it is not known."""
    span = location.span
    known = span.line > 0
    return {
        "file": location.file,
        "line": span.line if known else None,
        "column": span.column if known else None,
        "endLine": span.end_line if known else None,
        "endColumn": span.end_column if known else None,
        "path": route_text(location.route),
        "renderedFrom": location.rendered_from,
    }


def finding_data(finding: Finding) -> dict[str, Any]:
    """A finding; its first location is the primary one."""
    labels = sorted(finding.labels, key=lambda x: x.location != finding.primary)
    return {
        "rule": finding.rule,
        "slug": finding.slug,
        "severity": str(finding.severity),
        "confidence": str(finding.confidence),
        "message": finding.message,
        "subject": finding.subject,
        "key": finding.key,
        "fingerprint": finding.fingerprint,
        "fixable": finding.fixable,
        "locations": [_label(x) for x in labels],
        "notes": list(finding.notes),
        "help": finding.help,
    }


def _label(label: Label) -> dict[str, Any]:
    return {**location_data(label.location), "text": label.text, "primary": label.primary}


def _suppressed(item: Suppressed) -> dict[str, Any]:
    place = location_data(item.location) if item.location else None
    return {**finding_data(item.finding), "suppression": {"by": str(item.by), "reason": item.reason, "location": place}}


def _problem(problem: Problem) -> dict[str, Any]:
    return {
        "kind": str(problem.kind),
        "message": problem.message,
        "hint": problem.hint,
        "subject": problem.subject,
        "location": location_data(problem.location),
    }


def job_data(judged: JobJudgement) -> dict[str, Any]:
    """A job: its shape, and the judgement in short."""
    job = judged.job
    sets = judged.placement.zone_sets if judged.placement else None
    return {
        "kind": job.kind,
        "namespace": job.namespace,
        "name": job.name,
        "location": location_data(job.source.at("metadata", "name")),
        "worldSize": job.world_size,
        "distributed": job.distributed,
        "roles": [
            {"name": r.name, "kind": str(r.kind), "replicas": r.replicas, "ranksPerPod": r.ranks_per_pod} for r in job.roles
        ],
        "canSplit": str(judged.can_split),
        "why": judged.why,
        "zoneSets": None if sets is None else sorted(sorted(s) for s in sets),
        "witness": _witness(judged.witness),
        "flows": _flows(judged),
        "notes": list(job.notes),
        "unsupported": list(job.unsupported),
        "caveats": list(judged.caveats),
    }


def _witness(witness: Witness | None) -> list[dict[str, Any]] | None:
    if witness is None:
        return None
    return [{"pod": pod, "node": node, "zone": witness.zone_of(pod) or None} for pod, node in witness.nodes.items()]


def _flows(judged: JobJudgement) -> dict[str, int]:
    """Pod pairs by outcome, under the witness."""
    return {str(o): sum(f.pairs for f in judged.flows if f.verdict.outcome is o) for o in Outcome}
