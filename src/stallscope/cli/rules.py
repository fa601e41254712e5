"""``rules``: every rule in one list."""

from __future__ import annotations

import click

from stallscope.cli.options import color_option, split_commas
from stallscope.cli.verb import VerbCommand

EPILOG = """\
Examples:
  {prog} rules
  {prog} rules --select STL2 -o json
"""


@click.command(cls=VerbCommand, epilog=EPILOG)
@click.option("--select", multiple=True, metavar="RULES", help="Only these rules: ids, prefixes (STL2) or slugs.")
@click.option("-o", "--output", type=click.Choice(["text", "md", "json"]), default="text", show_default=True, help="Format.")
@color_option
@click.pass_context
def command(ctx: click.Context, select: tuple[str, ...], output: str, color: str) -> int:
    """List the rules: id, severity, slug and what each finds. `explain RULE` tells the rest."""
    from stallscope.cli.console import write
    from stallscope.cli.outputs import look_for_stdout
    from stallscope.cli.selection import parse_selection
    from stallscope.render import ruledoc
    from stallscope.rules.registry import RULES

    selection = parse_selection(split_commas(select), (), {r.id: r.slug for r in RULES})
    chosen = sorted((r for r in RULES if selection.enabled(r.id)), key=lambda r: r.id)
    if output == "json":
        import json

        write(json.dumps({"schemaVersion": "1", "rules": [ruledoc.data(r) for r in chosen]}, indent=2) + "\n")
    elif output == "md":
        write(ruledoc.index(chosen))
    else:
        write(ruledoc.table(chosen, look_for_stdout(color, ctx.find_root().command_path)))
    return 0
