"""The fixes of one line or two, and what they must not touch."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

PINNED = "          nodeSelector: {topology.kubernetes.io/zone: zone-b}\n"


def job(fix: Any) -> str:
    return fix.pytorchjob(
        master=PINNED + "          tolerations: [{key: nvidia.com/gpu, operator: Exists}]\n", worker=PINNED
    )


def namespace(extra: str) -> str:
    return f"apiVersion: v1\nkind: Namespace\nmetadata:\n  name: train\n  {extra}\n"


def templates(run: Any) -> dict[str, Any]:
    [found] = [d for d in yaml.safe_load_all(run.fixed.texts["0.yaml"]) if d["kind"] == "PyTorchJob"]
    return {role: body["template"] for role, body in found["spec"]["pytorchReplicaSpecs"].items()}


@pytest.mark.parametrize(
    ("mesh", "section", "key", "value"),
    [
        ("labels: {istio-injection: enabled}", "labels", "sidecar.istio.io/inject", "false"),
        ("labels: {istio.io/dataplane-mode: ambient}", "labels", "istio.io/dataplane-mode", "none"),
        ("annotations: {linkerd.io/inject: enabled}", "annotations", "linkerd.io/inject", "disabled"),
    ],
    ids=["istio", "ambient", "linkerd"],
)
def test_every_pod_template_opts_out_of_the_mesh(fix: Any, mesh: str, section: str, key: str, value: str) -> None:
    run = fix(job(fix), namespace(mesh))
    assert [r.slug for r in run.fixed.remedies] == ["mesh-opt-out"]
    assert [t["metadata"][section] for t in templates(run).values()] == [{key: value}] * 2
    assert any("no longer found: STL206" in t for p in run.fixed.proofs for t in p.proved)


def test_an_opt_in_on_the_template_is_turned(fix: Any) -> None:
    text = job(fix).replace(
        "        spec:\n", '        metadata: {labels: {sidecar.istio.io/inject: "true"}}\n        spec:\n'
    )
    run = fix(text)
    assert run.fixed.texts["0.yaml"] == text.replace('"true"', '"false"')


def shm(run: Any) -> Any:
    worker = templates(run)["Worker"]["spec"]
    return worker.get("volumes"), worker["containers"][0].get("volumeMounts")


def test_shared_memory_gets_a_volume_of_its_own_name(fix: Any) -> None:
    volume = "          volumes: [{name: dshm, persistentVolumeClaim: {claimName: c}}]\n"
    text = job(fix).replace(PINNED, PINNED + volume, 2)
    volumes, mounts = shm(fix(text, select=("STL302",)))
    assert volumes[-1] == {"name": "stallscope-shm", "emptyDir": {"medium": "Memory"}}
    assert mounts == [{"name": "stallscope-shm", "mountPath": "/dev/shm"}]


def test_shared_memory_reuses_a_memory_volume(fix: Any) -> None:
    volume = "          volumes: [{name: fast, emptyDir: {medium: Memory}}]\n"
    text = job(fix).replace(PINNED, PINNED + volume, 2)
    volumes, mounts = shm(fix(text, select=("STL302",)))
    assert volumes == [{"name": "fast", "emptyDir": {"medium": "Memory"}}]
    assert mounts == [{"name": "fast", "mountPath": "/dev/shm"}]


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("NCCL_SOCKET_IFNAME", "^docker0", '"^lo,docker0"'),
        ("NCCL_SOCKET_IFNAME", "lo", "eth0"),
        ("NCCL_SOCKET_IFNAME", '"ens5"', '"eth0"'),
        ("GLOO_SOCKET_IFNAME", "'^lo'", "'eth0'"),
    ],
)
def test_the_interface_variable_is_replaced_in_place(fix: Any, name: str, old: str, new: str) -> None:
    env = f"              env: [{{name: {name}, value: {old}}}]  # set long ago\n"
    text = job(fix).replace(
        "              resources:\n                limits", env + "              resources:\n                limits"
    )
    run = fix(text, select=("STL301",))
    assert run.fixed.texts["0.yaml"] == text.replace(f"value: {old}}}", f"value: {new}}}")


def test_an_interface_set_in_a_script_is_left_alone(fix: Any) -> None:
    text = job(fix).replace("[torchrun, train.py]", '[bash, -c, "NCCL_SOCKET_IFNAME=^docker0 torchrun train.py"]')
    assert fix(text, select=("STL301",)).changes == ()


def test_names_of_pods_that_are_not_ready(fix: Any) -> None:
    text = """\
