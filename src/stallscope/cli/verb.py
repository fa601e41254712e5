"""The command class of the verbs: examples stay as written and name the program as the user called it."""

from __future__ import annotations

import click


class VerbCommand(click.Command):
    """A click command whose `epilog` is printed line by line, with ``{prog}`` replaced (``kubectl stallscope``)."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if self.epilog:
            formatter.write("\n" + self.epilog.replace("{prog}", ctx.find_root().command_path).rstrip() + "\n")
