"""The denied flows of a job, sorted by what could admit them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from stallscope.judge.result import FlowJudgement, JobJudgement
from stallscope.model.traffic import Direction, DirectionVerdict, FlowKind, Outcome, Outside, RuleRef


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """
    One end that refuses one flow: the pod (`role`) whose policies decide, the direction, and the other end (`peer`: a role
    or an `Outside` value). `rules` explicit denies; without any the policies `isolating` it.
    """

    flow: FlowJudgement
    direction: Direction
    role: str
    peer: str
    rules: tuple[RuleRef, ...]
    isolating: tuple[RuleRef, ...]

    @property
    def kind(self) -> FlowKind:
        return self.flow.flow.kind

    @property
    def among_ranks(self) -> bool:
        """Both ends are pods of the job."""
        return not {self.role, self.peer} & set(Outside)


def refusals(judged: JobJudgement, kinds: frozenset[FlowKind]) -> tuple[Refusal, ...]:
    """Every refusing end of the denied flows of those kinds."""
    return tuple(
        refusal for flow in judged.with_outcome(Outcome.DENIED) if flow.flow.kind in kinds for refusal in _ends(flow)
    )


def _ends(flow: FlowJudgement) -> Iterator[Refusal]:
    for side in (flow.verdict.egress, flow.verdict.ingress):
        if side.outcome is Outcome.DENIED:
            yield _refusal(flow, side)


def _refusal(flow: FlowJudgement, side: DirectionVerdict) -> Refusal:
    ends = (flow.source_role, flow.destination_role)
    own, other = ends if side.direction is Direction.EGRESS else ends[::-1]
    return Refusal(flow=flow, direction=side.direction, role=own, peer=other, rules=side.rules, isolating=side.isolating)
