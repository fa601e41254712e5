"""
Plan, patch, judge again: until nothing is left that a patch can do, and keeping only what the judgement of the patched
input confirms. Pure: texts in, texts out; reading and judging are given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from stallscope.errors import PatchRefused
from stallscope.findings import Finding
from stallscope.judge.result import Judgement
from stallscope.remedy.model import Choices, Plan, Remedy, Unfixed
from stallscope.remedy.patch import Parse, patch_text
from stallscope.remedy.plan import family, plan
from stallscope.remedy.prove import Proof, prove

#: Placement, then policies, then what a narrowed deny leaves to an allow; one more to see that nothing is left.
ROUNDS = 5


class Judged(Protocol):
    """A judgement and the findings that count (selected, not suppressed)."""

    @property
    def judgement(self) -> Judgement: ...

    @property
    def findings(self) -> Sequence[Finding]: ...


Texts = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixed:
    """The patched texts (new files included), what was done, what was not and why, and the proof for each job."""

    texts: Texts
    remedies: tuple[Remedy, ...]
    unfixed: tuple[Unfixed, ...]
    proofs: tuple[Proof, ...]
    after: Judged


def fix(texts: Texts, before: Judged, judge: Callable[[Texts], Judged], parse: Parse, choices: Choices) -> Fixed:
    """Fix what can be fixed. A remedy that does not hold in the judgement of the patched texts is taken back."""
    now, current = dict(texts), before
    done: list[Remedy] = []
    skip: set[tuple[str, str]] = set()
    failures: list[Unfixed] = []
    last = Plan()
    for _ in range(ROUNDS):
        last = plan(current.judgement, current.findings, choices, skip=skip)
        made, refused = _patch(now, last.remedies, parse)
        failures += [u for u, _ in refused]
        skip |= {(r.job, family(r)) for _, r in refused}
        kept = [r for r in last.remedies if r not in [b for _, b in refused]]
        if not kept:
            if refused:
                continue
            break
        attempt = judge(made)
        broken = {p.job: p for p in _prove(current, attempt, kept) if p.failed}
        if broken:
            failures += _taken_back(kept, broken)
            skip |= {(r.job, family(r)) for r in kept if r.job in broken or not broken.keys() & {k.job for k in kept}}
            continue
        now, current = made, attempt
        done += kept
    unfixed = tuple(dict.fromkeys((*failures, *last.unfixed)))
    proofs = _prove(before, current, done)
    return Fixed(texts=now, remedies=tuple(done), unfixed=unfixed, proofs=proofs, after=current)


def _prove(before: Judged, after: Judged, remedies: Sequence[Remedy]) -> tuple[Proof, ...]:
    return prove(before.judgement, after.judgement, remedies, (before.findings, after.findings))


def _patch(texts: Texts, remedies: Sequence[Remedy], parse: Parse) -> tuple[dict[str, str], list[tuple[Unfixed, Remedy]]]:
    """The texts with every remedy that its files can take; the others with the snippet to paste."""
    now = dict(texts)
    refused: list[tuple[Unfixed, Remedy]] = []
    for remedy in remedies:
        try:
            now |= _patched(now, remedy, parse)
        except PatchRefused as error:
            unfixed = Unfixed(job=remedy.job, rules=remedy.rules, reason=f"{remedy.title}: {error.message}", hint=error.hint)
            refused.append((unfixed, remedy))
    return now, refused


def _patched(texts: Texts, remedy: Remedy, parse: Parse) -> dict[str, str]:
    files = dict.fromkeys(op.file for op in remedy.ops)
    return {file: patch_text(texts.get(file, ""), [op for op in remedy.ops if op.file == file], parse) for file in files}


def _taken_back(remedies: Sequence[Remedy], broken: Mapping[str, Proof]) -> list[Unfixed]:
    found = []
    for remedy in remedies:
        proof = broken.get(remedy.job)
        if proof is not None:
            reason = f"tried: {remedy.title}; not kept: {'; '.join(proof.failed)}"
            found.append(Unfixed(job=remedy.job, rules=remedy.rules, reason=reason))
    return found
