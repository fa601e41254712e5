"""STL306: the rendezvous port lies where the kernel hands out ports to anybody."""

from __future__ import annotations

from collections.abc import Iterable

from stallscope.findings import Finding, Severity
from stallscope.judge.result import Judgement
from stallscope.model.traffic import EPHEMERAL
from stallscope.rules.base import Report
from stallscope.rules.support.containers import host_network, ranked_roles
from stallscope.rules.support.rendezvous import rendezvous_place, role_endpoint
from stallscope.rules.support.words import label

_REPORT = Report("STL306", "rendezvous-port-in-ephemeral-range", Severity.WARNING)


def check(judgement: Judgement) -> Iterable[Finding]:
    for judged in judgement.jobs:
        job = judged.job
        host = job.rendezvous
        if host is None or not job.distributed or len(job.pods) < 2:
            continue
        server = next((r for r in ranked_roles(job) if r.name == host.role), None)
        stated = role_endpoint(job, server) if server else None
        port = stated.port if stated and stated.port else host.port
        place = rendezvous_place(job)
        if server is None or place is None or not EPHEMERAL[0] <= port <= EPHEMERAL[1]:
            continue
        shared = host_network(server)
        yield _REPORT.finding(
            f"{job.ref} meets on port {port}, inside the ephemeral range {EPHEMERAL[0]}-{EPHEMERAL[1]}",
            (label(place, "any outgoing connection may already hold this port", primary=True),),
            subject=job.ref,
            severity=Severity.WARNING if shared else Severity.INFO,
            notes=(
                "the kernel gives these ports to outgoing connections"
                + (" of every process on the node, because the pod uses hostNetwork" if shared else " of the same pod"),
                "what you will see: now and then 'The server socket has failed to listen on any local network address ... "
                "EADDRINUSE' at start",
            ),
            help="choose a port below 32768, for example 29500",
        )


RULE = _REPORT.rule(
    check,
    what="The rendezvous port lies in Linux' default range for outgoing connections (32768-60999).",
    why="Once in a while another connection holds the port first, and the whole job fails to start: rare enough never to "
    "be found, often enough to cost nights. A warning with hostNetwork, an info otherwise.",
    bad="""\
args: [torchrun, --master_port=49152, train.py]
""",
    good="""\
args: [torchrun, --master_port=29500, train.py]
""",
    fix="Use a port below 32768.",
    sources=(
        "https://github.com/NVIDIA/enroot/issues/243",
        "https://docs.kernel.org/networking/ip-sysctl.html (ip_local_port_range)",
    ),
)
