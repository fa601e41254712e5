"""``completion``: scripts for the shells click knows."""

from __future__ import annotations

import click

from stallscope.cli.verb import VerbCommand

EPILOG = """\
Examples:
  source <({prog} completion bash)
  {prog} completion zsh > "${fpath[1]}/_stallscope"
  {prog} completion fish > ~/.config/fish/completions/stallscope.fish
"""


@click.command(cls=VerbCommand, epilog=EPILOG)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(ctx: click.Context, shell: str) -> int:
    """Print the completion script for a shell."""
    from click.shell_completion import get_completion_class

    from stallscope.cli.console import write

    kind = get_completion_class(shell)
    assert kind is not None  # noqa: S101  click has these three
    write(kind(ctx.find_root().command, {}, "stallscope", "_STALLSCOPE_COMPLETE").source() + "\n")
    return 0
