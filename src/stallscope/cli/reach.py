"""``reach``: who may reach whom, on which port, and the line that decides."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from stallscope.cli import exitcodes
from stallscope.cli.options import InputOptions, inputs, output_of
from stallscope.cli.verb import VerbCommand
from stallscope.errors import UsageError
from stallscope.model.traffic import Outcome, PortRange, Protocol

if TYPE_CHECKING:
    from stallscope.judge.result import JobJudgement

EPILOG = """\
Examples:
  {prog} reach deploy/                     the matrix of every job
  {prog} reach deploy/ -o html=reach.html
  {prog} reach deploy/ --from Worker --to Master --port 23456
  {prog} reach deploy/ --from Worker --to cluster-dns --port UDP/53

Exit status:
  0  every needed flow is allowed
  1  one is denied
  2  wrong usage, or unreadable input
  3  no job in the input
"""

FORMATS = ("text", "json", "md", "html")
MAX_PORT = 65535


@click.command(cls=VerbCommand, epilog=EPILOG)
@inputs
@click.option("--from", "source", metavar="ROLE", default="", help="A role or pod of the job, or an outside end.")
@click.option("--to", "destination", metavar="ROLE", default="", help="The other end.")
@click.option("--port", metavar="[PROTO/]N[-M]", default="", help="Port or range; TCP unless UDP/ or SCTP/ is put before.")
@click.option("--job", "job_name", metavar="NAME", default="", help="Only this job.")
@output_of(*FORMATS)
def command(options: InputOptions, source: str, destination: str, port: str, job_name: str, output: tuple[str, ...]) -> int:
    """
    Who may reach whom: the role x role matrix of each job, or the whole reasoning for one pair.

    Outside ends are cluster-dns, api-server, prometheus and operator.
    """
    from stallscope.cli import unread
    from stallscope.cli.outputs import emit_views, parse_outputs
    from stallscope.cli.pipeline import judged
    from stallscope.cli.sources import FileSources
    from stallscope.judge.ask import ask
    from stallscope.render import reach

    if bool(source) != bool(destination):
        raise UsageError("--from and --to go together", hint="stallscope reach PATH --from Worker --to Master --port 23456")
    if port and not source:
        raise UsageError("--port asks about one pair", hint="add --from and --to")
    ports = parse_ports(port or "TCP/1-65535")
    outputs = parse_outputs(output, FORMATS)
    judgement = judged(options, FileSources()).judgement
    jobs = [j for j in judgement.jobs if job_name in ("", j.job.name, j.job.ref)]
    if not jobs:
        raise unread.no_job(judgement.inputs, job_name)
    broken = unread.tell(judgement.inputs.problems)
    if not source:
        emit_views(outputs, _matrix_views(jobs))
        return _exit_code(broken, any(j.with_outcome(Outcome.DENIED) for j in jobs))
    answers = [flow for job in jobs for flow in ask(judgement, job, source, destination, ports)]
    views = {
        "text": lambda: "\n".join(reach.explain(f) for f in answers),
        "md": lambda: "```\n" + "\n".join(reach.explain(f) for f in answers) + "```\n",
        "json": lambda: _json({"schemaVersion": "1", "flows": [reach.flow_data(f) for f in answers]}),
        "html": lambda: reach.html_reasoning(answers),
    }
    emit_views(outputs, views)
    return _exit_code(broken, any(f.verdict.outcome is Outcome.DENIED for f in answers))


def _exit_code(broken: bool, denied: bool) -> int:
    if broken:
        return exitcodes.ERROR
    return exitcodes.FINDINGS if denied else exitcodes.CLEAN


def parse_ports(text: str) -> PortRange:
    """``23456``, ``UDP/53`` or ``TCP/30000-40000`` as a range. Raises UsageError."""
    protocol, _, numbers = text.rpartition("/")
    first, _, last = numbers.partition("-")
    name = (protocol or "TCP").upper()
    if name not in Protocol.__members__ or not first.isdigit() or not (last or first).isdigit():
        raise UsageError(f"--port: '{text}' is no port", hint="write 23456, UDP/53 or TCP/30000-40000")
    low, high = int(first), int(last or first)
    if not 1 <= low <= high <= MAX_PORT:
        raise UsageError(f"--port: '{text}' is outside 1-{MAX_PORT}", hint="write 23456, UDP/53 or TCP/30000-40000")
    return PortRange(low, high, Protocol(name))


def _matrix_views(jobs: Sequence[JobJudgement]) -> Mapping[str, Callable[[], str]]:
    from stallscope.render import reach

    return {
        "text": lambda: reach.text(jobs),
        "md": lambda: reach.markdown(jobs),
        "html": lambda: reach.html(jobs),
        "json": lambda: _json(reach.data(jobs)),
    }


def _json(data: Any) -> str:
    import json

    return json.dumps(data, indent=2) + "\n"
