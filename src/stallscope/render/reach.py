"""Reachability of a job: the role x role matrix per flow, and the whole reasoning for one pair."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

from stallscope.judge.result import FlowJudgement, JobJudgement
from stallscope.model.source import Location
from stallscope.model.traffic import DirectionVerdict, NearMiss, Outcome, RuleRef, Verdict

_HEADS = ("flow", "from", "to", "port", "verdict")
NEAREST_SHOWN = 3


def rows(judged: JobJudgement) -> list[tuple[str, ...]]:
    """
    One row per flow, pair of roles (and zones), port and verdict: flow, from, to, port, verdict, pairs, decided by.
    Pairs that differ in nothing a row shows are added up.
    """
    pairs: dict[tuple[str, ...], int] = {}
    for f in judged.flows:
        ends = _end(f.source_role, f.zones[0]), _end(f.destination_role, f.zones[1])
        row = (str(f.flow.kind), *ends, str(f.port), str(f.verdict.outcome), decided_by(f.verdict))
        pairs[row] = pairs.get(row, 0) + f.pairs
    return [(*row[:5], str(count), row[5]) for row, count in pairs.items()]


def decided_by(verdict: Verdict) -> str:
    """The deciding rule with its line, or what default deny, no policy or a missing fact amounts to."""
    side = verdict.deciding
    if verdict.outcome is Outcome.ALLOWED and not side.rules and verdict.egress.rules:
        side = verdict.egress  # nothing selects the destination: what lets it out decides
    if verdict.outcome is Outcome.UNJUDGED:
        return verdict.reason or side.reason
    if verdict.by_mesh and (side.outcome is Outcome.PROXIED or not (side.rules or side.isolating)):
        return side.reason
    if side.rules:
        return f"{side.rules[0]} at {side.rules[0].location}" if side.rules[0].location.file else str(side.rules[0])
    if side.isolating:
        first = side.isolating[0]
        what = "no rule admits it:" if verdict.by_mesh else f"default deny ({side.direction}) of"
        return f"{what} {_at(first)}"
    return side.reason or "no policy selects either end"


def text(judged: Sequence[JobJudgement]) -> str:
    """The matrix of each job as aligned text."""
    lines: list[str] = []
    for job in judged:
        table = rows(job)
        lines.append(f"{job.job.ref}: {sum(f.pairs for f in job.flows)} peer edges")
        widths = [max([len(h), *(len(r[i]) for r in table)]) for i, h in enumerate(_HEADS)]
        lines.append("  " + "  ".join(h.ljust(w) for h, w in zip(_HEADS, widths, strict=True)) + "  decided by")
        lines += [
            "  " + "  ".join(c.ljust(w) for c, w in zip(row[:5], widths, strict=True)) + f"  {row[6]}{_pairs(row[5])}"
            for row in table
        ]
        lines.append("")
    return "\n".join(lines)


def markdown(judged: Sequence[JobJudgement]) -> str:
    """The matrix of each job as a Markdown table."""
    lines: list[str] = []
    for job in judged:
        lines += [f"### {job.job.ref}", "", "| flow | from | to | port | verdict | pairs | decided by |", "|" + "---|" * 7]
        lines += ["| " + " | ".join(c.replace("|", "\\|") for c in row) + " |" for row in rows(job)]
        lines.append("")
    return "\n".join(lines)


def html(judged: Sequence[JobJudgement]) -> str:
    """The matrix as a self-contained page."""
    sections = []
    for job in judged:
        heads = "".join(f"<th scope='col'>{h}</th>" for h in (*_HEADS, "pairs", "decided by"))
        body = "".join(
            f"<tr class='{escape(row[4])}'>" + "".join(f"<td>{escape(c)}</td>" for c in row) + "</tr>" for row in rows(job)
        )
        table = f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"
        sections.append(f"<h2>{escape(job.job.ref)}</h2>{table}")
    return _PAGE.replace("@BODY@", "".join(sections))


def html_reasoning(flows: Sequence[FlowJudgement]) -> str:
    """The reasoning for each pair, as a self-contained page."""
    return _PAGE.replace("@BODY@", "".join(f"<pre>{escape(explain(f))}</pre>" for f in flows))


def data(judged: Sequence[JobJudgement]) -> dict[str, Any]:
    """The matrix as plain data for JSON; lines and columns are 1-based."""
    return {
        "schemaVersion": "1",
        "jobs": [{"job": j.job.ref, "flows": [flow_data(f) for f in j.flows]} for j in judged],
    }


def flow_data(flow: FlowJudgement) -> dict[str, Any]:
    """One judged flow as plain data."""
    return {
        "flow": str(flow.flow.kind),
        "from": {"role": flow.source_role, "pod": flow.source, "zone": flow.zones[0]},
        "to": {"role": flow.destination_role, "pod": flow.destination, "zone": flow.zones[1]},
        "port": str(flow.port),
        "verdict": str(flow.verdict.outcome),
        "reason": flow.verdict.reason,
        "pairs": flow.pairs,
        "egress": _side_data(flow.verdict.egress),
        "ingress": _side_data(flow.verdict.ingress),
        "mesh": _side_data(flow.verdict.mesh) if flow.verdict.mesh else None,
    }


def explain(flow: FlowJudgement) -> str:
    """The whole reasoning for one pair: what selects each end, egress then ingress, the deciding rule or the near misses."""
    zones = f" ({flow.zones[0]} to {flow.zones[1]})" if all(flow.zones) else ""
    lines = [f"{flow.source} -> {flow.destination}{zones} on {flow.port}: {str(flow.verdict.outcome).upper()}"]
    if flow.verdict.reason:
        lines.append(f"  {flow.verdict.reason}")
    ends = ((flow.verdict.egress, "leaving", flow.source), (flow.verdict.ingress, "entering", flow.destination))
    for number, (side, word, pod) in enumerate(ends, 1):
        lines.append(f"  {number}. {word} {pod}: {side.outcome}")
        lines += [f"     {line}" for line in _side_lines(side)]
    if flow.verdict.mesh is not None:
        lines.append(f"  3. through the mesh: {flow.verdict.mesh.outcome}")
        lines += [f"     {line}" for line in _mesh_lines(flow.verdict.mesh)]
    if flow.pairs > 1:
        more = "pair" if flow.pairs == 2 else "pairs"
        lines.append(f"  the same holds for {flow.pairs - 1:,} more {more} of pods with the same labels")
    return "\n".join(lines) + "\n"


def _side_lines(side: DirectionVerdict) -> Iterator[str]:
    if not side.enforced:
        yield side.reason or "no policy is enforced at this end"
        return
    for rule in side.isolating:
        yield f"selected by {_at(rule)}"
    if side.reason:
        yield side.reason
    if side.rules:
        word = {Outcome.DENIED: "denied by", Outcome.PROXIED: "sent to a proxy by"}.get(side.outcome, "allowed by")
        yield from (f"{word} {_at(rule)}" for rule in side.rules)
    elif side.outcome is Outcome.DENIED:
        yield "default deny: none of the rules of these policies admits it"
        yield from (f"nearest: {_at(m.rule)}: {m.why}" for m in side.nearest[:NEAREST_SHOWN])
    elif side.outcome is Outcome.ALLOWED and not side.isolating and not side.reason:
        yield f"no policy selects it for {side.direction}, so everything is allowed"


def _mesh_lines(side: DirectionVerdict) -> Iterator[str]:
    """Who carries the connection and why, then the objects that refuse it, or those that admit others only."""
    yield side.reason
    word = "denied by" if side.outcome is Outcome.DENIED else "allowed by"
    yield from (f"{word} {_at(rule)}" for rule in side.rules)
    yield from (f"admits others only: {_at(rule)}" for rule in side.isolating)


def _at(rule: RuleRef) -> str:
    return f"{rule} at {rule.location}" if rule.location.file else str(rule)


def _end(role: str, zone: str) -> str:
    return f"{role} ({zone})" if zone else role


def _pairs(count: str) -> str:
    return f"  [{count} pairs]" if count != "1" else ""


def _side_data(side: DirectionVerdict) -> dict[str, Any]:
    return {
        "verdict": str(side.outcome),
        "enforced": side.enforced,
        "reason": side.reason,
        "rules": [_rule_data(r) for r in side.rules],
        "isolating": [_rule_data(r) for r in side.isolating],
        "nearest": [_miss_data(m) for m in side.nearest],
    }


def _miss_data(miss: NearMiss) -> dict[str, Any]:
    return {**_rule_data(miss.rule), "why": miss.why}


def _rule_data(rule: RuleRef) -> dict[str, Any]:
    return {"policy": rule.policy, "section": rule.section, "index": rule.index, **_place(rule.location)}


def _place(location: Location) -> dict[str, Any]:
    return {"file": location.file, "line": location.span.line, "column": location.span.column}


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Stallscope reachability</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<style>:root{color-scheme:light dark}body{font:15px/1.5 system-ui,sans-serif;margin:2rem}
table{border-collapse:collapse}td,th{border:1px solid #8886;padding:.25rem .6rem;text-align:left}
.denied td{background:#c0182b22}.unjudged td{background:#6b5aa822}.proxied td{background:#b85c0022}</style></head>
<body><main><h1>Who may reach whom</h1>@BODY@</main></body></html>
"""
