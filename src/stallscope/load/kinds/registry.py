"""
Which module expands which kind: literal tables, so that a reader sees all of it. A module is imported when the first object
of its kind is met: a run of `check` meets one or two of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any, cast

from stallscope.load.kinds.context import Context
from stallscope.model.kube import KubeObject
from stallscope.model.workload import TrainingJob

Expander = Callable[[Context, KubeObject], tuple[TrainingJob, ...]]
#: Yields `wrappers.Inner`; named here without importing it.
Opener = Callable[[Context, KubeObject], Iterator[Any]]

#: (API group, kind) -> module of this package : function, an `Expander`.
KINDS: Mapping[tuple[str, str], str] = {
    ("kubeflow.org", "PyTorchJob"): "pytorchjob:expand_pytorchjob",
    ("kubeflow.org", "TFJob"): "tfjob:expand_tfjob",
    ("kubeflow.org", "XGBoostJob"): "xgboostjob:expand_xgboostjob",
    ("kubeflow.org", "PaddleJob"): "paddlejob:expand_paddlejob",
    ("kubeflow.org", "JAXJob"): "jaxjob:expand_jaxjob",
    ("kubeflow.org", "MPIJob"): "mpijob:expand_mpijob",
    ("trainer.kubeflow.org", "TrainJob"): "trainjob:expand_trainjob",
    ("jobset.x-k8s.io", "JobSet"): "jobset:expand_jobset",
    ("batch", "Job"): "job:expand_job",
    ("apps", "StatefulSet"): "statefulset:expand_statefulset",
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): "leaderworkerset:expand_leaderworkerset",
    ("ray.io", "RayCluster"): "raycluster:expand_raycluster",
    ("ray.io", "RayJob"): "raycluster:expand_rayjob",
    ("ray.io", "RayService"): "raycluster:expand_rayservice",
    ("batch.volcano.sh", "Job"): "volcanojob:expand_volcanojob",
    ("sagemaker.amazonaws.com", "HyperPodPyTorchJob"): "hyperpod:expand_hyperpod",
}

#: Kinds that hold other objects, in the same form; the functions are `Opener`s.
WRAPPERS: Mapping[tuple[str, str], str] = {
    ("workload.codeflare.dev", "AppWrapper"): "wrappers:open_appwrapper",
    ("argoproj.io", "Workflow"): "wrappers:open_workflow",
    ("argoproj.io", "WorkflowTemplate"): "wrappers:open_workflow",
    ("argoproj.io", "ClusterWorkflowTemplate"): "wrappers:open_workflow",
    ("argoproj.io", "CronWorkflow"): "wrappers:open_workflow",
}

#: Kinds that start distributed training but are not expanded, with the reason a user reads.
UNSUPPORTED: Mapping[tuple[str, str], str] = {
    ("grove.io", "PodCliqueSet"): "Grove's PodCliqueSet is not expanded yet",
    ("kubeflow.org", "MXJob"): "MXJob was removed from the Training Operator in v1.9",
    ("slinky.slurm.net", "NodeSet"): "Slurm places its jobs itself, outside kube-scheduler",
}


def expander_of(key: tuple[str, str]) -> Expander | None:
    """The function that expands objects of this (group, kind); None for a kind that starts no training."""
    return cast("Expander", _function(KINDS[key])) if key in KINDS else None


def opener_of(key: tuple[str, str]) -> Opener | None:
    """The function that yields the objects inside one of this (group, kind); None for a kind that holds none."""
    return cast("Opener", _function(WRAPPERS[key])) if key in WRAPPERS else None


def _function(place: str) -> object:
    module, _, name = place.partition(":")
    return getattr(import_module(f"stallscope.load.kinds.{module}"), name)
