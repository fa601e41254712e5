"""``jobs``: the training jobs in manifests, as their controllers will expand them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

from stallscope.cli import exitcodes
from stallscope.cli.options import InputOptions, inputs, output_of
from stallscope.cli.verb import VerbCommand

if TYPE_CHECKING:
    from stallscope.judge.inputs import Problem
    from stallscope.model.traffic import Flow
    from stallscope.model.workload import Pod, Role, TrainingJob

EPILOG = """\
Examples:
  {prog} jobs deploy/
  {prog} jobs job.yaml -o json | jq '.jobs[].pods[].labels'
  helm template chart | {prog} jobs -

Exit status:
  0  jobs were found
  2  wrong usage, or unreadable input
  3  no job in the input
"""
FORMATS = ("text", "json")


@click.command(cls=VerbCommand, epilog=EPILOG)
@inputs
@click.option("--flows", is_flag=True, help="Also list every connection a job needs.")
@output_of(*FORMATS)
def command(options: InputOptions, flows: bool, output: tuple[str, ...]) -> int:
    """
    List the training jobs in manifests: roles, pods, ranks, and where the ranks meet.

    Nothing is judged; this is what `check` starts from. -o json has every pod with the labels it will carry.
    """
    from stallscope.cli.outputs import emit_views, parse_outputs
    from stallscope.cli.pipeline import read
    from stallscope.cli.unread import no_job
    from stallscope.judge.inputs import ProblemKind

    outputs = parse_outputs(output, FORMATS)
    found = read(options)
    if not found.jobs and not found.problems:
        raise no_job(found)
    views = {
        "text": lambda: text(found.jobs, found.problems, flows=flows),
        "json": lambda: json_text(found.jobs, found.problems),
    }
    emit_views(outputs, views)
    if any(p.kind is ProblemKind.UNREADABLE for p in found.problems):
        return exitcodes.ERROR
    return exitcodes.CLEAN if found.jobs else exitcodes.NOTHING


def text(jobs: Sequence[TrainingJob], problems: Sequence[Problem], *, flows: bool = False) -> str:
    """A block a job: a headline, a line a role, then where ranks meet, the gang and the notes."""
    blocks = ["\n".join(_block(job, flows=flows)) for job in jobs]
    if problems:
        blocks.append("\n".join(["problems:", *(line for p in problems for line in _problem(p))]))
    return "\n\n".join(blocks) + "\n"


def _problem(problem: Problem) -> list[str]:
    hint = [f"    hint: {problem.hint}"] if problem.hint else []
    return [f"  {problem.location}: {problem.message}", *hint]


def _block(job: TrainingJob, *, flows: bool) -> list[str]:
    pods = sum(r.replicas for r in job.roles)
    count = _count(pods, "pod") + (f" in each of {job.copies} groups" if job.copies > 1 else "")
    ranks = f", {_count(job.world_size, 'rank')}" if job.world_size else ""
    lines = [f"{job.ref}  {count}{ranks}{'' if job.distributed else ', not distributed'}", f"  {job.source.at('metadata')}"]
    lines += _table([("  role", "does", "pods", "ranks a pod", "names"), *(_row(job, r) for r in job.roles)])
    if job.rendezvous is not None:
        where = f"{job.rendezvous.role} {job.rendezvous.index}" if job.rendezvous.role else "outside the job"
        lines.append(f"  ranks meet at {job.rendezvous.address}:{job.rendezvous.port} ({where})")
    if job.gang is not None:
        lines.append(f"  started together by {job.gang.system}{_gang(job)}")
    if flows:
        lines += [f"  needs {line}" for line in dict.fromkeys(map(_flow, job.flows))]
    lines += [f"  note: {note}" for note in job.notes]
    lines += [f"  not understood: {part}" for part in job.unsupported]
    return lines


def _row(job: TrainingJob, role: Role) -> tuple[str, ...]:
    ranks = (
        str(role.ranks_per_pod) if role.ranks_per_pod and any(p.rank is not None for p in job.pods_of(role.name)) else "-"
    )
    return (f"  {role.name}", str(role.kind), str(role.replicas), ranks, _names(job.pods_of(role.name)))


def _names(pods: Sequence[Pod]) -> str:
    if len(pods) <= 2:
        return ", ".join(p.name for p in pods)
    return f"{pods[0].name} … {pods[-1].name}"


def _table(rows: Iterable[tuple[str, ...]]) -> list[str]:
    table = list(rows)
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]) - 1)]
    return ["  ".join((*(c.ljust(w) for c, w in zip(row, widths, strict=False)), row[-1])).rstrip() for row in table]


def _gang(job: TrainingJob) -> str:
    gang = job.gang
    parts = [f"at least {gang.min_count} pods"] if gang and gang.min_count is not None else []
    if gang and gang.topology_key:
        parts.append(f"{gang.mode} {gang.topology_key}".strip())
    return f" ({', '.join(parts)})" if parts else ""


def _flow(flow: Flow) -> str:
    ports = ", ".join(map(str, flow.ports))
    any_port = "any of " if flow.any_port else ""
    at = f" {flow.destination_index}" if flow.destination_index is not None else ""
    return f"{flow.source} -> {flow.destination}{at}  {any_port}{ports}  {flow.kind}{'' if flow.required else ' (if used)'}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def json_text(jobs: Sequence[TrainingJob], problems: Sequence[Problem]) -> str:
    """The same as JSON: every pod with rank, labels and host names, every flow with its reason."""
    import json

    data = {
        "schemaVersion": "1",
        "jobs": [job_data(j) for j in jobs],
        "problems": [
            {"kind": str(p.kind), "message": p.message, "hint": p.hint, "location": str(p.location)} for p in problems
        ],
    }
    return json.dumps(data, indent=2) + "\n"


def job_data(job: TrainingJob) -> dict[str, Any]:
    """One job as plain data."""
    meeting = job.rendezvous
    return {
        "kind": job.kind,
        "apiVersion": job.source.api_version,
        "namespace": job.namespace,
        "name": job.name,
        "location": str(job.source.at("metadata")),
        "distributed": job.distributed,
        "worldSize": job.world_size,
        "groups": job.copies,
        "schedulerName": job.scheduler_name,
        "groupLabels": dict(job.group_labels),
        "rendezvous": None
        if meeting is None
        else {
            "address": meeting.address,
            "port": meeting.port,
            "role": meeting.role or None,
            "index": meeting.index if meeting.role else None,
            "backend": meeting.backend,
        },
        "gang": None
        if job.gang is None
        else {
            "system": job.gang.system,
            "minCount": job.gang.min_count,
            "topology": job.gang.topology_key,
            "mode": job.gang.mode,
        },
        "roles": [
            {
                "name": r.name,
                "kind": str(r.kind),
                "replicas": r.replicas,
                "ranksPerPod": r.ranks_per_pod,
                "createdInStep": r.creation_order,
                "patchable": r.template.patchable,
            }
            for r in job.roles
        ],
        "pods": [
            {
                "name": p.name,
                "role": p.role,
                "index": p.index,
                "rank": p.rank,
                "labels": dict(p.labels),
                "hostNames": list(p.host_names),
            }
            for p in job.pods
        ],
        "services": [
            {
                "name": s.name,
                "selector": dict(s.selector),
                "headless": s.headless,
                "ports": list(s.ports),
                "generated": s.generated,
            }
            for s in job.services
        ],
        "flows": [
            {
                "kind": str(f.kind),
                "from": f.source,
                "to": f.destination,
                "toIndex": f.destination_index,
                "ports": [str(p) for p in f.ports],
                "anyPort": f.any_port,
                "required": f.required,
                "reason": f.reason,
            }
            for f in job.flows
        ],
        "notes": list(job.notes),
        "unsupported": list(job.unsupported),
    }
