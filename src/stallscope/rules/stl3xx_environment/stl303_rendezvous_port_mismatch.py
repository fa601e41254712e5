"""STL303: the ranks do not agree on the rendezvous port."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stallscope.findings import Finding, Label, Severity
from stallscope.judge.result import Judgement
from stallscope.model.source import Location
from stallscope.model.workload import Role, TrainingJob
from stallscope.rules.base import Report
from stallscope.rules.support.containers import declared_ports, ranked_roles
from stallscope.rules.support.rendezvous import Endpoint, rendezvous_place, role_endpoint
from stallscope.rules.support.words import label

_REPORT = Report("STL303", "rendezvous-port-mismatch", Severity.ERROR)


def check(judgement: Judgement) -> Iterable[Finding]:
    for judged in judgement.jobs:
        job = judged.job
        if len(job.pods) < 2 or not job.distributed or job.rendezvous is None:
            continue
        stated = [(role, e) for role in ranked_roles(job) if (e := role_endpoint(job, role)) is not None and e.port]
        yield from _disagreement(job, stated) or _undeclared(job, stated)


def _disagreement(job: TrainingJob, stated: list[tuple[Role, Endpoint]]) -> list[Finding]:
    """Two roles state different ports, or one role states none and so uses the operator's."""
    host = job.rendezvous
    if host is None:
        return []
    listening = next((e for role, e in stated if role.name == host.role), None)
    port = listening.port if listening else host.port
    silent = [r for r in ranked_roles(job) if r.name not in {role.name for role, _ in stated}]
    wrong = [(role, e) for role, e in stated if e.port != port]
    if not wrong and not (silent and listening and listening.port != host.port):
        return []
    role, other_port, place = (
        (wrong[0][0].name, wrong[0][1].port, wrong[0][1].port_location)
        if wrong
        else (silent[0].name, host.port, silent[0].template.at("spec"))
    )
    labels = [label(place, f"{role} uses port {other_port}", primary=True)]
    where = rendezvous_place(job)
    if where is not None:
        labels.append(label(where, f"{host.role} listens on port {port}"))
    return [
        _REPORT.finding(
            f"{role} of {job.ref} meets on port {other_port}, but {host.role} listens on port {port}",
            labels,
            subject=job.ref,
            key=role,
            notes=(
                "what you will see: 'The client socket has timed out after ... while trying to connect to "
                f"({host.address or host.role}, {other_port})' on {role}; {host.role} waits for peers until its timeout",
            ),
            help=f"use one port for every role ({port})",
        )
    ]


def _undeclared(job: TrainingJob, stated: list[tuple[Role, Endpoint]]) -> Iterator[Finding]:
    """All roles agree, on a port the coordinator does not declare: policies by named port and hostNetwork miss it."""
    host = job.rendezvous
    if host is None or not stated:
        return
    entries = [entry for r in job.roles if r.name == host.role for entry in declared_ports(r)]
    ports = [(c, i, number) for c, i, e in entries if isinstance(number := e.get("containerPort"), int)]
    used = stated[0][1]
    if not ports or used.port in {p for _, _, p in ports}:
        return
    labels: list[Label] = [label(used.port_location, f"the ranks meet on port {used.port}", primary=True)]
    place: Location = ports[0][0].at("ports", ports[0][1], "containerPort")
    labels.append(label(place, f"{host.role} declares port {ports[0][2]}"))
    yield _REPORT.finding(
        f"{job.ref} meets on port {used.port}, which {host.role} does not declare",
        labels,
        subject=job.ref,
        key="undeclared",
        severity=Severity.INFO,
        notes=(
            "works between plain pods; but the operator still advertises the declared port, a policy that names the port "
            "does not cover the real one, and with hostNetwork the scheduler does not keep it free",
        ),
        help=f"declare containerPort: {used.port}, or use the declared port",
    )


RULE = _REPORT.rule(
    check,
    what="Roles of one job use different rendezvous ports, or a port the coordinator does not declare.",
    why="Ranks that connect to a port nobody listens on wait until their timeout (minutes to half an hour) while every "
    "GPU of the job is allocated.",
    bad="""\
Master:  args: [torchrun, --master_port=29500, train.py]
Worker:  args: [torchrun, --master_port=29501, train.py]
""",
    good="""\
Master:  args: [torchrun, --master_port=29500, train.py]
Worker:  args: [torchrun, --master_port=29500, train.py]
""",
    fix="State the port once. With an operator that sets MASTER_PORT or PET_RDZV_ENDPOINT, leave the flags out and change "
    "the declared container port instead.",
    sources=(
        "https://github.com/kubeflow/trainer/issues/2282",
        "https://github.com/pytorch/pytorch/blob/main/torch/distributed/run.py",
    ),
)
