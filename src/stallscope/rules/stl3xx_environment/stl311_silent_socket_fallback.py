"""STL311: the job asks for a fast fabric, and nothing stops NCCL from using sockets instead without a word."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stallscope.findings import Confidence, Finding, Severity
from stallscope.judge.result import Judgement
from stallscope.model.source import Location, as_list, as_map, as_str, dig
from stallscope.model.topology import is_accelerator
from stallscope.model.workload import Role, TrainingJob
from stallscope.rules.base import Report
from stallscope.rules.support.containers import Container, host_network, rank_containers, ranked_pods, ranked_roles
from stallscope.rules.support.settings import opaque, sets, setting
from stallscope.rules.support.words import label

_REPORT = Report("STL311", "silent-socket-fallback", Severity.INFO)
_FABRIC = ("rdma/", "nvidia.com/rdma", "vpc.amazonaws.com/efa")


def check(judgement: Judgement) -> Iterable[Finding]:
    for judged in judgement.jobs:
        job = judged.job
        if ranked_pods(job) < 2:
            continue
        for role in ranked_roles(job):
            found = next((f for c in rank_containers(role) if (f := _asked(c)) is not None), None)
            if found is None:
                yield from _unwired(job, role)
                continue
            resource, place = found
            yield _REPORT.finding(
                f"{role.name} of {job.ref} asks for {resource}, but without NCCL_NET a failing plugin falls back to sockets",
                (label(place, "if this cannot be used, NCCL says so in one line and goes on over TCP", primary=True),),
                subject=job.ref,
                key=role.name,
                confidence=Confidence.DEPENDS,
                notes=(
                    "what you will see: 'NET/IB : No device found.' or 'NET/OFI Could not find any optimal provider', then "
                    "'Using network Socket' and a fraction of the bandwidth",
                ),
                help="pin the transport: NCCL_NET=IB (InfiniBand, RoCE) or NCCL_NET='AWS Libfabric' (EFA)",
            )


def _unwired(job: TrainingJob, role: Role) -> Iterator[Finding]:
    """NCCL is told which HCA to use, and nothing gives the pod a device of any kind."""
    spec = role.template.spec
    paths = {as_str(dig(v, "hostPath", "path")) for v in as_list(spec.get("volumes"))}
    if any(p.startswith("/dev") for p in paths) or as_list(spec.get("resourceClaims")) or host_network(role):
        return
    for container in rank_containers(role):
        chosen = setting(container, "NCCL_IB_HCA")
        if chosen is None or opaque(container) or _has_device(container):
            continue
        yield _REPORT.finding(
            f"{role.name} of {job.ref} names the HCA {chosen.value}, but its pods ask for no RDMA device",
            (
                label(chosen.location, "NCCL looks for this device inside the pod", primary=True),
                label(container.at("resources", "limits"), "no device but accelerators"),
            ),
            subject=job.ref,
            key=role.name,
            confidence=Confidence.DEPENDS,
            notes=(
                "what you will see: 'NET/IB : No device found.', then 'Using network Socket'; or an error in a plugin",
                "holds unless a webhook or the container runtime adds the device",
            ),
            help="ask for the RDMA resource of the cluster's device plugin, or leave NCCL_IB_HCA out",
        )
        return


def _has_device(container: Container) -> bool:
    """Any extended resource beside accelerators may be the fabric; a privileged container sees every device."""
    if dig(container.body, "securityContext", "privileged") is True:
        return True
    names = {str(n) for part in ("limits", "requests") for n in as_map(dig(container.body, "resources", part))}
    return any("/" in name and not is_accelerator(name) for name in names)


def _asked(container: Container) -> tuple[str, Location] | None:
    if opaque(container) or sets(container, "NCCL_NET"):
        return None
    disabled = setting(container, "NCCL_IB_DISABLE")
    if disabled is not None and disabled.value == "1":
        return None
    for name in as_map(dig(container.body, "resources", "limits")):
        if str(name).startswith(_FABRIC):
            return str(name), container.at("resources", "limits", str(name))
    return None


RULE = _REPORT.rule(
    check,
    what="Ranks ask for RDMA or EFA devices, and NCCL_NET does not pin the transport; or NCCL is told which "
    "HCA to use (NCCL_IB_HCA) in pods that ask for no device.",
    why="When the plugin or the device cannot be used, NCCL goes on over TCP: the job runs at a tenth of its speed, and "
    "only one line of the log tells.",
    bad="""\
resources:
  limits: {nvidia.com/gpu: 8, vpc.amazonaws.com/efa: 32}
""",
    good="""\
env:
  - {name: NCCL_NET, value: AWS Libfabric}
resources:
  limits: {nvidia.com/gpu: 8, vpc.amazonaws.com/efa: 32}
""",
    fix="Set NCCL_NET, so that a job that cannot use its fabric fails at once.",
    sources=(
        "https://github.com/SemiAnalysisAI/InferenceX/pull/2979",
        "https://github.com/NVIDIA/nccl/issues/229",
        "https://github.com/NVIDIA/nccl-tests/issues/248",
        "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html (NCCL_NET)",
    ),
)
