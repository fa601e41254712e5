"""``check``: judge manifests and report. Reads the named files and nothing else; never the network."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from stallscope.cli import exitcodes
from stallscope.cli.options import (
    FORMATS,
    SEVERITIES,
    InputOptions,
    color_option,
    inputs,
    no_progress_option,
    output_of,
    quiet_option,
    split_commas,
)
from stallscope.cli.prices import prices
from stallscope.cli.verb import VerbCommand
from stallscope.errors import UsageError

if TYPE_CHECKING:
    from stallscope.cli.pipeline import Gate
    from stallscope.judge.price import PriceFacts
    from stallscope.render.report import Report

EPILOG = """\
Examples:
  {prog} check job.yaml policies/
  kubectl get nodes -o yaml > nodes.yaml
  {prog} check deploy/ --nodes nodes.yaml
  helm template chart | {prog} check - --stdin-name chart
  {prog} check . -o text -o sarif=stallscope.sarif
  {prog} check . --write-baseline stallscope-baseline.json

Exit status:
  0  clean
  1  findings at or above --fail-on
  2  wrong usage, unreadable input, or a bug
  3  nothing to check
  The output format does not change it.
"""


@click.command(cls=VerbCommand, epilog=EPILOG)
@inputs
@output_of(*FORMATS)
@click.option(
    "--fail-on", type=click.Choice([*SEVERITIES, "never"]), default="error", show_default=True, envvar="STALLSCOPE_FAIL_ON",
    help="Lowest severity that makes the exit status 1.",
)  # fmt: skip
@click.option(
    "--min-severity", type=click.Choice(SEVERITIES), default="info", show_default=True, help="Lowest severity reported.",
)  # fmt: skip
@click.option("--select", multiple=True, metavar="RULES", help="Only these rules: ids, prefixes (STL2) or slugs.")
@click.option("--ignore", multiple=True, metavar="RULES", help="Not these rules.")
@click.option("--strict", is_flag=True, help="Fail on what cannot be judged; suppressions need a reason.")
@click.option("--baseline", metavar="FILE", default="", help="Accept the findings listed in FILE.")
@click.option("--write-baseline", metavar="FILE", default="", help="Write the findings to FILE and accept them.")
@click.option("--base", metavar="REV|DIR", default="", help="Report what changes for the jobs since a git revision or DIR.")
@click.option("--exit-zero", is_flag=True, help="Exit 0 whatever is found (report mode).")
@click.option("--allow-empty", is_flag=True, help="Exit 0, not 3, when there is nothing to check.")
@prices
@color_option
@quiet_option
@no_progress_option
@click.pass_context
def command(
    ctx: click.Context,
    options: InputOptions,
    prices: PriceFacts,
    output: tuple[str, ...],
    fail_on: str,
    min_severity: str,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    strict: bool,
    baseline: str,
    write_baseline: str,
    base: str,
    exit_zero: bool,
    allow_empty: bool,
    color: str,
    quiet: bool,
    no_progress: bool,
) -> int:
    """
    Judge manifests: where the pods of each training job may land, who of them may talk, and what a bad placement costs.

    PATH is a file, a directory (searched for YAML and JSON, heeding .gitignore) or `-` for standard input.
    """
    started = time.perf_counter()
    from stallscope.cli import pipeline
    from stallscope.cli.console import progress
    from stallscope.cli.outputs import emit, parse_outputs
    from stallscope.cli.sources import FileSources

    prog = ctx.find_root().command_path
    if not options.paths:
        raise UsageError(
            "nothing to read: no PATH given", hint=f"`{prog} check .` reads this directory; - is standard input"
        )
    if base:
        return _review(options, base, output, never_fails=exit_zero or fail_on == "never", quiet=quiet or no_progress)
    outputs = parse_outputs(output)
    gate = pipeline.gate(
        select=split_commas(select),
        ignore=split_commas(ignore),
        fail_on=fail_on,
        min_severity=min_severity,
        strict=strict,
        exit_zero=exit_zero,
        allow_empty=allow_empty,
    )
    accepted = pipeline.accepted_findings(baseline)
    sources = FileSources()
    with progress("checking", shown=not (quiet or no_progress)):
        analysis = pipeline.judged(options, sources, allow_empty=allow_empty, prices=prices)
        if write_baseline:
            accepted = pipeline.accept_all(write_baseline, analysis, sources, gate)
        report = pipeline.narrow(analysis, sources, gate, accepted)
    report = replace(report, seconds=time.perf_counter() - started)
    emit(outputs, report, sources, color=color, prog=prog, again=options.again())
    return _close(report, gate, quiet=quiet, prog=prog)


def _close(report: Report, gate: Gate, *, quiet: bool, prog: str) -> int:
    """Say on stderr how it went; the exit code."""
    from stallscope.cli import failure, pipeline
    from stallscope.cli.console import say
    from stallscope.render.summary import summary

    code = pipeline.exit_code(report, gate)
    empty = pipeline.nothing_checked(report, prog)
    if code == exitcodes.ERROR:
        failure.report("part of the input could not be read, so it was not judged")
    elif empty is not None and not gate.allow_empty:
        failure.report(empty.message, "" if report.findings else empty.hint)
        return empty.exit_code
    if not quiet:
        say(summary(report))
        if report.findings:
            first = min(report.findings, key=lambda f: f.severity.rank)
            say(f"`{prog} explain {first.rule}` tells why it matters and how to fix it.")
    return code


def _review(options: InputOptions, base: str, output: tuple[str, ...], *, never_fails: bool, quiet: bool) -> int:
    """The review gate: which jobs' edges change verdict since `base`."""
    import json

    from stallscope.cli.base import base_options
    from stallscope.cli.console import progress, say
    from stallscope.cli.outputs import emit_views, parse_outputs
    from stallscope.cli.pipeline import judged
    from stallscope.cli.sources import FileSources
    from stallscope.cli.unread import tell
    from stallscope.judge.compare import compare
    from stallscope.judge.inputs import ProblemKind
    from stallscope.render import changes

    outputs = parse_outputs(output, ("text", "json", "md"))
    with progress("comparing", shown=not quiet), base_options(options, base) as then:
        before, after = judged(then, FileSources()).judgement, judged(options, FileSources()).judgement
        found = compare(before, after)
    views = {
        "text": lambda: changes.text(found, base),
        "md": lambda: changes.markdown(found, base),
        "json": lambda: json.dumps(changes.data(found, base), indent=2) + "\n",
    }
    emit_views(outputs, views)
    if tell(after.inputs.problems):
        return exitcodes.ERROR
    if any(p.kind is ProblemKind.UNREADABLE for p in before.inputs.problems):
        say(f"note: part of the input could not be read at {base}, so changes may be missing above")
    return exitcodes.FINDINGS if found.worse and not never_fails else exitcodes.CLEAN
