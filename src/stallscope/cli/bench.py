"""``bench``: the labelled benchmark of faults, for any diagnosis to measure itself against."""

from __future__ import annotations

import click

from stallscope.cli import exitcodes
from stallscope.cli.verb import VerbCommand
from stallscope.errors import UsageError

EPILOG = """\
Examples:
  {prog} bench faults > records.jsonl
  {prog} bench faults --fault straggler:ms=100 --repeat 5 -o r.jsonl
  {prog} bench faults --fault list                  what there is

Exit status:
  0  every run ended as its fault's definition says
  1  one did not: its record is marked, and is no ground truth
  2  wrong usage, or the lab cannot be built
"""


@click.group()
def command() -> None:
    """Make labelled records of what a stalled or slow job looks like."""


@command.command(cls=VerbCommand, epilog=EPILOG, short_help="Run each fault once, or as often as said.")
@click.option(
    "--fault", "faults", multiple=True, metavar="NAME[:ARGS]", help="Only these faults, else all; `list` shows them."
)
@click.option("--ranks", type=click.IntRange(2, 16), default=4, show_default=True, help="Ranks of the small job.")
@click.option("--steps", type=click.IntRange(8, 1000), default=24, show_default=True, help="Steps of a run.")
@click.option("--repeat", type=click.IntRange(1, 1000), default=1, show_default=True, help="Records a fault.")
@click.option("--built-in", is_flag=True, help="Use the built-in ring even when torch is installed.")
@click.option("-o", "--output", metavar="FILE", default="", help="Write the records to FILE instead of standard output.")
def faults(faults: tuple[str, ...], ranks: int, steps: int, repeat: int, built_in: bool, output: str) -> int:
    """
    Run each fault on a small job in the pocket cluster and write one JSON line a run: the truth, the steps of each rank, its
    errors, and every pod's sockets some seconds after the fault struck.
    """
    import json
    from contextlib import ExitStack
    from dataclasses import asdict
    from pathlib import Path

    from stallscope.cli.console import say, write
    from stallscope.cli.ending import orderly
    from stallscope.lab.faults.bench import BenchSettings, as_expected, bench_faults
    from stallscope.lab.faults.registry import FAULTS, describe_faults, parse_faults

    if faults == ("list",):
        click.echo(describe_faults(), nl=False)
        return exitcodes.CLEAN
    armed = parse_faults(faults or tuple(FAULTS))
    settings = BenchSettings(ranks=ranks, steps=steps, repeat=repeat, prefer_torch=not built_in)
    odd = 0
    with ExitStack() as stack:
        stack.enter_context(orderly())
        try:
            file = stack.enter_context(Path(output).open("w", encoding="utf-8")) if output else None
        except OSError as error:
            raise UsageError(f"cannot write {output}: {error.strerror}") from error
        for item, record in zip([*armed] * repeat, bench_faults(armed, settings), strict=True):
            expected = as_expected(item, record)
            odd += not expected
            line = json.dumps({"schemaVersion": "1", "asExpected": expected, **asdict(record)})
            write(line + "\n", file)
            mark = "[ok]" if expected else "[x]"
            say(f"{mark} {item}: {record.label}, {record.outcome}, {record.seconds:.1f} s")
    return exitcodes.FINDINGS if odd else exitcodes.CLEAN
