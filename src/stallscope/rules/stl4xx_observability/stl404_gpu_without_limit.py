"""STL404: a container sees GPUs it did not ask for."""

from __future__ import annotations

from collections.abc import Iterable

from stallscope.findings import Finding, Severity
from stallscope.judge.result import Judgement
from stallscope.rules.base import Report
from stallscope.rules.support.containers import accelerators, containers, ranked_roles
from stallscope.rules.support.settings import setting
from stallscope.rules.support.words import label

_REPORT = Report("STL404", "gpu-without-limit", Severity.INFO)
_HIDES = frozenset({"", "none", "void"})


def check(judgement: Judgement) -> Iterable[Finding]:
    for judged in judgement.jobs:
        job = judged.job
        for role in ranked_roles(job):
            if accelerators(role):
                continue
            for container in containers(role):
                found = setting(container, "NVIDIA_VISIBLE_DEVICES")
                if found is None or found.value in _HIDES:
                    continue
                yield _REPORT.finding(
                    f"{role.name} of {job.ref} opens GPUs with NVIDIA_VISIBLE_DEVICES but asks for none",
                    (label(found.location, "shows GPUs past the device plugin", primary=True),),
                    subject=job.ref,
                    key=f"{role.name}:{container.name}",
                    notes=(
                        "the scheduler does not count these GPUs, so another pod may get the same ones",
                        "dcgm-exporter learns pods from the device plugin: these GPUs have empty pod and namespace labels",
                    ),
                    help="ask for nvidia.com/gpu in limits and drop the variable",
                )


RULE = _REPORT.rule(
    check,
    what="A rank's container gets GPUs through NVIDIA_VISIBLE_DEVICES instead of a resource limit.",
    why="The scheduler may give the same GPU to somebody else, and GPU metrics carry no pod, so nobody can tell whose GPU "
    "idles.",
    bad="""\
env:
  - name: NVIDIA_VISIBLE_DEVICES
    value: all
""",
    good="""\
resources:
  limits:
    nvidia.com/gpu: 8
""",
    fix="Request the GPUs.",
    sources=("https://github.com/NVIDIA/dcgm-exporter/issues/138",),
)
