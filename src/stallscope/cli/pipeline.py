"""Inputs -> analysis -> what is left after suppressions, baseline and filters -> exit code. For every verb that judges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from stallscope import __version__
from stallscope.analysis import Analysis, analyse
from stallscope.cli import exitcodes
from stallscope.cli.options import InputOptions
from stallscope.cli.selection import Selection, parse_selection
from stallscope.cli.sources import FileSources
from stallscope.errors import NothingToCheck
from stallscope.findings import Finding, Severity, Suppressed
from stallscope.judge.inputs import Inputs, Problem, ProblemKind
from stallscope.model.kube import DEFAULT_NAMESPACE
from stallscope.render.report import Report, numbered
from stallscope.rules import registry

if TYPE_CHECKING:
    from stallscope.judge.price import PriceFacts
    from stallscope.load.baseline import Accepted

#: Rules that speak of input which was not judged; a run that finds nothing else has judged nothing. (STL905, a job with
#: an invalid part, is not among them: that is a finding about a job.)
NOT_JUDGED = frozenset({"STL901", "STL902", "STL903", "STL904", "STL906", "STL990"})

#: Problems that a finding says, so that --select, --ignore and --min-severity hide them. Unreadable input is said anyway.
_OF_RULES = frozenset(ProblemKind) - {ProblemKind.UNREADABLE}


class Gate(NamedTuple):
    """What counts and what fails. `fail_on` None: findings never fail."""

    selection: Selection
    fail_on: Severity | None = Severity.ERROR
    min_severity: Severity = Severity.INFO
    strict: bool = False
    exit_zero: bool = False
    allow_empty: bool = False


def gate(
    *,
    select: tuple[str, ...] = (),
    ignore: tuple[str, ...] = (),
    fail_on: str = "error",
    min_severity: str = "info",
    strict: bool = False,
    exit_zero: bool = False,
    allow_empty: bool = False,
) -> Gate:
    """The gate from the words of the command line. Raises UsageError for rules that do not exist."""
    return Gate(
        selection=parse_selection(select, ignore, known_rules()),
        fail_on=None if fail_on == "never" else Severity(fail_on),
        min_severity=Severity(min_severity),
        strict=strict,
        exit_zero=exit_zero,
        allow_empty=allow_empty,
    )


def known_rules() -> Mapping[str, str]:
    """Ids and slugs of every rule."""
    return {rule.id: rule.slug for rule in registry.RULES}


def read(options: InputOptions, sources: FileSources | None = None, *, allow_empty: bool = False) -> Inputs:
    """
    Everything the user named, loaded; its texts go to `sources`. Raises LoadError, UsageError, and NothingToCheck when
    there is no file at all.
    """
    from stallscope.load.inputs import LoadRequest, load

    request = LoadRequest(
        paths=options.paths,
        nodes_files=options.nodes,
        stdin_name=options.stdin_name or "<stdin>",
        namespace=options.namespace or DEFAULT_NAMESPACE,
        facts=options.facts(),
        allow_empty=allow_empty,
    )
    loaded = load(request)
    if sources is not None:
        sources.give(loaded.texts)
    return loaded.inputs


def judged(
    options: InputOptions,
    sources: FileSources | None = None,
    *,
    allow_empty: bool = False,
    prices: PriceFacts | None = None,
) -> Analysis:
    """Load and analyse. `prices` are the stated inputs of the modelled figures."""
    inputs = read(options, sources, allow_empty=allow_empty)
    return analyse(replace(inputs, prices=prices) if prices else inputs)


def narrow(analysis: Analysis, sources: FileSources, gate: Gate, accepted: Accepted | None = None) -> Report:
    """The report of an analysis: deselected rules out, then suppressions, the baseline, and low severities."""
    from stallscope.load.suppress import find_directives, suppress

    inputs = analysis.judgement.inputs
    enabled = gate.selection.enabled
    chosen = [f for f in analysis.findings if enabled(f.rule)]
    directives = find_directives(inputs.objects, sources.text, [p.location.file for p in inputs.problems])
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
        rules={rule.id: rule for rule in registry.RULES},
        policies=len(judgement.policies.policies),
        edges=judgement.edges,
        files=inputs.files,
        stale=stale,
        unsaid=_OF_RULES,
        unread=0 if gate.selection.ignored("STL901") else _unread(inputs.problems, suppressed),
    )


def _unread(problems: Sequence[Problem], suppressed: Sequence[Suppressed]) -> int:
    """Unreadable inputs, less those whose finding somebody accepted."""
    accepted = {(s.finding.primary.file, s.finding.primary.span.line) for s in suppressed if s.finding.rule == "STL901"}
    unreadable = [p for p in problems if p.kind is ProblemKind.UNREADABLE]
    return sum((p.location.file, p.location.span.line) not in accepted for p in unreadable)


def _place(finding: Finding) -> tuple[str, int, int, str]:
    at = finding.primary
    return at.file, at.span.line, at.span.column, finding.rule


def exit_code(report: Report, gate: Gate) -> int:
    """
    ERROR when an input could not be read, else FINDINGS when one reaches --fail-on (or, with --strict, when something
    could not be judged). Input that holds nothing to judge is `require_jobs`' business.
    """
    if report.unread:
        return exitcodes.ERROR
    if gate.exit_zero:
        return exitcodes.CLEAN
    failing = gate.fail_on is not None and any(f.severity.rank <= gate.fail_on.rank for f in report.findings)
    return exitcodes.FINDINGS if failing or (gate.strict and report.unjudged) else exitcodes.CLEAN


def nothing_checked(report: Report, prog: str = "stallscope") -> NothingToCheck | None:
    """The complaint when nothing of the input was judged: no job, and no finding but those about the input itself."""
    told = [*report.findings, *(s.finding for s in report.suppressed)]
    if report.jobs or any(f.rule not in NOT_JUDGED for f in told):
        return None
    read = numbered(report.files, "file")
    if any(p.kind is ProblemKind.UNRENDERED for p in report.problems):
        hint = f"render them first: `helm template CHART | {prog} check -`"
        return NothingToCheck(f"nothing to check: only unrendered templates in {read}", hint=hint)
    unsupported = next((p for p in report.problems if p.kind is ProblemKind.UNSUPPORTED), None)
    if unsupported is not None:
        return NothingToCheck(f"nothing to check: {unsupported.message}", hint=unsupported.hint)
    beside = f" ({numbered(report.policies, 'policy', 'policies')}, but no job they could stall)" if report.policies else ""
    hint = "name the manifests of the job too; --allow-empty makes this a success"
    return NothingToCheck(f"nothing to check: no training job in {read}{beside}", hint=hint)


def accepted_findings(file: str) -> Accepted | None:
    """The findings that a baseline file accepts; None without a file. Raises UsageError."""
    if not file:
        return None
    from stallscope.load.baseline import read_baseline

    return read_baseline(Path(file))


def accept_all(file: str, analysis: Analysis, sources: FileSources, gate: Gate) -> Accepted | None:
    """Write a baseline with every finding, whatever its severity, and accept them."""
    from stallscope.cli.outputs import replace_file
    from stallscope.load.baseline import dump_baseline

    whole = narrow(analysis, sources, gate._replace(min_severity=Severity.INFO))
    replace_file(file, dump_baseline(whole.findings))
    return accepted_findings(file)
