"""STL304: the rendezvous address is loopback, or a name no pod or Service of the job answers to."""

from __future__ import annotations

from collections.abc import Iterable

from stallscope.findings import Confidence, Finding, Severity
from stallscope.judge.inputs import Inputs
from stallscope.judge.result import Judgement
from stallscope.model.workload import Role, TrainingJob
from stallscope.rules.base import Report
from stallscope.rules.support.containers import ranked_roles
from stallscope.rules.support.names import LOOPBACK, inside_cluster, is_address, resolves
from stallscope.rules.support.rendezvous import Endpoint, role_endpoint
from stallscope.rules.support.words import label, listed

_REPORT = Report("STL304", "rendezvous-address-mismatch", Severity.ERROR)


def check(judgement: Judgement) -> Iterable[Finding]:
    for judged in judgement.jobs:
        job = judged.job
        if len(job.pods) < 2 or not job.distributed:
            continue
        seen: dict[str, list[tuple[Role, Endpoint]]] = {}
        for role in ranked_roles(job):
            endpoint = role_endpoint(job, role)
            if endpoint is not None and endpoint.bare_ipv6:
                yield _bare_address(job, role, endpoint)
            elif endpoint is not None and endpoint.host:
                seen.setdefault(endpoint.host, []).append((role, endpoint))
        for host, stated in seen.items():
            yield from _one(job, host, stated, judgement.inputs)


def _one(job: TrainingJob, host: str, stated: list[tuple[Role, Endpoint]], inputs: Inputs) -> Iterable[Finding]:
    if host in LOOPBACK:
        yield from _loopback(job, host, stated)
    elif not is_address(host) and inside_cluster(host) and not resolves(host, job, inputs.objects):
        yield _unknown_name(job, host, stated)


def _loopback(job: TrainingJob, host: str, stated: list[tuple[Role, Endpoint]]) -> Iterable[Finding]:
    """Loopback is right for the one pod that hosts the store, wrong for every other pod."""
    server = job.rendezvous.role if job.rendezvous else ""
    elsewhere = [(r, e) for r, e in stated if r.name != server or r.replicas > 1]
    if not elsewhere:
        return
    role, endpoint = elsewhere[0]
    yield _REPORT.finding(
        f"{role.name} of {job.ref} meets at {host}: each of its {len(job.pods)} pods waits for peers inside itself",
        (label(endpoint.location, "loopback: every pod is its own rendezvous", primary=True),),
        subject=job.ref,
        key=role.name,
        notes=(
            "what you will see: init_process_group hangs in every pod, or 'The client socket has timed out ... while "
            f"trying to connect to ({host}, {endpoint.port or 'the port'})'",
        ),
        help=f"use the address of rank 0{_suggestion(job)}",
    )


def _unknown_name(job: TrainingJob, host: str, stated: list[tuple[Role, Endpoint]]) -> Finding:
    role, endpoint = stated[0]
    known = sorted({s.name for s in job.services})
    notes = [
        "what you will see: 'The IPv6 network addresses of "
        f"({host}, ...) cannot be retrieved (gai error: -2 - Name or service not known)', repeated until the timeout",
    ]
    if known:
        notes.insert(0, f"Services of this job: {listed(known)}")
    return _REPORT.finding(
        f"{role.name} of {job.ref} meets at {host}, a name that no pod or Service of these files answers to",
        (label(endpoint.location, "no pod or Service here has this name", primary=True),),
        subject=job.ref,
        key=f"{role.name}:{host}",
        severity=Severity.WARNING,
        confidence=Confidence.DEPENDS,
        notes=(*notes, "holds unless a Service of that name exists in the cluster and is not among the files"),
        help=f"use the name of rank 0{_suggestion(job)}, or add the Service",
    )


def _bare_address(job: TrainingJob, role: Role, endpoint: Endpoint) -> Finding:
    return _REPORT.finding(
        f"{role.name} of {job.ref} gives its rendezvous as an IPv6 address without brackets",
        (label(endpoint.location, "needs [address]:port", primary=True),),
        subject=job.ref,
        key=f"{role.name}:ipv6",
        severity=Severity.WARNING,
        confidence=Confidence.DEPENDS,
        notes=(
            "host and port cannot be told apart for certain, and literals have been reported to fail where a name works",
            "what you will see: a rendezvous that fails or times out although a plain socket to the address opens",
        ),
        help="use a DNS name, or [address]:port",
    )


def _suggestion(job: TrainingJob) -> str:
    address = job.rendezvous.address if job.rendezvous else ""
    return f" ({address})" if address and address not in LOOPBACK else ""


RULE = _REPORT.rule(
    check,
    what="The rendezvous host is localhost in a job of several pods, or a name that no pod or Service of the job has.",
    why="No two ranks ever meet. The pods stay Running and hold their GPUs until the rendezvous timeout, then restart.",
    bad="""\
args: [torchrun, --nnodes=4, --rdzv_endpoint=localhost:29500, train.py]
""",
    good="""\
args: [torchrun, --nnodes=4, --rdzv_endpoint=llm-0.llm:29500, train.py]   # pod llm-0, headless Service llm
""",
    fix="Use the DNS name of the pod that hosts rank 0: <pod>.<headless service>, or the Service the operator creates. With "
    "an operator that sets MASTER_ADDR or PET_RDZV_ENDPOINT, leave the flag out.",
    sources=(
        "https://github.com/pytorch/pytorch/issues/73380",
        "https://github.com/pytorch/elastic/issues/31",
        "https://github.com/pytorch/pytorch/issues/107563",
        "https://github.com/kubeflow/pytorch-operator/issues/313",
        "https://kubernetes.io/docs/concepts/services-networking/dns-pod-service/",
    ),
)
