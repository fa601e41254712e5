"""The command line: a table of verbs, each imported only when it is called."""

from __future__ import annotations

import gc
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import PurePath
from typing import NamedTuple

import click

from stallscope import __version__
from stallscope.cli import exitcodes
from stallscope.cli.console import say
from stallscope.cli.failure import guarded


class Verb(NamedTuple):
    """A verb: the module holding a click command named ``command``, the heading it stands under, and one line."""

    module: str
    group: str
    help: str


BEFORE, PROVE, LEARN, SETUP = "Before the merge", "Fix and prove", "Understand", "Set up"

#: Verbs in the order of the help. One whose module is not installed is hidden.
VERBS: dict[str, Verb] = {
    "check": Verb("stallscope.cli.check", BEFORE, "Judge manifests: placement, policies, cost. No network access."),
    "jobs": Verb("stallscope.cli.jobs", BEFORE, "List the training jobs in manifests: roles, ranks, ports."),
    "reach": Verb("stallscope.cli.reach", BEFORE, "Who may reach whom, on which port, and the rule that decides."),
    "map": Verb("stallscope.cli.map", BEFORE, "Draw jobs, zones and denied edges."),
    "fix": Verb("stallscope.cli.fix", PROVE, "Show the patch for what check finds, proved; --write applies it."),
    "rehearse": Verb("stallscope.cli.rehearse", PROVE, "Run the job's shape in a pocket cluster on this machine."),
    "bench": Verb("stallscope.cli.bench", PROVE, "Make labelled records of stalled and slow jobs, fault by fault."),
    "explain": Verb("stallscope.cli.explain", LEARN, "What a rule means, what it costs, how to fix or suppress it."),
    "rules": Verb("stallscope.cli.rules", LEARN, "List the rules."),
    "completion": Verb("stallscope.cli.completion", SETUP, "Print the completion script for bash, zsh or fish."),
    "version": Verb("stallscope.cli.version", SETUP, "Print the version and what it runs on."),
}

EXAMPLES = """\
Examples:
  {prog} check deploy/             every manifest below it
  {prog} check job.yaml policy.yaml --nodes nodes.yaml
  helm template chart | {prog} check -
  {prog} explain STL201
"""


class Lazy(click.Group):
    """A group that knows its verbs by name and imports the one that is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return [name for name, verb in VERBS.items() if find_spec(verb.module)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        verb = VERBS.get(cmd_name)
        if verb is None or not find_spec(verb.module):
            return None
        command = import_module(verb.module).command
        assert isinstance(command, click.Command)  # noqa: S101  a verb module's contract
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            raise click.UsageError(f"no such command: {args[0]}{self._instead(ctx, args[0])}", ctx)
        return super().resolve_command(ctx, args)

    def _instead(self, ctx: click.Context, word: str) -> str:
        """What the user may have meant: a verb spelt alike, or `check` when the word is a file."""
        from difflib import get_close_matches
        from pathlib import Path

        near = get_close_matches(word, self.list_commands(ctx), n=1)
        if near:
            return f"; did you mean `{near[0]}`?"
        try:
            return f"; did you mean `{ctx.command_path} check {word}`?" if Path(word).exists() else ""
        except (OSError, ValueError):
            return ""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.format_commands(ctx, formatter)
        click.Command.format_options(self, ctx, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        present = set(self.list_commands(ctx))
        for group in (BEFORE, PROVE, LEARN, SETUP):
            rows = [(name, verb.help) for name, verb in VERBS.items() if verb.group == group and name in present]
            if rows:
                with formatter.section(group):
                    formatter.write_dl(rows)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write("\n" + EXAMPLES.format(prog=ctx.command_path))


@click.group(
    cls=Lazy,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    subcommand_metavar="COMMAND …",
    options_metavar="",
    invoke_without_command=True,
)
@click.version_option(__version__, message="stallscope %(version)s")
@click.pass_context
def cli(ctx: click.Context) -> int:
    """Finds silent stalls of distributed training on Kubernetes before the merge."""
    if ctx.invoked_subcommand is None:
        say(ctx.get_help())
        return exitcodes.ERROR
    return exitcodes.CLEAN


def program_name(path: str) -> str:
    """How the user called the program: ``kubectl stallscope`` as a kubectl plugin, else ``stallscope``."""
    return "kubectl stallscope" if PurePath(path).name.startswith("kubectl-") else "stallscope"


def run(args: list[str] | None = None, prog: str = "stallscope") -> int:
    """Run one command line; the exit code."""

    def call() -> int:
        result = cli.main(args=args, prog_name=prog, complete_var="_STALLSCOPE_COMPLETE", standalone_mode=False)
        return result if isinstance(result, int) else exitcodes.CLEAN

    return guarded(call, prog)


def main() -> None:
    """Entry point of both console scripts."""
    # a dump of a cluster is millions of objects and no cycles: the usual collector spends a third of a run walking them
    gc.set_threshold(200_000, 50, 1000)
    code = run(prog=program_name(sys.argv[0]))
    gc.freeze()  # nor look for garbage in them once more on the way out
    sys.exit(code)
