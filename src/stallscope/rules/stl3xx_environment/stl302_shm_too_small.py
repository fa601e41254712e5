"""STL302: several GPUs in one pod share /dev/shm, and it has the container runtime's 64 MiB."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Any

from stallscope.findings import Confidence, Finding, Label, Severity
from stallscope.judge.result import Judgement
from stallscope.model.quantity import parse_quantity
from stallscope.model.source import as_list, as_map, as_str, dig
from stallscope.model.workload import Role, TrainingJob
from stallscope.rules.base import Report
from stallscope.rules.support.containers import (
    Container,
    accelerator_place,
    gpus_of,
    rank_containers,
    ranked_roles,
)
from stallscope.rules.support.settings import setting
from stallscope.rules.support.words import label

_REPORT = Report("STL302", "shm-too-small", Severity.WARNING, fixable=True)
#: Below this a multi-GPU pod is likely to run out: NCCL asks for about 10 MB per channel and peer (nccl#525 shows
#: 9,637,888 bytes a segment), data loader workers for more.
_SMALL = Fraction(1024**3)


def check(judgement: Judgement) -> Iterable[Finding]:
    for judged in judgement.jobs:
        for role in ranked_roles(judged.job):
            for container in rank_containers(role):
                yield from _one(judged.job, role, container)


def _one(job: TrainingJob, role: Role, container: Container) -> Iterator[Finding]:
    gpus = gpus_of(container.body)
    if gpus < 2 or role.template.spec.get("hostIPC") is True or _disabled(container):
        return
    problem = _problem(role, container)
    if problem is None:
        return
    what, labels, certain = problem
    yield _REPORT.finding(
        f"{role.name} of {job.ref} gives {gpus} GPUs of one pod {what}",
        (*labels, label(accelerator_place(container), f"{gpus} GPUs share this pod's /dev/shm", primary=not labels)),
        subject=job.ref,
        key=f"{role.name}:{container.name}",
        confidence=Confidence.CERTAIN if certain else Confidence.DEPENDS,
        notes=(
            "NCCL exchanges data between GPUs without NVLink, and data loader workers with the trainer, through /dev/shm",
            "what you will see: 'Error: failed to extend /dev/shm/nccl-... No space left on device' or "
            "'Call to posix_fallocate failed', at start or only when the first big collective runs",
        ),
        help="mount an emptyDir with medium: Memory at /dev/shm",
        fixable=certain,
    )


def _disabled(container: Container) -> bool:
    found = setting(container, "NCCL_SHM_DISABLE")
    return found is not None and found.value == "1"


def _problem(role: Role, container: Container) -> tuple[str, tuple[Label, ...], bool] | None:
    """What is wrong with /dev/shm, the places that show it, and whether it follows from the manifest alone."""
    mount = next(
        (i for i, m in enumerate(as_list(container.body.get("volumeMounts"))) if _is_shm(dig(m, "mountPath"))), None
    )
    if mount is None:
        return "the default /dev/shm of 64 MiB", (), True
    name = as_str(dig(container.body, "volumeMounts", mount, "name"))
    index, volume = _volume(role, name)
    empty_dir = volume.get("emptyDir")
    if not isinstance(empty_dir, Mapping):
        return None
    limit = parse_quantity(as_map(empty_dir).get("sizeLimit"))
    if limit is None or limit >= _SMALL:
        return None
    place = role.template.at("spec", "volumes", index, "emptyDir", "sizeLimit")
    text = f"a /dev/shm of only {empty_dir['sizeLimit']}"
    return text, (label(place, "this limit is small for several GPUs", primary=True),), False


def _is_shm(path: Any) -> bool:
    return as_str(path).rstrip("/") in ("/dev/shm", "/run/shm")  # noqa: S108


def _volume(role: Role, name: str) -> tuple[int, Mapping[str, Any]]:
    for i, volume in enumerate(as_list(role.template.spec.get("volumes"))):
        if dig(volume, "name") == name:
            return i, as_map(volume)
    return -1, {}


RULE = _REPORT.rule(
    check,
    what="A pod with two GPUs or more has the default /dev/shm (64 MiB), or a memory volume with a small sizeLimit.",
    why="The container runtime gives every container 64 MiB of shared memory. NCCL's shared-memory transport and data "
    "loader workers need far more, and the failure shows only when they first use it.",
    bad="""\
containers:
  - name: pytorch
    resources:
      limits:
        nvidia.com/gpu: 8
    # nothing mounted at /dev/shm
""",
    good="""\
containers:
  - name: pytorch
    resources:
      limits:
        nvidia.com/gpu: 8
    volumeMounts:
      - name: dshm
        mountPath: /dev/shm
volumes:
  - name: dshm
    emptyDir:
      medium: Memory
""",
    fix="Mount an emptyDir with medium: Memory at /dev/shm in every container that runs ranks. What it holds counts "
    "against the container's memory limit; without sizeLimit it may grow to that limit.",
    sources=(
        "https://github.com/NVIDIA/nccl/issues/525",
        "https://github.com/pytorch/ci-infra/pull/490",
        "https://kubernetes.io/docs/concepts/storage/volumes/#emptydir",
    ),
)
