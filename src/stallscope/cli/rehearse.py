"""``rehearse``: run the job's shape for real in a pocket cluster on this machine, before and after the fix."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stallscope.cli import exitcodes
from stallscope.cli.options import InputOptions, color_option, inputs, no_progress_option, output_of, quiet_option
from stallscope.cli.prices import prices
from stallscope.cli.verb import VerbCommand
from stallscope.errors import UsageError

if TYPE_CHECKING:
    from stallscope.collective.rehearsal import Rehearsal
    from stallscope.judge.price import PriceFacts
    from stallscope.judge.result import JobJudgement, Judgement

EPILOG = """\
Examples:
  {prog} rehearse examples/incident      as written, then fixed
  {prog} rehearse deploy/ --nodes nodes.yaml --split --max-idle 30
  {prog} rehearse examples/incident --exec -- python train.py
  {prog} rehearse examples/incident --fault straggler:rank=2,ms=300
  {prog} rehearse clean                  sweep what killed runs left

Exit status:
  0  it ran and met --max-idle and --require-reachable
  1  it did not, or the job stalled
  2  wrong usage, unreadable input, no lab here, or a connect contradicts its
     verdict
  3  no job in the input
  With both placements the gates look at the input as it is; with --fixed at
  the fixed one.
"""

FORMATS = ("text", "json", "md", "html")
CLEAN_WORD = "clean"


@click.command(cls=VerbCommand, epilog=EPILOG)
@inputs
@prices
@output_of(*FORMATS)
@click.option("--job", "job_name", metavar="NAME", default="", help="Which job, when the input holds several.")
@click.option("--split", "which", flag_value="split", help="Only the input as it is.")
@click.option("--fixed", "which", flag_value="fixed", help="Only with what `fix` would change, applied in memory.")
@click.option("--both", "which", flag_value="both", default="both", help="Both, side by side (the default).")
@click.option(
    "--placement", metavar="worst|likely|FILE", default="worst", show_default=True,
    help="Where the pods stand: the witness, the scheduler model's likely outcome, or a file of `pod: node`.",
)  # fmt: skip
@click.option("--steps", type=click.IntRange(2, 10_000), default=10, show_default=True, help="Training steps a run.")
@click.option("--repeat", type=click.IntRange(1, 100), default=3, show_default=True, help="Runs of each placement.")
@click.option("--ranks", type=click.IntRange(2, 512), default=16, show_default=True, help="Most ranks to start.")
@click.option(
    "--exec", "command_line", is_flag=True, help="Run the words after -- in every pod instead of the built-in loop."
)
@click.option("--fault", "faults", multiple=True, metavar="NAME[:ARGS]", help="Inject a fault; --fault list shows them.")
@click.option("--built-in", is_flag=True, help="Use the built-in ring even when torch is installed.")
@click.option(
    "--max-idle", type=click.FloatRange(0, 100), default=None, metavar="PERCENT", help="Fail above this idle share."
)
@click.option("--require-reachable", is_flag=True, help="Fail when a connect between the job's pods is blocked.")
@click.option(
    "--backend", type=click.Choice(["pocket", "kind", "current"]), default="pocket", show_default=True,
    help="Where: on this machine, on a kind cluster (applies the input's policies), or under the policies of a cluster.",
)  # fmt: skip
@click.option("--context", metavar="NAME", default="", help="kubectl context of --backend.")
@click.option("--image", metavar="IMAGE", default="", help="Probe image of --backend; else Kubernetes' own test image.")
@click.option(
    "--write-kind", metavar="FILE", default="", help="Write a kind config with the input's zones and taints; stop."
)
@click.option("--named", is_flag=True, help="Name the namespaces, so that `ip netns exec` enters them (root).")
@color_option
@quiet_option
@no_progress_option
@click.pass_context
def command(
    ctx: click.Context,
    options: InputOptions,
    prices: PriceFacts,
    output: tuple[str, ...],
    job_name: str,
    which: str,
    placement: str,
    steps: int,
    repeat: int,
    ranks: int,
    command_line: bool,
    faults: tuple[str, ...],
    built_in: bool,
    max_idle: float | None,
    require_reachable: bool,
    backend: str,
    context: str,
    image: str,
    write_kind: str,
    named: bool,
    color: str,
    quiet: bool,
    no_progress: bool,
) -> int:
    """
    Build a pocket cluster of network namespaces from the same files `check` reads, run a data-parallel training loop in it
    over real sockets under the real policies, and measure what would happen.

    Traffic stays inside the namespaces; everything is removed at the end, whatever the end is.
    """
    from stallscope.cli.console import say
    from stallscope.cli.ending import orderly
    from stallscope.cli.outputs import emit_views, look_for_stdout, parse_outputs
    from stallscope.cli.rehearse_scenes import scenes_of
    from stallscope.collective.workload import workload
    from stallscope.lab.faults.registry import describe_faults, parse_faults
    from stallscope.lab.run import Request, rehearse
    from stallscope.render.rehearsal import views

    if faults == ("list",):
        click.echo(describe_faults(), nl=False)
        return exitcodes.CLEAN
    if options.paths == (CLEAN_WORD,) and not Path(CLEAN_WORD).exists():
        return _clean()
    if not options.paths:
        raise UsageError("nothing to read: no PATH given", hint="stallscope rehearse PATH --nodes nodes.yaml")
    outputs = parse_outputs(output, FORMATS)
    parse_faults(faults)
    paths, words = _split_command(options, command_line)
    judgement, judged = _judge(options, paths, job_name)
    if write_kind:
        from stallscope.cli import rehearse_cluster

        rehearse_cluster.write_kind(write_kind, judgement.topology)
        return exitcodes.CLEAN
    tell = say if not (quiet or no_progress) else _silent
    look = look_for_stdout(color, ctx.find_root().command_path)
    if backend != "pocket":
        from stallscope.cli.rehearse_cluster import rehearse_cluster as on_cluster

        with orderly():
            found = on_cluster(backend, context, judgement, judged, ranks=ranks, image=image, say=tell)
        emit_views(outputs, views(found, color=look.color, width=look.width))
        return exit_code(found, max_idle=None, require_reachable=require_reachable)
    scenes, said = scenes_of(options, paths, judgement, judged, which, placement, ranks)
    if prices.overlap:
        said += ("the lab hides no communication behind compute: --overlap is for the model of `check`",)
    request = Request(
        job=judged.job.ref,
        scenes=scenes,
        profile=prices.profile,
        workload=workload(judged.job, gradient_bytes=prices.gradient_bytes, compute_seconds=prices.compute_seconds),
        steps=steps,
        repeat=repeat,
        command=words,
        faults=faults,
        prefer_torch=not built_in,
        named=named,
        said=said,
    )
    with orderly():
        report = rehearse(request, tell)
    emit_views(outputs, views(report, color=look.color, width=look.width))
    return exit_code(report, max_idle=max_idle, require_reachable=require_reachable)


def exit_code(report: Rehearsal, *, max_idle: float | None, require_reachable: bool) -> int:
    """
    ERROR when a real connect contradicts its verdict; FINDINGS when the gated placement (the first) stalled, is idle
    above `max_idle` percent, or has a blocked edge although all are required.
    """
    if report.disagreements:
        return exitcodes.ERROR
    gated = report.results[0]
    failing = (
        gated.stalled
        or (max_idle is not None and (not gated.timed or 100 * gated.idle.median > max_idle))
        or (require_reachable and bool(gated.denied))
    )
    return exitcodes.FINDINGS if failing else exitcodes.CLEAN


def _silent(_: str) -> None:
    return


def _clean() -> int:
    from stallscope.lab.state import sweep

    removed = sweep()
    for line in removed:
        click.echo(f"removed {line}")
    if not removed:
        click.echo("nothing to clean: no run of ours left anything")
    return exitcodes.CLEAN


def _split_command(options: InputOptions, wanted: bool) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """With --exec, the words after ``--`` are the command; click hands them over as further paths."""
    if not wanted:
        return options.paths, ()
    words = sys.argv[sys.argv.index("--") + 1 :] if "--" in sys.argv else []
    if not words or options.paths[-len(words) :] != tuple(words):
        raise UsageError("--exec: no command", hint="stallscope rehearse PATH --exec -- python train.py")
    paths = options.paths[: -len(words)]
    if not paths:
        raise UsageError("nothing to read: no PATH given", hint="stallscope rehearse PATH --exec -- python train.py")
    return paths, tuple(words)


def _judge(options: InputOptions, paths: tuple[str, ...], job_name: str) -> tuple[Judgement, JobJudgement]:
    from dataclasses import replace

    from stallscope.cli.pipeline import judged
    from stallscope.cli.unread import refuse_unread

    judgement = judged(replace(options, paths=paths)).judgement
    refuse_unread(judgement.inputs)
    return judgement, pick(judgement, job_name)


def pick(judgement: Judgement, job_name: str) -> JobJudgement:
    """The one job to rehearse. Raises LoadError, NothingToCheck and UsageError."""
    from stallscope.cli.unread import no_job

    jobs = [j for j in judgement.jobs if job_name in ("", j.job.name, j.job.ref)]
    if not jobs:
        raise no_job(judgement.inputs, job_name)
    if len(jobs) > 1:
        known = ", ".join(dict.fromkeys(j.job.ref for j in judgement.jobs))
        raise UsageError(f"{len(jobs)} jobs; a rehearsal runs one", hint=f"choose with --job: {known}")
    return jobs[0]
