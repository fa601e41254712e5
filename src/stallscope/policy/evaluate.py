"""
Blocks -> the decision about one direction. The walk is the same for every engine:

tiers in order; inside a tier the clauses in order, clauses of equal order together (deny, then allow, then pass); a closed
tier denies at its end what it isolates; after the last tier the open tiers' isolation denies, else traffic is allowed.
With one tier and one order this is Cilium <= 1.19 (any deny beats any allow, allows are a union); reference/policy.md §1.5.

Unknown facts are carried along: every outcome that some value of the unknown facts would give is collected, and more than
one different outcome makes the direction `unjudged` with these facts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from stallscope.model.traffic import DirectionVerdict, Outcome, RuleRef
from stallscope.policy.case import Candidate, Case
from stallscope.policy.ir import Action, Clause
from stallscope.policy.portset import covers


class Ending(NamedTuple):
    """One possible outcome; `facts` are the unknowns assumed on the way."""

    outcome: Outcome
    clauses: tuple[Clause, ...] = ()
    reason: str = ""
    facts: tuple[str, ...] = ()
    default: bool = False


#: Which of the clauses that match and agree on the outcome the engine names.
Attribution = Callable[["Case", Sequence[Clause], int], tuple[RuleRef, ...]]


def every_rule(_case: Case, clauses: Sequence[Clause], _port: int) -> tuple[RuleRef, ...]:
    """Attribution of engines whose rules are a plain union."""
    return tuple(dict.fromkeys(c.ref for c in clauses))


def decide(case: Case, port: int, attribution: Attribution = every_rule) -> DirectionVerdict:
    """The verdict of one direction for one port."""
    matching = [c for c in case.candidates if covers(c.ports, port)]
    endings = list(_walk(case, matching, 0))
    first = endings[0]
    if any(e.outcome is not first.outcome for e in endings):
        facts = dict.fromkeys(f for e in endings for f in e.facts)
        return DirectionVerdict(outcome=Outcome.UNJUDGED, direction=case.direction, reason=f"not known: {'; '.join(facts)}")
    sure = endings[-1]
    if not (sure.default and sure.outcome is Outcome.DENIED):
        named = attribution(case, sure.clauses, port) if sure.clauses else ()
        also = tuple(dict.fromkeys(c.ref for c in sure.clauses if c.ref not in named))
        return DirectionVerdict(outcome=sure.outcome, direction=case.direction, rules=named, also=also, reason=sure.reason)
    return DirectionVerdict(
        outcome=Outcome.DENIED,
        direction=case.direction,
        isolating=case.selection.isolating,
        nearest=case.nearest,
        reason=sure.reason,
    )


def _walk(case: Case, matching: Sequence[Candidate], tier: int, facts: tuple[str, ...] = ()) -> Iterator[Ending]:
    """Endings from `tier` on, the one without assumptions last."""
    for index in range(tier, len(case.tiers)):
        inside = [c for c in matching if c.tier == index]
        passed = False
        for _, group in groupby(inside, key=lambda c: c.clause.order):
            step = _group(list(group), facts)
            facts = step.facts
            yield from step.endings
            if step.decided:
                return
            if step.unsure_pass:
                yield from _walk(case, matching, index + 1, facts)
            if step.passed:
                passed = True
                break
        if case.tiers[index].closed and not passed:
            yield from _default(case, facts, index)
            if any(s.block.isolates and s.sure is True for s in case.selected if s.block.tier == index):
                return
    yield from _default(case, facts, None)
    opened = (s for s in case.selected if s.block.isolates and not case.tiers[s.block.tier].closed)
    if not any(s.sure is True for s in opened):
        yield Ending(Outcome.ALLOWED, facts=facts)


def _default(case: Case, facts: tuple[str, ...], tier: int | None) -> Iterator[Ending]:
    for choice in case.selected:
        closed = case.tiers[choice.block.tier].closed
        here = choice.block.tier == tier if tier is not None else not closed
        if choice.block.isolates and here:
            more = facts if choice.sure is True else (*facts, str(choice.sure))
            yield Ending(Outcome.DENIED, facts=more, default=True)
            if choice.sure is True:
                return


class Step(NamedTuple):
    endings: tuple[Ending, ...]
    facts: tuple[str, ...]
    decided: bool = False
    passed: bool = False
    unsure_pass: bool = False


def _group(group: list[Candidate], facts: tuple[str, ...]) -> Step:
    """Clauses of equal order: deny, then allow, then pass."""
    endings: list[Ending] = []
    for action in Action:
        mine = [c for c in group if c.clause.action is action]
        unsure = [c for c in mine if c.sure is not True]
        sure = [c for c in mine if c.sure is True]
        if unsure:
            facts = tuple(dict.fromkeys((*facts, *(str(c.sure) for c in unsure))))
            if action is not Action.PASS:
                endings.append(_ending(action, unsure, facts))
                if action is Action.ALLOW and any(not c.clause.proxied for c in unsure) != all(
                    not c.clause.proxied for c in unsure
                ):
                    endings.append(Ending(Outcome.ALLOWED, facts=facts))
        if sure and action is Action.PASS:
            return Step(tuple(endings), facts, passed=True)
        if sure:
            endings.append(_ending(action, sure, facts))
            return Step(tuple(endings), facts, decided=True)
        if unsure and action is Action.PASS:
            return Step(tuple(endings), facts, unsure_pass=True)
    return Step(tuple(endings), facts)


def _ending(action: Action, chosen: list[Candidate], facts: tuple[str, ...]) -> Ending:
    clauses = tuple(c.clause for c in chosen)
    if action is Action.DENY:
        return Ending(Outcome.DENIED, clauses, facts=facts)
    reason = min(((c.proxy_rank, c.proxied) for c in clauses if c.proxied), default=(0, ""))[1]
    return Ending(Outcome.PROXIED if reason else Outcome.ALLOWED, clauses, reason, facts)
