"""Which module expands which kind: literal tables, so that a reader sees all of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from stallscope.load.kinds.context import Context
from stallscope.load.kinds.hyperpod import expand_hyperpod
from stallscope.load.kinds.jaxjob import expand_jaxjob
from stallscope.load.kinds.job import expand_job
from stallscope.load.kinds.jobset import expand_jobset
from stallscope.load.kinds.leaderworkerset import expand_leaderworkerset
from stallscope.load.kinds.mpijob import expand_mpijob_v1, expand_mpijob_v2
from stallscope.load.kinds.paddlejob import expand_paddlejob
from stallscope.load.kinds.pytorchjob import expand_pytorchjob
from stallscope.load.kinds.raycluster import expand_raycluster, expand_rayjob, expand_rayservice
from stallscope.load.kinds.statefulset import expand_statefulset
from stallscope.load.kinds.tfjob import expand_tfjob
from stallscope.load.kinds.trainjob import expand_trainjob
from stallscope.load.kinds.volcanojob import expand_volcanojob
from stallscope.load.kinds.xgboostjob import expand_xgboostjob
from stallscope.model.kube import KubeObject
from stallscope.model.workload import TrainingJob

Expander = Callable[[Context, KubeObject], tuple[TrainingJob, ...]]


def expand_mpijob(ctx: Context, obj: KubeObject) -> tuple[TrainingJob, ...]:
    """One kind, two operators: the version decides (``v2beta1`` is the MPI Operator's, all else the Training Operator's)."""
    newer = obj.api_version.rpartition("/")[2].startswith("v2")
    return expand_mpijob_v2(ctx, obj) if newer else expand_mpijob_v1(ctx, obj)


KINDS: Mapping[tuple[str, str], Expander] = {
    ("kubeflow.org", "PyTorchJob"): expand_pytorchjob,
    ("kubeflow.org", "TFJob"): expand_tfjob,
    ("kubeflow.org", "XGBoostJob"): expand_xgboostjob,
    ("kubeflow.org", "PaddleJob"): expand_paddlejob,
    ("kubeflow.org", "JAXJob"): expand_jaxjob,
    ("kubeflow.org", "MPIJob"): expand_mpijob,
    ("trainer.kubeflow.org", "TrainJob"): expand_trainjob,
    ("jobset.x-k8s.io", "JobSet"): expand_jobset,
    ("batch", "Job"): expand_job,
    ("apps", "StatefulSet"): expand_statefulset,
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): expand_leaderworkerset,
    ("ray.io", "RayCluster"): expand_raycluster,
    ("ray.io", "RayJob"): expand_rayjob,
    ("ray.io", "RayService"): expand_rayservice,
    ("batch.volcano.sh", "Job"): expand_volcanojob,
    ("sagemaker.amazonaws.com", "HyperPodPyTorchJob"): expand_hyperpod,
}

#: Kinds that start distributed training but are not expanded, with the reason a user reads.
UNSUPPORTED: Mapping[tuple[str, str], str] = {
    ("grove.io", "PodCliqueSet"): "Grove's PodCliqueSet is not expanded yet",
    ("kubeflow.org", "MXJob"): "MXJob was removed from the Training Operator in v1.9",
    ("slinky.slurm.net", "NodeSet"): "Slurm places its jobs itself, outside kube-scheduler",
}
