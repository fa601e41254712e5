"""Objects for rule tests, and the rules run on them. Built as plain dictionaries: only what a test is about is written."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from stallscope.analysis import analyse
from stallscope.findings import Finding
from stallscope.judge.inputs import ClusterFacts
from stallscope.load.inputs import LoadRequest, load_text

Body = dict[str, Any]
GPU_TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
TOLERATION = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
ZONE = "topology.kubernetes.io/zone"


def merge(base: Body, more: Body) -> Body:
    """`more` laid over `base`; mappings merge, everything else (and an empty mapping) replaces."""
    out = dict(base)
    for key, value in more.items():
        out[key] = merge(out[key], value) if value and isinstance(value, dict) and isinstance(out.get(key), dict) else value
    return out


def healthy_template(**container: Any) -> Body:
    """A pod template that no rule has anything to say about: pinned, tolerating, with shared memory."""
    body = {
        "name": "pytorch",
        "image": "registry.example/llm-train:1",
        "command": ["torchrun", "train.py"],
        "resources": {"limits": {"nvidia.com/gpu": 8}},
        "volumeMounts": [{"name": "dshm", "mountPath": "/dev/shm"}],
        **container,
    }
    return {
        "metadata": {"labels": {"app": "llm"}},
        "spec": {
            "nodeSelector": {ZONE: "zone-a"},
            "tolerations": [TOLERATION],
            "containers": [body],
            "volumes": [{"name": "dshm", "emptyDir": {"medium": "Memory"}}],
        },
    }


@pytest.fixture
def template() -> Callable[..., Body]:
    return healthy_template


@pytest.fixture
def pytorch() -> Callable[..., Body]:
    """``pytorch(master={...}, worker={...}, workers=3, metadata={...})``: patches over a healthy job."""

    def build(
        master: Body | None = None,
        worker: Body | None = None,
        *,
        workers: int = 3,
        metadata: Body | None = None,
        **both: Any,
    ) -> Body:
        base = merge(healthy_template(), both)
        roles = {"Master": (1, master), "Worker": (workers, worker)}
        return {
            "apiVersion": "kubeflow.org/v1",
            "kind": "PyTorchJob",
            "metadata": {"name": "llm", "namespace": "train", **(metadata or {})},
            "spec": {
                "pytorchReplicaSpecs": {
                    name: {"replicas": count, "template": merge(base, patch or {})} for name, (count, patch) in roles.items()
                }
            },
        }

    return build


@pytest.fixture
def node() -> Callable[..., Body]:
    def build(name: str, zone: str = "zone-a", *, gpus: int = 8, tainted: bool = True, **labels: str) -> Body:
        own = {"kubernetes.io/hostname": name, **({ZONE: zone} if zone else {}), **labels}
        amounts = {"cpu": "96", "memory": "1000Gi", "pods": "110", **({"nvidia.com/gpu": str(gpus)} if gpus else {})}
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": own},
            "spec": {"taints": [GPU_TAINT]} if tainted else {},
            "status": {"allocatable": amounts, "nodeInfo": {"kubeletVersion": "v1.36.2"}},
        }

    return build


@pytest.fixture
def policy() -> Callable[..., Body]:
    def build(spec: Body, *, kind: str = "NetworkPolicy", name: str = "p", namespace: str = "train") -> Body:
        version = "cilium.io/v2" if kind.startswith("Cilium") else "networking.k8s.io/v1"
        return {
            "apiVersion": version,
            "kind": kind,
            "metadata": {"name": name, "namespace": namespace},
            "spec": spec,
        }

    return build


@pytest.fixture
def check() -> Callable[..., list[Finding]]:
    """``check(rule, object, ...)``: findings of that rule (of all rules when it is empty) on those objects."""

    def run(rule: str, *objects: Body, **facts: Any) -> list[Finding]:
        text = "\n---\n".join(json.dumps(o) for o in objects)
        inputs = load_text({"in.yaml": text}, LoadRequest(paths=("in.yaml",), facts=ClusterFacts(**facts)))
        return [f for f in analyse(inputs).findings if rule in ("", f.rule)]

    return run
