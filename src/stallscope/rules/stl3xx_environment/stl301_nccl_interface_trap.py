"""STL301: NCCL_SOCKET_IFNAME or GLOO_SOCKET_IFNAME picks an interface that cannot carry the job."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stallscope.findings import Confidence, Finding, Severity
from stallscope.judge.result import Judgement
from stallscope.model.workload import Role, TrainingJob
from stallscope.rules.base import Report
from stallscope.rules.support.containers import host_network
from stallscope.rules.support.settings import Setting, job_settings
from stallscope.rules.support.words import label

_REPORT = Report("STL301", "nccl-interface-trap", Severity.WARNING, fixable=True)
_NCCL, _GLOO = "NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"
#: Interfaces that exist on a node but never inside a pod of the pod network.
_NODE_ONLY = ("docker", "cni", "virbr", "cilium", "flannel", "cali", "eno", "enp", "ens", "bond", "br-", "wlan")
#: Annotations and resources that give a pod further interfaces: names other than eth0 may then exist.
_EXTRA_NETWORKS = ("k8s.v1.cni.cncf.io/networks", "networking.gke.io/interfaces", "v1.multus-cni.io/default-network")


def check(judgement: Judgement) -> Iterable[Finding]:
    for judged in judgement.jobs:
        job = judged.job
        if len(job.pods) < 2 or not job.distributed:
            continue
        for role, found in job_settings(job, _NCCL, _GLOO):
            yield from _one(job, role, found)


def _one(job: TrainingJob, role: Role, found: Setting) -> Iterator[Finding]:
    problem = _gloo_problem(found.value) if found.name == _GLOO else None
    problem = problem or _problem(role, found)
    if problem is None:
        return
    severity, why, sees, help_ = problem
    yield _REPORT.finding(
        f"{found.name}={found.value} in {role.name} of {job.ref} {why}",
        (label(found.location, f"{found.name} is set here", primary=True),),
        subject=job.ref,
        key=f"{role.name}:{found.name}",
        severity=severity,
        confidence=Confidence.CERTAIN if severity is Severity.ERROR else Confidence.DEPENDS,
        notes=(f"what you will see: {sees}",),
        help=help_,
        fixable=found.by == "env",
    )


_Problem = tuple[Severity, str, str, str]


def _gloo_problem(value: str) -> _Problem | None:
    """Gloo takes exact interface names, comma separated: no prefix list, no ^, no = (torch ProcessGroupGloo)."""
    if value.startswith(("^", "=")):
        return (
            Severity.ERROR,
            "uses NCCL's '^' or '=' syntax, which Gloo does not know: it looks for an interface of that very name",
            "'Unable to find address for: ...' from ProcessGroupGloo at init_process_group",
            "give Gloo the exact interface name, e.g. GLOO_SOCKET_IFNAME=eth0",
        )
    return None


def _problem(role: Role, found: Setting) -> _Problem | None:
    excludes, names = _parse(found.value)
    if excludes:
        return None if _excludes_loopback(names) else _loopback_eligible(names)
    if names and all(n == "lo" for n in names):
        return (
            Severity.ERROR,
            "is the loopback interface, which no other pod can reach",
            "'Call to connect ... failed: Connection refused' at 127.0.0.1, then init_process_group hangs",
            f"use the pod's interface: {found.name}=eth0, or remove the variable",
        )
    hidden = [n for n in names if n.startswith(_NODE_ONLY)]
    if hidden and len(hidden) == len(names) and not host_network(role) and not _has_extra_networks(role):
        return (
            Severity.WARNING,
            "names an interface of the node; a pod on the pod network has eth0 and lo only",
            "'Bootstrap : no socket interface found' (NCCL) or 'Unable to find address for' (Gloo)",
            f"use {found.name}=eth0, or hostNetwork if the node's interface is really wanted",
        )
    if hidden and any(n.startswith("docker") for n in hidden) and host_network(role):
        return (
            Severity.WARNING,
            "is the Docker bridge, which has the same address on every node",
            "ranks connect to themselves instead of their peers: 'Connection refused' or a hang at init",
            f"name the node's network interface in {found.name}",
        )
    return None


def _parse(value: str) -> tuple[bool, list[str]]:
    """``^`` excludes, ``=`` means exact; both apply to the whole list (NCCL user guide, NCCL_SOCKET_IFNAME)."""
    excludes = value.startswith("^")
    return excludes, [n.strip() for n in value.lstrip("^").lstrip("=").split(",") if n.strip()]


def _excludes_loopback(names: list[str]) -> bool:
    return any("lo".startswith(n) or n == "lo" for n in names)


def _loopback_eligible(names: list[str]) -> _Problem:
    return (
        Severity.WARNING,
        "replaces NCCL's default exclusion of lo and docker, so loopback becomes eligible",
        "'Connection refused' at 127.0.0.1 on some ranks, usually only on part of the nodes",
        f"exclude loopback as well: ^lo,{','.join(names)}",
    )


def _has_extra_networks(role: Role) -> bool:
    return any(key in role.template.annotations for key in _EXTRA_NETWORKS)


RULE = _REPORT.rule(
    check,
    what="NCCL_SOCKET_IFNAME or GLOO_SOCKET_IFNAME selects loopback, an interface that exists only on the node, or uses "
    "a syntax the library does not understand.",
    why="The ranks advertise an address their peers cannot reach. All pods are Running and every GPU is held while "
    "init_process_group waits for a connection that cannot come.",
    bad="""\
env:
  - name: NCCL_SOCKET_IFNAME
    value: ^docker0        # an exclusion list replaces the default, so lo becomes eligible
""",
    good="""\
env:
  - name: NCCL_SOCKET_IFNAME
    value: eth0            # or ^lo,docker
""",
    fix="Use the pod's own interface (eth0 on nearly every CNI), or exclude loopback too. Names are prefixes for NCCL "
    "(eth matches eth0 and eth1; =eth0 is exact); Gloo takes exact names only. With a secondary network, name it "
    "for NCCL and keep Gloo on an interface every rank has.",
    sources=(
        "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html (NCCL_SOCKET_IFNAME)",
        "https://github.com/kubeflow/mpi-operator/issues/57",
        "https://github.com/NVIDIA/nccl/issues/286",
        "https://pytorch.org/docs/stable/distributed.html (choosing the network interface)",
    ),
)
