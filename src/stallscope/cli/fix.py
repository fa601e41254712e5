"""``fix``: the patch for what `check` found, proved by judging the patched manifests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from stallscope.cli import exitcodes
from stallscope.cli.options import FIX_FORMATS, InputOptions, color_option, inputs, output_of, quiet_option, split_commas
from stallscope.cli.verb import VerbCommand
from stallscope.errors import UsageError

if TYPE_CHECKING:
    from stallscope.cli.fixrun import Run

EPILOG = """\
Examples:
  {prog} fix deploy/ --nodes nodes.yaml     the patch and its proof
  {prog} fix . --nodes nodes.yaml | git apply
  {prog} fix . --nodes nodes.yaml --write
  {prog} fix job.yaml --strategy pin --zone eu-1a
  {prog} fix . --select STL2 -o kustomize=stallscope-fix

Exit status:
  0  done, patch or none
  1  with --check: there is a patch
  2  wrong usage, unreadable input, or a bug
  3  nothing to check
"""


@click.command(cls=VerbCommand, epilog=EPILOG)
@inputs
@output_of(*FIX_FORMATS)
@click.option("--write", is_flag=True, help="Change the files instead of printing a diff.")
@click.option("--check", is_flag=True, help="Exit 1 when there is a patch; change nothing.")
@click.option(
    "--strategy", type=click.Choice(["auto", "pin", "portable", "native"]), default="auto", show_default=True,
    help="How to keep a job in one zone: nodeSelector, podAffinity, or the gang or queue in use.",
)  # fmt: skip
@click.option("--zone", metavar="ZONE", default="", help="The zone to use; else the best one that holds the job.")
@click.option(
    "--coordinator", type=click.Choice(["auto", "gpu-nodes", "cpu-pool"]), default="auto", show_default=True,
    help="Where roles without GPUs go in that zone.",
)  # fmt: skip
@click.option("--spread-hosts", is_flag=True, help="Also prefer one rank a node inside the zone.")
@click.option("--select", multiple=True, metavar="RULES", help="Fix only these rules: ids, prefixes (STL2) or slugs.")
@click.option("--ignore", multiple=True, metavar="RULES", help="Not these rules.")
@color_option
@quiet_option
@click.pass_context
def command(
    ctx: click.Context,
    options: InputOptions,
    output: tuple[str, ...],
    write: bool,
    check: bool,
    strategy: str,
    zone: str,
    coordinator: str,
    spread_hosts: bool,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    color: str,
    quiet: bool,
) -> int:
    """
    Show the patch for what `check` finds, as a unified diff that `git apply` takes, and what judging the patched manifests
    proves.

    Text is inserted, nothing is re-written: comments, order and style stay. Policies are only opened for the job itself.
    """
    from stallscope.cli import fixrun, fixviews, pipeline
    from stallscope.cli.outputs import parse_outputs
    from stallscope.cli.unread import no_job, tell
    from stallscope.remedy.model import Choices, Coordinator, Strategy

    prog = ctx.find_root().command_path
    if not options.paths:
        raise UsageError("nothing to read: no PATH given", hint=f"`{prog} fix .` reads this directory")
    if write and check:
        raise UsageError("--write and --check exclude each other", hint="--check only asks; --write changes")
    outputs = parse_outputs(output or ("diff",), FIX_FORMATS)
    gate = pipeline.gate(select=split_commas(select), ignore=split_commas(ignore))
    choices = Choices(
        strategy=Strategy(strategy), zone=zone, coordinator=Coordinator(coordinator), spread_hosts=spread_hosts
    )
    run = fixrun.run(options, gate, choices)
    if not run.loaded.inputs.jobs:
        raise no_job(run.loaded.inputs)
    if write:
        fixrun.write(run)
    elif not check:
        fixviews.emit(run, outputs, color)
    if not quiet:
        _say(run, prog, wrote=write)
    if tell(run.report.problems):
        return exitcodes.ERROR
    return exitcodes.FINDINGS if check and run.changes else exitcodes.CLEAN


def _say(run: Run, prog: str, *, wrote: bool) -> None:
    from stallscope.cli.console import say
    from stallscope.remedy.account import left_lines, proof_lines
    from stallscope.render.escape import visible
    from stallscope.render.report import numbered

    if wrote:
        for line in proof_lines(run.fixed.proofs):
            say(visible(line))
    for line in left_lines(run.fixed.unfixed):
        say(visible(line))
    if not run.changes:
        say("nothing to fix" if not run.fixed.unfixed else "no patch")
        return
    jobs = len({r.job for r in run.fixed.remedies})
    fixes = numbered(len(run.fixed.remedies), "fix", "fixes")
    done = f"{fixes} for {numbered(jobs, 'job')} in {numbered(len(run.changes), 'file')}"
    say(f"{done}, {'written' if wrote else f'not written: `{prog} fix … --write` or `| git apply`'}")
