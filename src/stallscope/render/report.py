"""What every renderer gets: the judged jobs, the findings that are left after filters, and counts. Data only."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from stallscope.findings import Finding, Severity, Suppressed, SuppressedBy
from stallscope.judge.inputs import Problem, ProblemKind
from stallscope.judge.result import JobJudgement
from stallscope.model.source import Location
from stallscope.rules.base import Rule


class SourceCache(Protocol):
    """Gives the text of a file of the report, by the name the report uses."""

    def lines(self, file: str) -> Sequence[str] | None:
        """The lines without their line ends, or None when the text cannot be had (any more)."""
        ...


class NoSources:
    """A source cache without sources: excerpts are left out."""

    def lines(self, file: str) -> Sequence[str] | None:  # noqa: ARG002
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """
    The outcome of one run. `findings` are in order of place; `suppressed` were accepted by comment, annotation or
    baseline. `policies`, `edges` and `files` count what was judged. `stale` counts baseline entries that match nothing
    any more, `unread` the inputs that could not be read and that nobody accepted as such. `seconds` is wall time, for
    people only (None: not measured); no machine format contains it.
    """

    version: str
    jobs: tuple[JobJudgement, ...] = ()
    findings: tuple[Finding, ...] = ()
    suppressed: tuple[Suppressed, ...] = ()
    problems: tuple[Problem, ...] = ()
    unjudged: tuple[str, ...] = ()
    rules: Mapping[str, Rule] = field(default_factory=dict)
    policies: int = 0
    edges: int = 0
    files: int = 0
    stale: int = 0
    unread: int = 0
    unsaid: frozenset[ProblemKind] = frozenset()
    seconds: float | None = None

    def count(self, severity: Severity) -> int:
        return sum(f.severity is severity for f in self.findings)

    @property
    def fixable(self) -> int:
        return sum(f.fixable for f in self.findings)

    @property
    def baselined(self) -> int:
        return sum(s.by is SuppressedBy.BASELINE for s in self.suppressed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """
    How a text for people is laid out. `width` in columns. `link` gives a location's URL for a terminal hyperlink, or
    the empty string. `prog` is the program's name as the user calls it, `inputs` the arguments that give another verb
    the same input.
    """

    width: int = 100
    color: bool = False
    unicode: bool = True
    prog: str = "stallscope"
    inputs: str = "PATH"
    link: Callable[[Location], str] | None = None


def by_severity(findings: Iterable[Finding]) -> list[Finding]:
    """The most severe first; within a severity the order stays."""
    return sorted(findings, key=lambda f: f.severity.rank)


def numbered(count: int, one: str, many: str = "") -> str:
    """``1 job``, ``2 jobs``, ``3 policies`` (with ``many="policies"``)."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def origin(location: Location) -> str:
    """`` (rendered from …)`` for a place in rendered text: the file that a person can open and change."""
    return f" (rendered from {location.rendered_from})" if location.rendered_from else ""


def loose_problems(report: Report) -> tuple[Problem, ...]:
    """Problems that no finding of the input rules (STL9xx) reports already at the same line, less `report.unsaid`."""
    told = {(f.primary.file, f.primary.span.line) for f in report.findings if f.rule.startswith("STL9")}
    told |= {(s.finding.primary.file, s.finding.primary.span.line) for s in report.suppressed}
    loose = (p for p in report.problems if (p.location.file, p.location.span.line) not in told)
    return tuple(p for p in loose if p.kind not in report.unsaid)
