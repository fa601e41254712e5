"""One round of planning: what to do about the findings of a judgement."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from stallscope.findings import Finding
from stallscope.judge.result import JobJudgement, Judgement
from stallscope.remedy.colocate import plan_colocation
from stallscope.remedy.model import Choices, Plan, Remedy, Unfixed
from stallscope.remedy.policies import KINDS, plan_policies
from stallscope.remedy.small import plan_small
from stallscope.remedy.workbench import Bench

#: Findings that co-location answers.
PLACEMENT = frozenset({"STL101", "STL102", "STL103", "STL104", "STL105", "STL106", "STL108", "STL216"})
REACHABILITY = frozenset(KINDS)


def plan(
    judgement: Judgement,
    findings: Sequence[Finding],
    choices: Choices,
    *,
    skip: Collection[tuple[str, str]] = frozenset(),
) -> Plan:
    """
    Remedies for the findings given, job by job. Policies wait until the job's placement is settled: a boundary between zones
    may no longer be in its way then, so plan again on the patched input. `skip` are (job, slug) that were tried in vain.
    """
    result = Plan()
    bench = Bench()
    for judged in judgement.jobs:
        mine = [f for f in findings if f.subject == judged.job.ref]
        result += _for_job(bench, judged, judgement, mine, choices, skip)
    return Plan(result.remedies, _once(result.unfixed))


def _for_job(
    bench: Bench,
    judged: JobJudgement,
    judgement: Judgement,
    findings: list[Finding],
    choices: Choices,
    skip: Collection[tuple[str, str]],
) -> Plan:
    job = judged.job
    rules = sorted({f.rule for f in findings})
    result = Plan()
    placement = [r for r in rules if r in PLACEMENT]
    if placement and (job.ref, "placement") not in skip:
        found = plan_colocation(bench, judged, judgement, placement, choices)
        # A role that fits nowhere is a finding of its own; only a missing toleration is ours to fix.
        result += found if found.remedies or placement != ["STL103"] else Plan()
    reachability = [r for r in rules if r in REACHABILITY]
    if reachability and not result.remedies and (job.ref, "policy") not in skip:
        result += plan_policies(bench, judged, judgement, reachability)
    if (job.ref, "small") not in skip:
        result += plan_small(bench, job, judgement, findings)
    return result


def family(remedy: Remedy) -> str:
    """Which part of the planning a remedy came from; the word `skip` uses."""
    if set(remedy.rules) <= PLACEMENT and remedy.slug in ("pin-zone", "zone-affinity", "gang-topology", "turn-affinity"):
        return "placement"
    return "policy" if remedy.slug in ("allow-peers", "narrow-deny") else "small"


def _once(unfixed: Sequence[Unfixed]) -> tuple[Unfixed, ...]:
    return tuple(dict.fromkeys(unfixed))
