"""``map``: the zone map of each job, as written and fixed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from stallscope.cli import exitcodes
from stallscope.cli.options import InputOptions, inputs, output_of
from stallscope.cli.prices import prices
from stallscope.cli.verb import VerbCommand
from stallscope.errors import NothingToCheck, UsageError

if TYPE_CHECKING:
    from stallscope.judge.price import PriceFacts
    from stallscope.judge.result import JobJudgement, Judgement
    from stallscope.render.zonemap.scene import Scene

EPILOG = """\
Examples:
  {prog} map deploy/ --nodes nodes.yaml -o html=map.html
  {prog} map job.yaml nodes.yaml -o svg=map.svg --as-written
  {prog} map . --nodes nodes.yaml                   in the terminal

Exit status:
  0  drawn
  2  wrong usage, no nodes, or unreadable input
  3  no job in the input, or none could be placed
"""
FORMATS = ("text", "svg", "html")
Group = tuple[str, "Sequence[Scene]", Sequence[str]]


@click.command(cls=VerbCommand, epilog=EPILOG)
@inputs
@prices
@output_of(*FORMATS)
@click.option("--job", "job_name", metavar="NAME", default="", help="Only this job.")
@click.option("--as-written", is_flag=True, help="Do not draw the fixed placement beside it.")
def command(options: InputOptions, prices: PriceFacts, output: tuple[str, ...], job_name: str, as_written: bool) -> int:
    """
    Draw where each job may land: zones, nodes and ranks, with the edges that cross zones or are denied.

    The picture shows the worst placement the scheduler could choose, and the same job after `stallscope fix`.
    """
    from stallscope.cli import unread
    from stallscope.cli.outputs import emit_views, parse_outputs
    from stallscope.cli.pipeline import judged
    from stallscope.render.zonemap.page import page
    from stallscope.render.zonemap.svg import side_by_side
    from stallscope.render.zonemap.text import text

    outputs = parse_outputs(output, FORMATS)
    if not options.paths:
        raise UsageError("nothing to read: no PATH given", hint="stallscope map PATH --nodes nodes.yaml")
    before = judged(options, prices=prices).judgement
    chosen = [j for j in before.jobs if job_name in ("", j.job.name, j.job.ref)]
    if not chosen:
        raise unread.no_job(before.inputs, job_name)
    if before.topology is None:
        raise UsageError(
            "a map needs nodes: none are in the input", hint="`kubectl get nodes -o yaml > nodes.yaml`, then --nodes"
        )
    after = None if as_written else _fixed(options)
    groups = [g for j in chosen if (g := _group(j, before, after))]
    if not groups:
        raise NothingToCheck(
            f"{chosen[0].job.ref} was not placed: none of its pods fits a node", hint="`stallscope check` tells why"
        )
    if any(o.format == "svg" for o in outputs) and len(groups) > 1:
        raise UsageError(f"-o svg draws one job; there are {len(groups)}", hint=f"choose one: --job {chosen[0].job.name}")
    views = {
        "text": lambda: "\n".join(
            f"{title}\n{''.join(map(text, scenes))}{_lines(notes)}" for title, scenes, notes in groups
        ),
        "html": lambda: page("Stallscope zone map", groups),
        "svg": lambda: side_by_side(groups[0][1]) + "\n",
    }
    emit_views(outputs, views)
    return exitcodes.ERROR if unread.tell(before.inputs.problems) else exitcodes.CLEAN


def _fixed(options: InputOptions) -> Judgement:
    """The judgement of the input as `fix` would leave it."""
    from stallscope.cli import fixrun, pipeline
    from stallscope.remedy.model import Choices

    return fixrun.run(options, pipeline.gate(), Choices()).fixed.after.judgement


def _group(judged: JobJudgement, before: Judgement, after: Judgement | None) -> Group | None:
    from stallscope.render.zonemap.scene import scene

    if before.topology is None:
        return None
    zones = before.topology.zones
    drawn = [scene(judged, before.topology, title="as written: the worst reachable placement", zones=zones)]
    twin = next((j for j in after.jobs if j.job.ref == judged.job.ref), None) if after else None
    if twin is not None:
        drawn.append(scene(twin, before.topology, title="after stallscope fix", zones=zones))
    scenes = [s for s in drawn if s is not None]
    return (judged.job.ref, scenes, _price_lines(judged)) if scenes else None


def _price_lines(judged: JobJudgement) -> list[str]:
    """The modelled step of the split against one zone, and what the model started from."""
    price = judged.price
    if price is None or not price.split.cross_zone_edges:
        return []
    bill = f", ${price.dollars_per_hour:,.2f} an hour" if price.dollars_per_hour is not None else ""
    return [
        f"modelled: accelerators busy {price.split.busy_share:.0%} split, {price.together.busy_share:.0%} in one zone; "
        f"throughput -{price.throughput_loss:.0%}; "
        f"{price.split.cross_zone_bytes_per_hour() / 1e9:,.0f} GB an hour between zones{bill}",
        *(f"model input: {line}" for line in price.inputs),
    ]


def _lines(notes: Sequence[str]) -> str:
    return "".join(f"  {line}\n" for line in notes)