apiVersion: v1
kind: Service
metadata: {name: llm, namespace: train}
spec:
  clusterIP: None   # headless
  selector: {app: llm}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: llm, namespace: train}
spec:
  serviceName: llm
  replicas: 2
  selector: {matchLabels: {app: llm}}
  template:
    metadata: {labels: {app: llm}}
    spec:
      nodeSelector: {topology.kubernetes.io/zone: zone-b}
      containers:
        - name: trainer
          image: registry.example/train:1
          command: [torchrun, --nnodes=2, --rdzv-endpoint=llm-0.llm:29500, train.py]
          readinessProbe: {tcpSocket: {port: 29500}}
"""
    run = fix(text, select=("STL308",))
    assert run.fixed.texts["0.yaml"] == text.replace(
        "  selector: {app: llm}\n---", "  selector: {app: llm}\n  publishNotReadyAddresses: true\n---"
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("  clusterIP: None\n  selector: {app: other}\n", "  clusterIP: None\n  selector: {app: llm}\n"),
        ("  selector: {app: llm}\n", "  selector: {app: llm}\n  clusterIP: None\n"),
    ],
    ids=["selector", "cluster-ip"],
)
def test_the_service_of_the_pods_names(fix: Any, old: str, new: str) -> None:
    text = f"""\
apiVersion: v1
kind: Service
metadata: {{name: llm, namespace: train}}
spec:
  ports: [{{port: 29500}}]
{old}---
apiVersion: apps/v1
kind: StatefulSet
metadata: {{name: llm, namespace: train}}
spec:
  serviceName: llm
  replicas: 2
  selector: {{matchLabels: {{app: llm}}}}
  template:
    metadata: {{labels: {{app: llm}}}}
    spec:
      nodeSelector: {{topology.kubernetes.io/zone: zone-b}}
      containers: [{{name: trainer, image: x, command: [torchrun, --nnodes=2, train.py]}}]
"""
    run = fix(text, select=("STL308",))
    assert run.fixed.texts["0.yaml"] == text.replace(old, new)


def test_two_roles_of_a_trainjob_share_one_patch_entry(fix: Any) -> None:
    """MPI runtimes have a launcher and nodes; both patches belong to one manager's entry."""
    text = """\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: llm, namespace: train}
spec:
  runtimeRef: {name: deepspeed-distributed}
  trainer:
    numNodes: 3
    resourcesPerNode: {limits: {nvidia.com/gpu: 8}}
  runtimePatches:
    - manager: other.example/team
      trainingRuntimeSpec:
        template:
          spec:
            replicatedJobs:
              - name: dataset-initializer
                template: {spec: {template: {spec: {nodeSelector: {pool: data}}}}}
"""
    run = fix(text)
    theirs, ours = yaml.safe_load(run.fixed.texts["0.yaml"])["spec"]["runtimePatches"]
    assert theirs["manager"] == "other.example/team"
    assert ours["manager"] == "stallscope.dev/placement"
    jobs = ours["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"]
    assert sorted(j["name"] for j in jobs) == ["launcher", "node"]
    for entry in jobs:
        spec = entry["template"]["spec"]["template"]["spec"]
        assert spec["nodeSelector"] == {"topology.kubernetes.io/zone": "zone-b"}
        assert spec["tolerations"] == [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]
