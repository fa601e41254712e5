"""``check``: judge manifests and report. Reads the named files and nothing else; never the network."""

from __future__ import annotations

import time
from dataclasses import replace

import click

from stallscope.cli import exitcodes
from stallscope.cli.options import (
    SEVERITIES,
    InputOptions,
    color_option,
    inputs,
    no_progress_option,
    output_option,
    quiet_option,
    split_commas,
)
from stallscope.errors import UsageError

EPILOG = """\b
Examples:
  stallscope check job.yaml policies/
  stallscope check deploy/ --nodes nodes.yaml        with `kubectl get nodes -o yaml > nodes.yaml`
  helm template chart | stallscope check - --stdin-name chart
  stallscope check . -o text -o sarif=stallscope.sarif
  stallscope check . --write-baseline stallscope-baseline.json

\b
Exit status:
  0 clean · 1 findings at or above --fail-on · 2 usage, unreadable input or internal error
  3 nothing to check · 130 interrupted. It does not depend on the format.
"""


@click.command(epilog=EPILOG)
@inputs
@output_option
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
@click.option("--exit-zero", is_flag=True, help="Exit 0 whatever is found (report mode).")
@click.option("--allow-empty", is_flag=True, help="Exit 0, not 3, when there is nothing to check.")
@color_option
@quiet_option
@no_progress_option
@click.pass_context
def command(
    ctx: click.Context,
    options: InputOptions,
    output: tuple[str, ...],
    fail_on: str,
    min_severity: str,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    strict: bool,
    baseline: str,
    write_baseline: str,
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
    from stallscope.cli.console import progress, say
    from stallscope.cli.failure import report as tell
    from stallscope.cli.outputs import emit, parse_outputs, replace_file
    from stallscope.cli.selection import parse_selection
    from stallscope.cli.sources import FileSources
    from stallscope.findings import Severity
    from stallscope.render.summary import summary

    prog = ctx.find_root().command_path
    if not options.paths:
        raise UsageError(
            "nothing to read: no PATH given", hint=f"`{prog} check .` reads this directory; - is standard input"
        )
    outputs = parse_outputs(output)
    gate = pipeline.Gate(
        selection=parse_selection(split_commas(select), split_commas(ignore), pipeline.known_rules()),
        fail_on=None if fail_on == "never" else Severity(fail_on),
        min_severity=Severity(min_severity),
        strict=strict,
        exit_zero=exit_zero,
        allow_empty=allow_empty,
    )
    accepted = pipeline.load_baseline(baseline)
    sources = FileSources()
    with progress("checking", shown=not (quiet or no_progress)):
        analysis = pipeline.judged(options, sources)
        report = pipeline.narrow(analysis, sources, gate, accepted)
    if write_baseline:
        from stallscope.load.baseline import dump_baseline

        whole = pipeline.narrow(analysis, sources, replace(gate, min_severity=Severity.INFO))
        replace_file(write_baseline, dump_baseline(whole.findings))
        report = pipeline.narrow(analysis, sources, gate, pipeline.load_baseline(write_baseline))
    report = replace(report, seconds=time.perf_counter() - started)
    emit(outputs, report, sources, color=color, prog=prog)
    code = pipeline.exit_code(report, gate)
    empty = pipeline.nothing_checked(report)
    if empty is not None and code != exitcodes.ERROR:
        if not allow_empty:
            tell(empty.message, empty.hint)
            return empty.exit_code
        code = exitcodes.CLEAN
    if not quiet:
        say(summary(report))
        if report.findings:
            first = min(report.findings, key=lambda f: f.severity.rank)
            say(f"`{prog} explain {first.rule}` tells why it matters and how to fix it.")
    return code
