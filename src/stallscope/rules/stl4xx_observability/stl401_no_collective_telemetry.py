"""STL401: nothing will measure the collectives of this job."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from stallscope.findings import Confidence, Finding, Severity
from stallscope.judge.result import Judgement
from stallscope.model.kube import KubeObject
from stallscope.model.labels import parse_selector
from stallscope.model.source import as_str
from stallscope.model.workload import Role, TrainingJob
from stallscope.rules.base import Report
from stallscope.rules.support.containers import accelerators, containers, declared_ports, ranked_roles
from stallscope.rules.support.settings import command_text, sets
from stallscope.rules.support.shapes import pod_shapes
from stallscope.rules.support.words import label

_REPORT = Report("STL401", "no-collective-telemetry", Severity.INFO)
_MONITORS = frozenset({"PodMonitor", "ServiceMonitor"})
#: Variables that switch on a profiler or inspector of NCCL (telemetry reference).
_PROFILERS = ("NCCL_PROFILER_PLUGIN", "NCCL_INSPECTOR_ENABLE", "NCCL_RAS_ADDR")


def check(judgement: Judgement) -> Iterable[Finding]:
    monitors = [o for o in judgement.inputs.objects if o.kind in _MONITORS]
    for judged in judgement.jobs:
        job = judged.job
        roles = [r for r in ranked_roles(job) if accelerators(r)]
        if len(job.pods) < 2 or not job.distributed or not roles:
            continue
        if any(_measured(r) for r in job.roles) or _monitored(job, monitors):
            continue
        yield _REPORT.finding(
            f"nothing measures the collectives of {job.ref}: a stall will show no metric and raise no alert",
            (label(roles[0].template.at("spec"), "no metrics port, scrape annotation or profiler", primary=True),),
            subject=job.ref,
            confidence=Confidence.DEPENDS,
            notes=(
                "GPU utilisation does not show it: NCCL's waiting kernels count as work, so a stalled GPU reads 98-100 %",
                "holds unless the training code or an agent on the nodes exports step progress by itself",
            ),
            help="expose step progress or collective timings on a metrics port and scrape it with a PodMonitor",
        )


def _measured(role: Role) -> bool:
    annotations = role.template.annotations
    if annotations.get("prometheus.io/scrape") == "true":
        return True
    if any("metrics" in as_str(entry.get("name")) for _, _, entry in declared_ports(role)):
        return True
    return any(sets(c, *_PROFILERS) or "stallscope" in command_text(c) for c in containers(role))


def _monitored(job: TrainingJob, monitors: Sequence[KubeObject]) -> bool:
    """A PodMonitor or ServiceMonitor of the files whose selector matches a pod of the job."""
    shapes = pod_shapes(job)
    selectors = (parse_selector(m.get("spec", "selector")) for m in monitors if m.namespace == job.namespace)
    return any(s is not None and shapes.selected(s) for s in selectors)


RULE = _REPORT.rule(
    check,
    what="No metrics port, scrape annotation, PodMonitor or NCCL profiler covers the ranks of a multi-pod GPU job.",
    why="A stall raises no alert: pods are Running, nothing restarts, and GPU utilisation stays high because waiting NCCL "
    "kernels count as work.",
    bad="""\
containers:
  - name: pytorch
    command: [torchrun, train.py]
""",
    good="""\
containers:
  - name: pytorch
    command: [torchrun, train.py]      # exports steps and time since the last collective
    ports:
      - name: metrics
        containerPort: 9464
""",
    fix="Export step progress and time since the last collective for every rank, and alert on both.",
    sources=(
        "https://github.com/marin-community/marin/issues/7344",
        "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html (NCCL_PROFILER_PLUGIN)",
    ),
)
