"""What was fixed, proved and left, as lines and as plain data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from stallscope.remedy.model import Remedy, Unfixed
from stallscope.remedy.prove import Proof
from stallscope.remedy.rounds import Fixed

SCHEMA_VERSION = "1"


def heading(fixed: Fixed) -> list[str]:
    """What each patch is for, job by job; stands before the diff."""
    lines: list[str] = []
    for job in dict.fromkeys(r.job for r in fixed.remedies):
        lines.append(job)
        for remedy in (r for r in fixed.remedies if r.job == job):
            lines.append(f"  fix: {remedy.title} [{', '.join(remedy.rules)}]")
            lines += [f"       assumes: {text}" for text in remedy.assumptions]
    return lines


def proof_lines(proofs: Sequence[Proof]) -> list[str]:
    """What judging the patched input showed; stands behind the diff."""
    lines: list[str] = []
    for proof in proofs:
        lines.append(proof.job)
        lines += [f"  proved: {text}" for text in proof.proved]
        lines += [f"  failed: {text}" for text in proof.failed]
        lines += [f"  not proved: {text}" for text in proof.unproved]
    return lines


def left_lines(unfixed: Sequence[Unfixed]) -> Iterator[str]:
    """Findings without a patch: why, and what to paste or do."""
    for item in unfixed:
        yield f"left: {item.job}: {', '.join(item.rules)}: {item.reason}"
        yield from (f"  {line}" for line in item.hint.splitlines())


def as_data(fixed: Fixed, diff: str, changed: Sequence[str]) -> Mapping[str, Any]:
    """The same for programs; `changed` are the files."""
    return {
        "schemaVersion": SCHEMA_VERSION,
        "changed": list(changed),
        "remedies": [_remedy(r) for r in fixed.remedies],
        "proofs": [
            {
                "job": p.job,
                "holds": p.holds,
                "proved": list(p.proved),
                "failed": list(p.failed),
                "unproved": list(p.unproved),
            }
            for p in fixed.proofs
        ],
        "unfixed": [{"job": u.job, "rules": list(u.rules), "reason": u.reason, "hint": u.hint} for u in fixed.unfixed],
        "diff": diff,
    }


def _remedy(remedy: Remedy) -> dict[str, Any]:
    return {
        "slug": remedy.slug,
        "title": remedy.title,
        "job": remedy.job,
        "rules": list(remedy.rules),
        "assumptions": list(remedy.assumptions),
        "unproved": list(remedy.unproved),
    }
