"""Which module expands which kind: a literal table, so that a reader sees all of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from stallscope.load.kinds.context import Context
from stallscope.load.kinds.job import expand_job
from stallscope.load.kinds.jobset import expand_jobset
from stallscope.load.kinds.mpijob import expand_mpijob_v1, expand_mpijob_v2
from stallscope.load.kinds.pytorchjob import expand_pytorchjob
from stallscope.load.kinds.trainjob import expand_trainjob
from stallscope.model.kube import KubeObject
from stallscope.model.workload import TrainingJob

Expander = Callable[[Context, KubeObject], tuple[TrainingJob, ...]]


def expand_mpijob(ctx: Context, obj: KubeObject) -> tuple[TrainingJob, ...]:
    """One kind, two operators: the version decides (``v2beta1`` is the MPI Operator's, all else the Training Operator's)."""
    newer = obj.api_version.rpartition("/")[2].startswith("v2")
    return expand_mpijob_v2(ctx, obj) if newer else expand_mpijob_v1(ctx, obj)


KINDS: Mapping[tuple[str, str], Expander] = {
    ("kubeflow.org", "PyTorchJob"): expand_pytorchjob,
    ("kubeflow.org", "MPIJob"): expand_mpijob,
    ("trainer.kubeflow.org", "TrainJob"): expand_trainjob,
    ("jobset.x-k8s.io", "JobSet"): expand_jobset,
    ("batch", "Job"): expand_job,
}
