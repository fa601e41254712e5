"""Inputs -> analysis -> what is left after suppressions, baseline and filters -> exit code. For every verb that judges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stallscope import __version__
from stallscope.analysis import Analysis, analyse
from stallscope.cli import exitcodes
from stallscope.cli.options import InputOptions
from stallscope.cli.selection import Selection
from stallscope.cli.sources import FileSources
from stallscope.errors import NothingToCheck
from stallscope.findings import Finding, Severity
from stallscope.judge.inputs import Inputs, ProblemKind
from stallscope.render.report import Report, numbered
from stallscope.rules.registry import RULES

if TYPE_CHECKING:
    from stallscope.load.baseline import Accepted

#: Rules about the input itself; a run that finds nothing else has judged nothing.
INPUT_RULES = "STL9"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """What counts and what fails. `fail_on` None: findings never fail."""

    selection: Selection
    fail_on: Severity | None = Severity.ERROR
    min_severity: Severity = Severity.INFO
    strict: bool = False
    exit_zero: bool = False
    allow_empty: bool = False


def known_rules() -> Mapping[str, str]:
    """Ids and slugs of every rule."""
    return {rule.id: rule.slug for rule in RULES}


def read(options: InputOptions, sources: FileSources) -> Inputs:
    """Everything the user named, loaded. Raises LoadError and UsageError."""
    from stallscope.load.inputs import LoadRequest, load_inputs

    raise NotImplementedError


def judged(options: InputOptions, sources: FileSources) -> Analysis:
    """Load and analyse."""
    return analyse(read(options, sources))


def narrow(analysis: Analysis, sources: FileSources, gate: Gate, accepted: Accepted | None = None) -> Report:
    """The report of an analysis: deselected rules out, then suppressions, the baseline, and low severities."""
    from stallscope.load.suppress import find_directives, suppress

    inputs = analysis.judgement.inputs
    enabled = gate.selection.enabled
    chosen = [f for f in analysis.findings if enabled(f.rule)]
    directives = find_directives(inputs.objects, sources.text)
    outcome = suppress(chosen, directives, known=known_rules(), enabled=enabled, strict=gate.strict)
    findings = (*outcome.kept, *(f for f in outcome.complaints if enabled(f.rule)))
    suppressed, stale = outcome.suppressed, 0
    if accepted is not None:
        from stallscope.load.baseline import apply_baseline

        baselined = apply_baseline(findings, accepted, enabled=enabled)
        findings, stale = baselined.kept, baselined.stale
        suppressed += baselined.suppressed
    judgement = analysis.judgement
    return Report(
        version=__version__,
        jobs=judgement.jobs,
        findings=tuple(sorted((f for f in findings if f.severity.rank <= gate.min_severity.rank), key=_place)),
        suppressed=suppressed,
        problems=inputs.problems,
        unjudged=judgement.unjudged,
        rules={rule.id: rule for rule in RULES},
        policies=len(judgement.policies.policies),
        edges=judgement.edges,
        files=inputs.files,
        stale=stale,
    )


def _place(finding: Finding) -> tuple[str, int, int, str]:
    at = finding.primary
    return at.file, at.span.line, at.span.column, finding.rule


def exit_code(report: Report, gate: Gate) -> int:
    """
    ERROR when an input could not be read, else FINDINGS when one reaches --fail-on (or, with --strict, when something
    could not be judged). Input that holds nothing to judge is `require_jobs`' business.
    """
    if any(p.kind is ProblemKind.UNREADABLE for p in report.problems):
        return exitcodes.ERROR
    if gate.exit_zero:
        return exitcodes.CLEAN
    failing = gate.fail_on is not None and any(f.severity.rank <= gate.fail_on.rank for f in report.findings)
    return exitcodes.FINDINGS if failing or (gate.strict and report.unjudged) else exitcodes.CLEAN


def nothing_checked(report: Report) -> NothingToCheck | None:
    """The complaint when nothing of the input was judged: no job, and no finding but those about the input itself."""
    told = [*report.findings, *(s.finding for s in report.suppressed)]
    if report.jobs or any(not f.rule.startswith(INPUT_RULES) for f in told):
        return None
    read = numbered(report.files, "file")
    if any(p.kind is ProblemKind.UNRENDERED for p in report.problems):
        return NothingToCheck(
            f"nothing to check: only unrendered templates in {read}",
            hint="render them first: `helm template CHART | stallscope check -`",
        )
    unsupported = [p for p in report.problems if p.kind is ProblemKind.UNSUPPORTED]
    if unsupported:
        return NothingToCheck(f"nothing to check: {unsupported[0].message}", hint=unsupported[0].hint)
    beside = f" ({numbered(report.policies, 'policy', 'policies')}, but no job they could stall)" if report.policies else ""
    return NothingToCheck(
        f"nothing to check: no training job in {read}{beside}",
        hint="name the manifests of the job too; --allow-empty makes this a success",
    )


def load_baseline(file: str) -> Accepted | None:
    """The accepted findings of a baseline file; None without one. Raises UsageError."""
    if not file:
        return None
    from stallscope.load.baseline import read_baseline

    return read_baseline(Path(file))
