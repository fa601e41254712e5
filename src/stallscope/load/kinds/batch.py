"""What a batch/v1 Job gives its pods, shared by every kind that makes Jobs (job_controller.go, indexed_job_utils.go)."""

from __future__ import annotations

from stallscope.load.kinds.context import Context, count
from stallscope.model.kube import KubeObject
from stallscope.model.source import Route


def parallel_pods(ctx: Context, obj: KubeObject, route: Route) -> int | None:
    """
    Pods of a Job at once: min(parallelism, completions). parallelism defaults to 1 (and completions to 1 when both are
    absent); completions absent with parallelism set is a work queue of parallelism pods. `route` leads to the Job's spec.
    """
    parallelism = count(ctx, obj, (*route, "parallelism"), default=1)
    completions = count(ctx, obj, (*route, "completions"), default=-1)
    if parallelism is None or completions is None:
        return None
    return parallelism if completions < 0 else min(parallelism, completions)


def job_labels(job: str, completion_index: int | None = None) -> dict[str, str]:
    """
    Labels the Job controller puts on pods, old unprefixed names included. The owner's uid exists only in a cluster; the
    value here is equal for pods of one Job and different between Jobs, which is all a selector can ask of it.
    """
    uid = f"<uid of {job}>"
    labels = {
        "batch.kubernetes.io/job-name": job,
        "batch.kubernetes.io/controller-uid": uid,
        "job-name": job,
        "controller-uid": uid,
    }
    if completion_index is not None:
        labels["batch.kubernetes.io/job-completion-index"] = str(completion_index)
    return labels
