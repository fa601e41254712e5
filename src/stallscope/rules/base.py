"""What a rule is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from stallscope.findings import Confidence, Finding, Label, Severity
from stallscope.judge.result import Judgement


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """
    A check with its documentation; `explain ID` and docs/rules are generated from it.

    `what` one or two sentences; `why` what it costs; `bad`/`good` YAML excerpts; `fix` what to do. `check` must be pure
    and never raise on odd manifests.
    """

    id: str
    slug: str
    severity: Severity
    what: str
    why: str
    bad: str
    good: str
    fix: str
    check: Callable[[Judgement], Iterable[Finding]]
    since: str = "0.1.0"
    fixable: bool = False
    sources: tuple[str, ...] = ()


class Report(NamedTuple):
    """Makes findings of one rule, so that a rule file need not repeat its own id."""

    id: str
    slug: str
    severity: Severity
    fixable: bool = False

    def rule(
        self,
        check: Callable[[Judgement], Iterable[Finding]],
        *,
        what: str,
        why: str,
        bad: str,
        good: str,
        fix: str,
        sources: Sequence[str] = (),
        since: str = "0.1.0",
    ) -> Rule:
        """The rule whose findings this makes, with its documentation."""
        return Rule(
            id=self.id,
            slug=self.slug,
            severity=self.severity,
            fixable=self.fixable,
            what=what,
            why=why,
            bad=bad,
            good=good,
            fix=fix,
            check=check,
            sources=tuple(sources),
            since=since,
        )

    def finding(
        self,
        message: str,
        labels: Sequence[Label],
        *,
        subject: str = "",
        key: str = "",
        severity: Severity | None = None,
        confidence: Confidence = Confidence.CERTAIN,
        notes: Sequence[str] = (),
        help: str = "",
        fixable: bool | None = None,
    ) -> Finding:
        """A finding of this rule; `severity` and `fixable` default to the rule's."""
        return Finding(
            rule=self.id,
            slug=self.slug,
            severity=severity or self.severity,
            message=message,
            labels=tuple(labels),
            subject=subject,
            key=key,
            confidence=confidence,
            notes=tuple(notes),
            help=help,
            fixable=self.fixable if fixable is None else fixable,
        )
