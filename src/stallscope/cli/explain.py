"""``explain``: a rule's documentation in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from stallscope.cli.options import color_option
from stallscope.cli.verb import VerbCommand
from stallscope.errors import UsageError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from stallscope.rules.base import Rule

EPILOG = """\
Examples:
  {prog} explain STL201
  {prog} explain job-can-split -o md
"""


def _complete(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    from stallscope.rules.registry import RULES

    words = [(word, rule.slug) for rule in RULES for word in (rule.id, rule.slug)]
    return [CompletionItem(word, help=slug) for word, slug in words if word.lower().startswith(incomplete.lower())]


@click.command(cls=VerbCommand, epilog=EPILOG)
@click.argument("rule", metavar="RULE", shell_complete=_complete)
@click.option("-o", "--output", type=click.Choice(["text", "md", "json"]), default="text", show_default=True, help="Format.")
@color_option
@click.pass_context
def command(ctx: click.Context, rule: str, output: str, color: str) -> int:
    """Tell what a rule means, what it costs, and how to fix or suppress it. RULE is an id (STL201) or a slug."""
    from stallscope.cli.console import write
    from stallscope.cli.outputs import look_for_stdout
    from stallscope.render import ruledoc

    found = find_rule(rule, ctx.find_root().command_path)
    if output == "json":
        import json

        write(json.dumps(ruledoc.data(found), indent=2) + "\n")
    elif output == "md":
        write(ruledoc.markdown(found))
    else:
        write(ruledoc.text(found, look_for_stdout(color, ctx.find_root().command_path)))
    return 0


def find_rule(word: str, prog: str) -> Rule:
    """The rule of an id or slug, whatever its case. Raises UsageError with the nearest names."""
    from stallscope.rules.registry import RULES

    wanted = word.strip().strip("[]").lower()
    for rule in RULES:
        if wanted in (rule.id.lower(), rule.slug):
            return rule
    from difflib import get_close_matches

    near = get_close_matches(wanted, [x for r in RULES for x in (r.id.lower(), r.slug)], n=1)
    name = near[0].upper() if near and near[0].startswith("stl") else (near[0] if near else "")
    raise UsageError(
        f"there is no rule {word!r}" + (f"; did you mean {name}?" if name else ""), hint=f"`{prog} rules` lists them"
    )
