"""
The ClusterTrainingRuntimes that Kubeflow Trainer installs, as far as the judgement needs them: policy, replicated jobs in
order, what they wait for, devices and ssh. Content of Trainer v2.3 (v2.0 to v2.2 differ in images and in the order of the
MPI jobs); ``mpi-distributed`` existed in v2.0 only. The user's own files always win over this table.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

ANCESTOR = "trainer.kubeflow.org/trainjob-ancestor-step"

_SSHD: Mapping[str, Any] = {
    "command": ["/usr/sbin/sshd"],
    "args": ["-De", "-f", "/home/mpiuser/.sshd_config"],
    "readinessProbe": {"tcpSocket": {"port": 2222}},
}


def _job(name: str, step: str = "", after: Mapping[str, str] | None = None, **container: Any) -> dict[str, Any]:
    main = name if name.endswith("-initializer") else "node"
    pod = {"spec": {"template": {"spec": {"containers": [{"name": main, **container}]}}}}
    metadata = {"metadata": {"labels": {ANCESTOR: step}}} if step else {}
    waits = {"dependsOn": [{"name": n, "status": s} for n, s in (after or {}).items()]} if after else {}
    return {"name": name, "template": {**metadata, **pod}, **waits}


def _runtime(policy: Mapping[str, Any], *jobs: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"spec": {"mlPolicy": {"numNodes": 1, **policy}, "template": {"spec": {"replicatedJobs": list(jobs)}}}}


def _mpi() -> Mapping[str, Any]:
    policy = {"mpi": {"numProcPerNode": 1, "mpiImplementation": "OpenMPI", "runLauncherAsNode": True}}
    return _runtime(policy, _job("node", **_SSHD), _job("launcher", "trainer", {"node": "Ready"}))


def _torchtune() -> Mapping[str, Any]:
    dataset, model = "dataset-initializer", "model-initializer"
    node = _job(
        "node",
        "trainer",
        {dataset: "Complete", model: "Complete"},
        command=["tune", "run", "--rdzv_endpoint=localhost:29500"],
        resources={"limits": {"nvidia.com/gpu": 2}},
    )
    return _runtime({"torch": {}}, _job(dataset, dataset), _job(model, model), node)


def _cached() -> Mapping[str, Any]:
    first = _job("dataset-initializer", "dataset-initializer")
    return _runtime({"torch": {}}, first, _job("node", "trainer", {"dataset-initializer": "Complete"}))


RUNTIMES: Mapping[str, Mapping[str, Any]] = {
    "torch-distributed": _runtime({"torch": {}}, _job("node", "trainer")),
    "torch-distributed-with-cache": _cached(),
    "jax-distributed": _runtime({"jax": {}}, _job("node", "trainer")),
    "xgboost-distributed": _runtime({"xgboost": {}}, _job("node", "trainer")),
    "deepspeed-distributed": _mpi(),
    "mlx-distributed": _mpi(),
    "mpi-distributed": _mpi(),
    "torchtune-llama3.2-1b": _torchtune(),
    "torchtune-llama3.2-3b": _torchtune(),
    "torchtune-llama3.3-70b": _torchtune(),
    "torchtune-qwen2.5-1.5b": _torchtune(),
}
