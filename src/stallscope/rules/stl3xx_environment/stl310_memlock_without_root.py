"""STL310: IPC_LOCK is added for RDMA, but the container does not run as root, so the capability has no effect."""

from __future__ import annotations

from collections.abc import Iterable

from stallscope.findings import Confidence, Finding, Severity
from stallscope.judge.result import Judgement
from stallscope.model.source import Location, as_list, as_map, dig
from stallscope.rules.base import Report
from stallscope.rules.support.containers import Container, rank_containers, ranked_roles
from stallscope.rules.support.words import label

_REPORT = Report("STL310", "memlock-without-root", Severity.WARNING)
_FABRIC = ("rdma/", "nvidia.com/rdma", "vpc.amazonaws.com/efa", "nvidia.com/mlnx", "openshift.io/")


def check(judgement: Judgement) -> Iterable[Finding]:
    for judged in judgement.jobs:
        job = judged.job
        for role in ranked_roles(job):
            for container in rank_containers(role):
                added = as_list(dig(container.body, "securityContext", "capabilities", "add"))
                user = _user(container)
                if "IPC_LOCK" not in added or not user or not _fabric(container):
                    continue
                where = container.at("securityContext", "capabilities", "add")
                labels = [label(where, "has no effect for a user other than root", primary=True)]
                labels.append(label(_user_place(container), f"runs as user {user}"))
                yield _REPORT.finding(
                    f"{role.name} of {job.ref} adds IPC_LOCK for RDMA but runs as user {user}, where it has no effect",
                    labels,
                    subject=job.ref,
                    key=f"{role.name}:{container.name}",
                    confidence=Confidence.DEPENDS,
                    notes=(
                        "capabilities of a user other than root are in the bounding set only, not in the effective set; the "
                        "locked-memory limit of the node's runtime stays in force",
                        "what you will see: 'Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory', or a "
                        "silent fall-back to sockets",
                    ),
                    help="run as root with IPC_LOCK, or raise the memlock limit in the node's container runtime",
                )


def _fabric(container: Container) -> bool:
    limits = as_map(dig(container.body, "resources", "limits"))
    return any(str(name).startswith(_FABRIC) for name in limits)


def _user(container: Container) -> int:
    """The user the container runs as, when the manifest states one; 0 for root or not stated."""
    for value in (
        dig(container.body, "securityContext", "runAsUser"),
        dig(container.role.template.spec, "securityContext", "runAsUser"),
    ):
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    return 0


def _user_place(container: Container) -> Location:
    if dig(container.body, "securityContext", "runAsUser") is not None:
        return container.at("securityContext", "runAsUser")
    return container.role.template.at("spec", "securityContext", "runAsUser")


RULE = _REPORT.rule(
    check,
    what="A rank asks for RDMA devices and adds the capability IPC_LOCK, but runs as a user other than root.",
    why="RDMA must pin memory. The limit is often 8 MiB, registration fails, and NCCL stops or falls back to sockets at a "
    "tenth of the bandwidth.",
    bad="""\
securityContext:
  runAsUser: 1000
  capabilities: {add: [IPC_LOCK]}
""",
    good="""\
securityContext:
  runAsUser: 0
  capabilities: {add: [IPC_LOCK]}
""",
    fix="Run the ranks as root with IPC_LOCK, or lift the memlock limit in the container runtime of the GPU nodes.",
    sources=(
        "https://github.com/NVIDIA/nvcf/pull/1354",
        "https://github.com/NVIDIA/nccl-tests/issues/206",
    ),
)
