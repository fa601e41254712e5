"""STL309: pods on the host network that may share a node and bind the same port."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stallscope.findings import Confidence, Finding, Severity
from stallscope.judge.result import JobJudgement, Judgement
from stallscope.model.topology import HOSTNAME, Topology, is_accelerator
from stallscope.model.workload import Role, TrainingJob
from stallscope.rules.base import Report
from stallscope.rules.support.containers import accelerators, declared_ports, host_network, ranked_roles
from stallscope.rules.support.rendezvous import role_endpoint
from stallscope.rules.support.scheduling import PodTerm, labels_of, pod_terms
from stallscope.rules.support.words import label

_REPORT = Report("STL309", "host-network-port-clash", Severity.WARNING)


def check(judgement: Judgement) -> Iterable[Finding]:
    for judged in judgement.jobs:
        yield from _within(judged, judgement.topology)
    yield from _between(judgement.jobs)


def _port(job: TrainingJob) -> int:
    host = job.rendezvous
    if host is None:
        return 0
    server = next((r for r in job.roles if r.name == host.role), None)
    stated = role_endpoint(job, server) if server else None
    return stated.port if stated and stated.port else host.port


def _within(judged: JobJudgement, topology: Topology | None) -> Iterator[Finding]:
    """Ranks of one role all open the port (torchrun agents, PyTorchJob's declared port) and may share a node."""
    job = judged.job
    port = _port(job)
    for role in ranked_roles(job):
        if not port or not host_network(role) or role.replicas < 2 or _kept_apart(job, role, topology):
            continue
        if any(isinstance(e.get("containerPort"), int) for _, _, e in declared_ports(role)):
            continue  # each declared port of a hostNetwork pod is a host port, and NodePorts keeps pods with the same apart
        yield _REPORT.finding(
            f"{role.replicas} {role.name} pods of {job.ref} use the host network and may share a node and port {port}",
            (label(role.template.at("spec", "hostNetwork"), "one port space per node", primary=True),),
            subject=job.ref,
            key=role.name,
            severity=Severity.INFO,
            confidence=Confidence.DEPENDS,
            notes=_NOTES,
            help=f"declare containerPort: {port}, so that the scheduler keeps the pods apart",
        )


def _between(jobs: tuple[JobJudgement, ...]) -> Iterator[Finding]:
    seen: dict[int, tuple[TrainingJob, Role]] = {}
    for judged in jobs:
        job = judged.job
        port = _port(job)
        role = next((r for r in ranked_roles(job) if job.rendezvous and r.name == job.rendezvous.role), None)
        if role is None or not port or not host_network(role):
            continue
        if port in seen and seen[port][0].ref != job.ref:
            other, other_role = seen[port]
            yield _REPORT.finding(
                f"{job.ref} and {other.ref} both meet on port {port} of the host network",
                (
                    label(role.template.at("spec", "hostNetwork"), "shares the node's ports", primary=True),
                    label(other_role.template.at("spec", "hostNetwork"), f"so does {other.ref}"),
                ),
                subject=job.ref,
                key=other.ref,
                confidence=Confidence.DEPENDS,
                notes=_NOTES,
                help="give each job its own port",
            )
        seen.setdefault(port, (job, role))


_NOTES = (
    "what you will see: 'The server socket has failed to listen on any local network address ... EADDRINUSE', or worse: "
    "ranks of one job join the other's store",
)


def _kept_apart(job: TrainingJob, role: Role, topology: Topology | None) -> bool:
    """True when anti-affinity on the host name, or a pod as large as a node, keeps the role's pods on different nodes."""
    own = labels_of(job, role)
    if any(t.topology_key == HOSTNAME and t.matches(own, job.namespace, job.namespace) for t in _anti(role)):
        return True
    wanted = accelerators(role)
    if not wanted:
        return False
    if topology is None:
        return wanted >= 8
    most = max((sum(a for r, a in n.allocatable.items() if is_accelerator(r)) for n in topology.nodes), default=0)
    return wanted * 2 > most


def _anti(role: Role) -> tuple[PodTerm, ...]:
    return pod_terms(role, "podAntiAffinity")


RULE = _REPORT.rule(
    check,
    what="Pods with hostNetwork: true can land on one node and bind the same port: replicas of one role (info), or two "
    "jobs with the same rendezvous port (warning).",
    why="On the host network the port space belongs to the node. The second process fails to bind, or ranks of one job "
    "talk to the store of the other.",
    bad="""\
# job llm-a and job llm-b
hostNetwork: true
args: [torchrun, --master_port=29500, train.py]
""",
    good="""\
# job llm-b
hostNetwork: true
args: [torchrun, --master_port=29501, train.py]
ports:
  - containerPort: 29501     # lets the scheduler keep the port free
""",
    fix="One port per job; declare it as containerPort, so that kube-scheduler's NodePorts filter sees it.",
    sources=(
        "https://github.com/kubeflow/trainer/issues/1797",
        "https://github.com/ray-project/kuberay/issues/1738",
    ),
)
