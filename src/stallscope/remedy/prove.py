"""What judging the patched input shows, job by job, and what it cannot show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stallscope.findings import Finding, Severity
from stallscope.judge.result import Answer, FlowJudgement, JobJudgement, Judgement
from stallscope.model.traffic import FlowKind, Outcome, Outside
from stallscope.placement.group import GroupOutcome
from stallscope.remedy.model import Remedy

_Edge = tuple[FlowKind, str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """`proved` and `failed` are facts about the patched input; `unproved` is what judging cannot show."""

    job: str
    proved: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    unproved: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        return not self.failed


def prove(
    before: Judgement,
    after: Judgement,
    remedies: Sequence[Remedy] = (),
    findings: tuple[Sequence[Finding], Sequence[Finding]] = ((), ()),
) -> tuple[Proof, ...]:
    """
    One proof for each job that a remedy is for, or that came out worse: the split gone, still schedulable, nothing newly
    denied, the denied edges allowed. `findings` before and after: what is no longer found, and what is new.
    """
    old = {j.job.ref: j for j in before.jobs}
    new = {j.job.ref: j for j in after.jobs}
    treated = {r.job for r in remedies}
    proofs = []
    for ref, judged in old.items():
        mine = [r for r in remedies if r.job == ref]
        pair = tuple([f for f in found if f.subject == ref] for found in findings)
        proof = _prove_job(judged, new.get(ref), mine, (pair[0], pair[1]))
        if ref in treated or proof.failed:
            proofs.append(proof)
    return tuple(proofs)


def _prove_job(
    before: JobJudgement,
    after: JobJudgement | None,
    remedies: Sequence[Remedy],
    findings: tuple[Sequence[Finding], Sequence[Finding]],
) -> Proof:
    ref = before.job.ref
    if after is None:
        return Proof(job=ref, failed=("the patched manifest no longer gives this job",))
    proved: list[str] = []
    failed: list[str] = []
    unproved = [text for remedy in remedies for text in remedy.unproved]
    for parts in (
        _split(before, after, remedies),
        _schedulable(before, after),
        _flows(before, after, remedies),
        _found(*findings, remedies),
    ):
        for kind, text in parts:
            {"proved": proved, "failed": failed, "unproved": unproved}[kind].append(text)
    return Proof(job=ref, proved=tuple(proved), failed=tuple(failed), unproved=tuple(dict.fromkeys(unproved)))


def _split(before: JobJudgement, after: JobJudgement, remedies: Sequence[Remedy]) -> Iterator[tuple[str, str]]:
    slugs = {r.slug for r in remedies}
    placed = bool(slugs & {"pin-zone", "zone-affinity", "turn-affinity"})
    if after.can_split is Answer.NO:
        if placed or before.can_split is not Answer.NO:
            yield "proved", _one_zone(after)
    elif after.can_split is Answer.UNKNOWN:
        if placed and after.placement is not None and not after.placement.may_split:
            yield "proved", f"as far as it could be judged it {_one_zone(after)}"
        elif placed:
            yield "unproved", f"that the job cannot be split ({'; '.join(after.caveats) or after.why or 'not judged'})"
    elif placed:
        yield "failed", "the job can still be split"
    elif before.can_split is Answer.NO:
        yield "failed", "the job can now be split"


def _one_zone(after: JobJudgement) -> str:
    if after.placement is None:
        return "nothing in the manifest lets the ranks land in two zones"
    zones = sorted({z for s in after.placement.zone_sets for z in s})
    if len(zones) == 1:
        return f"cannot be split: every placement the scheduler can choose is in {zones[0]}"
    return f"cannot be split: every placement the scheduler can choose is in one zone ({' or '.join(zones)})"


def _schedulable(before: JobJudgement, after: JobJudgement) -> Iterator[tuple[str, str]]:
    if before.placement is None or after.placement is None:
        return
    was, now = _level(before.placement), _level(after.placement)
    if now < was:
        yield "failed", "the job may no longer start whole" if now else "the job can no longer start whole"
    elif after.placement.unjudged:
        yield "unproved", f"that all pods start: not judged are {_some(after.placement.unjudged)}"
    elif now == 2:
        pods = len(after.job.pods)
        yield "proved", f"all {pods} pods start, in whatever order and with whatever tie-break"
    elif now == 1:
        yield "unproved", "that the job starts whole in every order (it may)"


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more"


def _level(outcome: GroupOutcome) -> int:
    return 2 if outcome.must_start_whole else int(outcome.may_start_whole)


def _flows(before: JobJudgement, after: JobJudgement, remedies: Sequence[Remedy]) -> Iterator[tuple[str, str]]:
    was, now = _denied(before), _denied(after)
    for edge in now:
        if edge not in was:
            yield "failed", f"newly denied: {_edge_text(edge)}"
    opened = [edge for edge in was if edge not in now]
    if opened:
        pairs = sum(was[edge] for edge in opened)
        yield "proved", f"{pairs} denied peer edges are allowed now: {_edges_text(opened)}"
    stuck = [edge for edge in now if edge in was]
    opening = any(r.slug in ("allow-peers", "narrow-deny") for r in remedies)
    if opening and was and not opened and sum(now.values()) >= sum(was.values()):
        yield "failed", f"it admits nothing that was denied: {_edges_text(stuck)}"
    elif opening and stuck:
        yield "unproved", f"still denied: {_edges_text(stuck)}"
    unknown = _count(after, Outcome.UNJUDGED) - _count(before, Outcome.UNJUDGED)
    if unknown > 0:
        yield "unproved", f"{unknown} more flows that could not be judged"


def _found(before: Sequence[Finding], after: Sequence[Finding], remedies: Sequence[Remedy]) -> Iterator[tuple[str, str]]:
    """Rules that fell silent, and findings that were not there before. Advice is no loss: only warnings and errors count."""
    treated = {rule for remedy in remedies for rule in remedy.rules}
    gone = sorted(({f.rule for f in before} - {f.rule for f in after}) & treated)
    if gone:
        yield "proved", f"no longer found: {', '.join(gone)}"
    known = {(f.rule, f.key) for f in before}
    for finding in (f for f in after if f.severity is not Severity.INFO):
        if (finding.rule, finding.key) not in known and finding.rule not in {f.rule for f in before}:
            worse = finding.severity is Severity.ERROR
            yield ("failed" if worse else "unproved"), f"newly found: {finding.rule}: {finding.message}"


def _denied(judged: JobJudgement) -> dict[_Edge, int]:
    found: dict[_Edge, int] = {}
    for flow in judged.with_outcome(Outcome.DENIED):
        found[_edge(flow)] = found.get(_edge(flow), 0) + flow.pairs
    return found


def _edge(flow: FlowJudgement) -> _Edge:
    return flow.flow.kind, flow.source_role, flow.destination_role


def _count(judged: JobJudgement, outcome: Outcome) -> int:
    return len(judged.with_outcome(outcome))


def _edges_text(edges: Sequence[_Edge]) -> str:
    shown = ", ".join(_edge_text(edge) for edge in edges[:4])
    return shown if len(edges) <= 4 else f"{shown} and {len(edges) - 4} more"


def _edge_text(edge: _Edge) -> str:
    kind, source, destination = edge
    names = [str(name).replace("-", " ") if name in set(Outside) else name for name in (source, destination)]
    return f"{names[0]} -> {names[1]} ({kind})"
