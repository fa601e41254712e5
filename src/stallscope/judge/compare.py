"""What changes for the training jobs between two states of the same files: the review gate."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from stallscope.judge.result import Answer, FlowJudgement, JobJudgement, Judgement
from stallscope.model.traffic import Outcome, Outside

#: From best to worst, to tell a change for the worse from one for the better.
_WORSE = (Outcome.ALLOWED, Outcome.PROXIED, Outcome.UNJUDGED, Outcome.DENIED)
_Key = tuple[object, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeChange:
    """A flow of one job whose verdict differs; `before` or `after` is None when the flow exists on one side only."""

    job: str
    before: FlowJudgement | None
    after: FlowJudgement | None

    @property
    def worse(self) -> bool:
        """True when the change takes something from the job: towards proxied, unjudged or denied."""
        old, new = self.before, self.after
        if old is None or new is None:
            return new is not None and new.verdict.outcome is not Outcome.ALLOWED
        return _WORSE.index(new.verdict.outcome) > _WORSE.index(old.verdict.outcome)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobChange:
    """A job whose landing differs: whether it can split, whether it may start whole. Jobs new or gone say so."""

    job: str
    what: str
    worse: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """All changes between two judgements, worst first."""

    edges: tuple[EdgeChange, ...] = ()
    jobs: tuple[JobChange, ...] = ()

    @property
    def worse(self) -> bool:
        return any(e.worse for e in self.edges) or any(j.worse for j in self.jobs)

    def __bool__(self) -> bool:
        return bool(self.edges or self.jobs)


def compare(before: Judgement, after: Judgement) -> Changes:
    """Changes of every job of `after`, by job and flow; jobs are matched by kind, namespace and name."""
    old = {j.job.ref: j for j in before.jobs}
    new = {j.job.ref: j for j in after.jobs}
    edges = [e for ref, job in new.items() if ref in old for e in _edges(ref, old[ref], job)]
    jobs = [
        *(j for ref, job in new.items() if ref in old for j in _landing(ref, old[ref], job)),
        *(JobChange(job=ref, what="is new", worse=False) for ref in new if ref not in old),
        *(JobChange(job=ref, what="is gone", worse=False) for ref in old if ref not in new),
    ]
    return Changes(
        edges=tuple(sorted(edges, key=lambda e: not e.worse)), jobs=tuple(sorted(jobs, key=lambda j: not j.worse))
    )


def _edges(ref: str, before: JobJudgement, after: JobJudgement) -> Iterable[EdgeChange]:
    old, new = _worst(before.flows), _worst(after.flows)
    for key in dict.fromkeys([*old, *new]):
        a, b = old.get(key), new.get(key)
        if a is None or b is None:
            # The worst placement moved to other zones; that alone is no change of what is permitted.
            continue
        if a.verdict.outcome is not b.verdict.outcome:
            yield EdgeChange(job=ref, before=a, after=b)


def _worst(flows: Iterable[FlowJudgement]) -> dict[_Key, FlowJudgement]:
    """The worst judgement per kind, pair of roles and needed ports."""
    found: dict[_Key, FlowJudgement] = {}
    for flow in flows:
        end = flow.destination if flow.flow.destination == Outside.SERVICE else flow.destination_role
        key = (flow.flow.kind, flow.source_role, end, flow.flow.ports)
        known = found.get(key)
        if known is None or _WORSE.index(flow.verdict.outcome) > _WORSE.index(known.verdict.outcome):
            found[key] = flow
    return found


def _landing(ref: str, before: JobJudgement, after: JobJudgement) -> Iterable[JobChange]:
    if before.can_split is not after.can_split:
        what = f"can be split across zones: {before.can_split} before, {after.can_split} now"
        yield JobChange(job=ref, what=what, worse=after.can_split is not Answer.NO)
    if before.placement and after.placement and before.placement.may_start_whole != after.placement.may_start_whole:
        starts = after.placement.may_start_whole
        yield JobChange(job=ref, what="can now start whole" if starts else "can no longer start whole", worse=not starts)
