"""
Real manifests. `PODS` was worked out by reading them (replicas x parallelism, sizes, roles, submitters), not by running
anything: the sum of pods of all jobs of a file, each read alone.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from stallscope.load.inputs import LoadRequest, load

REPOSITORY = Path(__file__).resolve().parents[3]
CORPUS = REPOSITORY.parent / "shared" / "corpus"

pytestmark = pytest.mark.skipif(
    not (CORPUS / "MANIFEST.tsv").is_file(), reason="the corpus of real manifests is not present"
)

_JOBSET = "kubernetes-sigs__jobset/site/static/examples"
_KUEUE = "kubernetes-sigs__kueue/site/static/examples"
_LWS = "kubernetes-sigs__lws"
_RAY = "ray-project__kuberay/ray-operator/config/samples"
_MPI = "kubeflow__mpi-operator/examples/v2beta1"
_AWS = "aws-samples__awsome-distributed-training"
_TPU = "GoogleCloudPlatform__ai-on-gke/tutorials-and-examples"
_VOLCANO = "volcano-sh__volcano/example"

PODS = {
    # PyTorchJob: Master 1 + Worker n; elastic: Worker n
    "NVIDIA__KAI-Scheduler/docs/batch/pytorch-job.yaml": 1 + 2,
    f"{_AWS}/1.architectures/7.sagemaker-hyperpod-eks/task-governance/3-imagenet-gpu-team-b-higher-prio.yaml": 2,
    f"{_AWS}/4.validation_and_observability/5.nsight/EKS/fsdp.yaml": 2,
    f"{_KUEUE}/jobs/sample-pytorchjob.yaml": 1 + 1,
    f"{_KUEUE}/appwrapper/pytorch-sample.yaml": 1 + 1,  # inside an AppWrapper
    f"{_AWS}/3.test_cases/pytorch/FSDP/kubernetes/llama2_13b-fsdp.yaml": 0,  # replicas: $NUM_NODES
    # the other v1 kinds
    f"{_KUEUE}/jobs/sample-tfjob.yaml": 1 + 2,
    f"{_KUEUE}/jobs/sample-jaxjob.yaml": 2,
    f"{_KUEUE}/jobs/sample-paddlejob.yaml": 2,
    # MPIJob: launcher + workers
    f"{_MPI}/horovod/tensorflow-mnist.yaml": 1 + 2,
    f"{_MPI}/pi/pi.yaml": 1 + 2,
    f"{_MPI}/pi/pi-intel.yaml": 1 + 2,
    f"{_MPI}/pi/pi-mpich.yaml": 1 + 2,
    f"{_MPI}/tensorflow-benchmarks/tensorflow-benchmarks.yaml": 1 + 2,
    f"{_AWS}/micro-benchmarks/nccl-tests/kubernetes/nccl-tests.yaml": 1 + 2,
    f"{_AWS}/micro-benchmarks/nccl-tests/kubernetes/nccl-tests-gb200.yaml": 1 + 18,
    # TrainJob: numNodes, plus initializers of the runtime
    "kubeflow__trainer/examples/yaml/01-multi-node.yaml": 3,
    "kubeflow__trainer/examples/yaml/02-runtime-patches.yaml": 2,
    "kubeflow__trainer/examples/yaml/04-volcano-integration.yaml": 4,
    "kubeflow__trainer/examples/yaml/05-multi-step.yaml": 1 + 2,
    "kubeflow__trainer/examples/flux/flux-interactive.yaml": 4,
    "kubeflow__trainer/examples/flux/lammps-train-job.yaml": 2,
    # JobSet: sum of replicas x parallelism
    f"{_JOBSET}/depends-on/depends-on.yaml": 1 + 1 + 4,
    f"{_JOBSET}/depends-on/multiple-depends-on.yaml": 1 + 1 + 4,
    f"{_JOBSET}/failure-policy/failjobset-action.yaml": 2 + 2,
    f"{_JOBSET}/pytorch/cnn-mnist/mnist.yaml": 4,
    f"{_JOBSET}/simple/coordinator.yaml": 4 + 1,
    f"{_JOBSET}/simple/exclusive-placement.yaml": 3 * 3,
    f"{_JOBSET}/simple/group.yaml": 2 + 2,
    f"{_JOBSET}/simple/jobset-with-network.yaml": 1 + 2,
    f"{_JOBSET}/simple/paralleljobs.yaml": 4 + 1,
    f"{_JOBSET}/tensorflow/mnist.yaml": 2,
    f"{_JOBSET}/tpu-multislice/v6e-jax-workload.yaml": 2 * 4,
    f"{_JOBSET}/workload-aware-scheduling/dra/jobset.yaml": 3 * 2,
    f"{_JOBSET}/workload-aware-scheduling/preemption/low-priority-jobset.yaml": 2 * 2,
    f"{_JOBSET}/workload-aware-scheduling/tas/jobset.yaml": 2 * 2,
    f"{_KUEUE}/jobs/sample-jobset.yaml": 1 + 1,
    f"{_KUEUE}/jobs/sample-jobset-tas-sliced.yaml": 8,
    "kubernetes-sigs__jobset/config/samples/batch_v1alpha2_jobset.yaml": 0,  # an empty spec
    # Job and StatefulSet: accelerators, or a wish to be near each other; others are not training
    f"{_KUEUE}/tas/sample-job-preferred.yaml": 40,
    f"{_KUEUE}/tas/sample-job-required.yaml": 10,
    f"{_KUEUE}/tas/sample-job-unconstrained.yaml": 0,
    f"{_KUEUE}/jobs/sample-job.yaml": 0,
    f"{_KUEUE}/provisioning/sample-job.yaml": 3,
    f"{_KUEUE}/multikueue/dev/sample-tas-job.yaml": 2,  # the second Job of the file sleeps without any constraint
    f"{_KUEUE}/serving-workloads/sample-statefulset.yaml": 0,
    "NVIDIA__KAI-Scheduler/docs/batch/batch-job.yaml": 2,
    f"{_TPU}/gpu-examples/training-single-gpu/src/gke-config/standard-tf-mnist-train.yaml": 1,
    f"{_TPU}/tpu-examples/training/mnist-single-tpu/src/gke-config/standard-tf-mnist-train-v5e.yaml": 1,
    # LeaderWorkerSet: replicas x size
    f"{_LWS}/config/samples/leaderworkerset_v1_leaderworkerset.yaml": 3 * 4,
    f"{_LWS}/config/samples/leaderworkerset_multi_template.yaml": 3 * 4,
    f"{_LWS}/docs/examples/llamacpp/k8s/lws.yaml": 1 * 5,
    f"{_LWS}/docs/examples/sample/gang-scheduling/lws-sample-volcano.yaml": 2 * 4,
    f"{_LWS}/docs/examples/sample/lws-rollout-strategy.yaml": 4 * 4,
    f"{_LWS}/docs/examples/sample/lws-volume-claim-templates.yaml": 2 * 2,
    f"{_LWS}/docs/examples/sglang/lws.yaml": 2 * 2,
    f"{_LWS}/docs/examples/tensorrt-llm/lws.yaml": 1 * 2,
    # RayCluster: head + replicas x numOfHosts; RayJob: + submitter in K8sJobMode; RayService: no submitter
    f"{_RAY}/ray-cluster.sample.yaml": 1 + 1,
    f"{_RAY}/ray-cluster.autoscaler.yaml": 1 + 0,
    f"{_RAY}/ray-cluster.custom-head-service.yaml": 1,
    f"{_RAY}/ray-cluster.kai-scheduler.yaml": 1 + 2,
    f"{_RAY}/ray-cluster.network-policy-deny-all.yaml": 1 + 1,
    f"{_RAY}/ray-cluster.tpu-v6e-16-multihost.yaml": 1 + 1 * 4,
    f"{_RAY}/ray-cluster.tpu-v6e-256-multihost.yaml": 1 + 1 * 64,
    f"{_RAY}/ray-job.sample.yaml": 1 + 1 + 1,
    f"{_RAY}/ray-job.interactive-mode.yaml": 1 + 1,
    f"{_RAY}/ray-job.sidecar-mode.yaml": 1 + 1,
    f"{_RAY}/ray-job.batch-inference.yaml": 1 + 1,
    f"{_RAY}/ray-job.light-weight-submitter.yaml": 1 + 1 + 1,
    f"{_RAY}/ray-job.tpu-v6e-16-multihost.yaml": 1 + 1 * 4 + 1,
    f"{_RAY}/ray-job.volcano-scheduler-queue.yaml": 1 + 2 + 1,
    f"{_RAY}/ray-job.use-existing-raycluster.yaml": 0,  # only names a cluster of another file
    f"{_RAY}/pytorch-resnet-image-classifier/ray-job.pytorch-image-classifier.yaml": 1 + 4 + 1,
    f"{_RAY}/ray-data-image-resize/ray-data-image-resize-gcsfusecsi-job.yaml": 1 + 3 + 1,
    f"{_RAY}/ray-service.sample.yaml": 1 + 1,
    f"{_RAY}/ray-service.high-throughput-llm.yaml": 1 + 4,
    # Volcano Job: sum of task replicas
    f"{_VOLCANO}/job.yaml": 6,
    f"{_VOLCANO}/hierarchical-jobs/jobs.yaml": 4 * 6,
    f"{_VOLCANO}/integrations/mpi/mpi-example.yaml": 1 + 2,
    f"{_VOLCANO}/integrations/mxnet/train/train-mnist-cpu.yaml": 2 + 2 + 1,
    f"{_VOLCANO}/integrations/ray/ray-example.yaml": 1 + 2,
    f"{_VOLCANO}/integrations/tensorflow/dist-mnist/tf-dist-mnist-example.yaml": 1 + 2,
    f"{_VOLCANO}/kubecon-2019-china/horovod-sample/lm-horovod-tf-mnist-v0.5.yaml": 1 + 3,
    f"{_VOLCANO}/task-start-dependency/mpi.yaml": 1 + 10,
    f"{_VOLCANO}/integrations/argo/mpi/hello-world.yaml": 1 + 2,  # inside an Argo resource step
    f"{_VOLCANO}/integrations/argo/20-job-DAG.yaml": 2,
    f"{_VOLCANO}/kubecon-2019-china/spark-sample/spark-pi.yaml": 0,  # Spark is no training
    # unrendered charts
    "ray-project__kuberay/helm-chart/ray-cluster/templates/raycluster-cluster.yaml": 0,
    "AI-Hypercomputer__gpu-recipes/src/helm-charts/a4/jobset/templates/workload-jobset.yaml": 0,
}


@pytest.fixture(scope="module")
def coverage() -> ModuleType:
    """The generator of docs/coverage.md."""
    spec = importlib.util.spec_from_file_location("gen_coverage", REPOSITORY / "scripts" / "gen_coverage.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["gen_coverage"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("path", PODS)
def test_pods_counted_by_hand(path: str) -> None:
    inputs = load(LoadRequest(paths=(str(CORPUS / path),), allow_empty=True)).inputs
    pods = [len(j.pods) * j.copies for j in inputs.jobs]
    assert sum(pods) == PODS[path], [(j.ref, len(j.pods)) for j in inputs.jobs]


def test_every_training_object_is_expanded_or_says_why_not(coverage: ModuleType) -> None:
    rows = coverage.rows(CORPUS)
    assert len(coverage.index_of(CORPUS)) == 275
    silent = [f"{r.project}/{r.path}" for r in rows if not r.jobs and not r.reasons]
    assert silent == []
    assert len(rows) > 200


def test_the_coverage_page_is_up_to_date(coverage: ModuleType) -> None:
    written = (REPOSITORY / "docs" / "coverage.md").read_text(encoding="utf-8")
    assert coverage.report(CORPUS) == written, "run: python scripts/gen_coverage.py"
