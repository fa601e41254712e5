"""STL312: one GID index for several RDMA devices."""

from __future__ import annotations

from collections.abc import Iterable

from stallscope.findings import Confidence, Finding, Severity
from stallscope.judge.result import Judgement
from stallscope.rules.base import Report
from stallscope.rules.support.settings import job_settings, setting
from stallscope.rules.support.words import label

_REPORT = Report("STL312", "fixed-gid-index", Severity.INFO)


def check(judgement: Judgement) -> Iterable[Finding]:
    for judged in judgement.jobs:
        for role, found in job_settings(judged.job, "NCCL_IB_GID_INDEX"):
            devices = setting(found.container, "NCCL_IB_HCA")
            names = devices.value.lstrip("^=").split(",") if devices else []
            if devices is None or devices.value.startswith("^") or len(names) < 2:
                continue
            yield _REPORT.finding(
                f"{role.name} of {judged.job.ref} uses GID index {found.value} for all of {len(names)} RDMA devices",
                (
                    label(found.location, "one index for every device", primary=True),
                    label(devices.location, f"{len(names)} devices"),
                ),
                subject=judged.job.ref,
                key=role.name,
                confidence=Confidence.DEPENDS,
                notes=(
                    "inside a pod the index of the RoCE v2 address can differ from device to device and from pod to pod",
                    "what you will see: 'ibv_modify_qp failed' or QPs that never reach RTR on some ranks only",
                ),
                help="remove NCCL_IB_GID_INDEX: NCCL 2.21 and later choose the index by themselves",
            )


RULE = _REPORT.rule(
    check,
    what="NCCL_IB_GID_INDEX is fixed while NCCL_IB_HCA lists several devices.",
    why="The index that is right for one device is wrong for another, and the ranks on it hang while connecting.",
    bad="""\
env:
  - {name: NCCL_IB_HCA, value: "mlx5_0,mlx5_1"}
  - {name: NCCL_IB_GID_INDEX, value: "3"}
""",
    good="""\
env:
  - {name: NCCL_IB_HCA, value: "mlx5_0,mlx5_1"}
""",
    fix="Leave the index to NCCL.",
    sources=(
        "https://github.com/NVIDIA/nccl/issues/890",
        "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html (NCCL_IB_GID_INDEX)",
    ),
)
