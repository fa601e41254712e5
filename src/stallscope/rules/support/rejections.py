"""Findings about policy objects that have no effect, with the engine's own reason."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from stallscope.findings import Finding
from stallscope.judge.result import Judgement
from stallscope.policy.engine import Rejected
from stallscope.rules.base import Report
from stallscope.rules.support.words import label


def relevant(judgement: Judgement, found: Iterable[Rejected]) -> Iterator[Rejected]:
    """Those in a namespace of a judged job, or without namespace."""
    namespaces = {j.job.namespace for j in judgement.jobs}
    return (r for r in found if not r.policy.namespace or r.policy.namespace in namespaces)


def rejection(report: Report, found: Rejected, message: str, text: str, notes: Sequence[str], help: str) -> Finding:
    """One finding at the place the reason points to."""
    return report.finding(
        message,
        (label(found.location, text, primary=True),),
        subject=found.policy.ref,
        key=found.reason,
        notes=notes,
        help=help,
    )
