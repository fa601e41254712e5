"""The review gate's report: what a change does to the training jobs."""

from __future__ import annotations

from typing import Any

from stallscope.judge.compare import Changes, EdgeChange
from stallscope.render.reach import decided_by, flow_data

NOTHING = "No training job gains or loses a connection."


def text(changes: Changes, base: str) -> str:
    """One line per change, worst first, with the deciding rule of the new state."""
    if not changes:
        return f"{NOTHING} (compared with {base})\n"
    lines = [f"Compared with {base}:"]
    lines += [f"  {'!' if j.worse else ' '} {j.job} {j.what}" for j in changes.jobs]
    lines += [f"  {'!' if e.worse else ' '} {_sentence(e)}" for e in changes.edges]
    return "\n".join(lines) + "\n"


def markdown(changes: Changes, base: str) -> str:
    """For a pull request: a verdict in one line, then a table."""
    if not changes:
        return f"**Stallscope**: {NOTHING} (compared with `{base}`)\n"
    worse = sum(e.worse for e in changes.edges) + sum(j.worse for j in changes.jobs)
    head = (
        f"**Stallscope**: this change would stall training ({worse} for the worse)" if worse else "**Stallscope**: changes"
    )
    lines = [f"{head}, compared with `{base}`.", ""]
    lines += [f"- {'❌' if j.worse else '➖'} `{j.job}` {j.what}" for j in changes.jobs]
    if changes.edges:
        lines += ["", "| job | flow | from | to | port | before | now | decided by |", "|" + "---|" * 8]
    lines += ["| " + " | ".join(c.replace("|", "\\|") for c in _cells(e)) + " |" for e in changes.edges]
    return "\n".join(lines) + "\n"


def data(changes: Changes, base: str) -> dict[str, Any]:
    """The same as plain data for JSON."""
    return {
        "schemaVersion": "1",
        "base": base,
        "worse": changes.worse,
        "jobs": [{"job": j.job, "what": j.what, "worse": j.worse} for j in changes.jobs],
        "edges": [
            {
                "job": e.job,
                "worse": e.worse,
                "before": flow_data(e.before) if e.before else None,
                "after": flow_data(e.after) if e.after else None,
            }
            for e in changes.edges
        ],
    }


def _sentence(edge: EdgeChange) -> str:
    job, kind, source, destination, port, before, now, why = _cells(edge)
    return f"{job}: {kind} {source} -> {destination} on {port} was {before}, is now {now}: {why}"


def _cells(edge: EdgeChange) -> tuple[str, ...]:
    shown = edge.after or edge.before
    if shown is None:
        return (edge.job, *[""] * 7)
    outcomes = [str(f.verdict.outcome) if f else "absent" for f in (edge.before, edge.after)]
    why = decided_by(shown.verdict)
    return (edge.job, str(shown.flow.kind), shown.source_role, shown.destination_role, str(shown.port), *outcomes, why)
