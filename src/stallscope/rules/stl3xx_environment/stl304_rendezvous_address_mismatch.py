"""STL304: the rendezvous address is loopback, or a name no pod or Service of the job answers to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stallscope.findings import Confidence, Finding, Label, Severity
from stallscope.judge.inputs import Inputs
from stallscope.judge.result import Judgement
from stallscope.model.workload import Role, TrainingJob
from stallscope.rules.base import Report
from stallscope.rules.support.containers import ranked_roles
from stallscope.rules.support.names import LOOPBACK, bare_name, inside_cluster, is_address, resolves
from stallscope.rules.support.rendezvous import Endpoint, role_endpoint
from stallscope.rules.support.torchrun import Torchrun, dynamic_torchrun, nameless, virtual_service
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
                yield from _torchrun(job, role, endpoint, judgement.inputs)
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


def _torchrun(job: TrainingJob, role: Role, endpoint: Endpoint, inputs: Inputs) -> Iterator[Finding]:
    """c10d's own two questions: does any node believe that it hosts the store, and do the others find rank 0's agent?"""
    launch = dynamic_torchrun(role)
    if launch is None or endpoint.host in LOOPBACK:
        return
    service = virtual_service(endpoint.host, job, inputs.objects)
    host = bare_name(endpoint.host, job.namespace)
    short, dot, _ = host.partition(".")
    of_pod = dot and any(host == bare_name(n, job.namespace) for p in job.pods for n in p.host_names)
    if not launch.hosts and service is not None:
        places = (
            label(endpoint.location, "every rank compares this host with its own names and addresses", primary=True),
            label(service.at("spec"), "a Service that is not headless has an address that is no pod's"),
        )
        yield _nobody_hosts(job, role, endpoint, places, "")
    elif not launch.hosts and launch.compares_names_only and of_pod:
        places = (
            label(endpoint.location, f"the host name of that pod is {short}, without what follows", primary=True),
            label(launch.container.at("image"), "a PyTorch that compares names only"),
        )
        yield _nobody_hosts(job, role, endpoint, places, "later PyTorch compares addresses as well")
    if not launch.known_as and nameless(job, role, inputs.objects):
        yield _unknown_agent(job, role, launch)


def _nobody_hosts(job: TrainingJob, role: Role, endpoint: Endpoint, places: tuple[Label, ...], note: str) -> Finding:
    return _REPORT.finding(
        f"{role.name} of {job.ref} meets at {endpoint.host}, and no rank will believe that this is itself: nobody hosts the "
        "store",
        places,
        subject=job.ref,
        key=f"{role.name}:nobody-hosts",
        severity=Severity.WARNING,
        confidence=Confidence.DEPENDS,
        notes=(
            *((note,) if note else ()),
            "what you will see: every rank waits as a client: 'The client socket has timed out' or "
            "RendezvousConnectionError",
        ),
        help="give the host name of rank 0's pod under a headless Service (pod.service), or --rdzv_conf is_host=1 on rank 0",
    )


def _unknown_agent(job: TrainingJob, role: Role, launch: Torchrun) -> Finding:
    return _REPORT.finding(
        f"torchrun of {job.ref} announces rank 0 to the others by its host name, which they cannot look up",
        (
            label(
                launch.container.place,
                "no headless Service names these pods, and --local-addr is not set",
                primary=True,
            ),
        ),
        subject=job.ref,
        key=f"{role.name}:agent-name",
        severity=Severity.WARNING,
        confidence=Confidence.DEPENDS,
        notes=(
            "the endpoint may be right and the rendezvous done: MASTER_ADDR is then the agent's own host name",
            "what you will see: '(gai error: -2 - Name or service not known)' for a bare pod name, or a hang after the "
            "rendezvous",
        ),
        help="put the pods under a headless Service (subdomain), or pass --local-addr with the pod's address",
    )


def _suggestion(job: TrainingJob) -> str:
    address = job.rendezvous.address if job.rendezvous else ""
    return f" ({address})" if address and address not in LOOPBACK else ""


RULE = _REPORT.rule(
    check,
    what="The rendezvous host is localhost in a job of several pods, or a name that no pod or Service of the job has. "
    "With torchrun's c10d backend also: a host that no rank takes for itself (a Service that is not headless), and agents "
    "whose host name the others cannot look up.",
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
        "https://github.com/pytorch/pytorch/issues/79388",
        "https://github.com/pytorch/pytorch/issues/150532",
        "https://github.com/pytorch/pytorch/issues/107563",
        "https://github.com/kubeflow/pytorch-operator/issues/313",
        "https://kubernetes.io/docs/concepts/services-networking/dns-pod-service/",
    ),
)
