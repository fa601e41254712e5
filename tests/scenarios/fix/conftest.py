"""Helpers of the fix scenarios: manifests as text in, one run of `fix` out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stallscope.cli import fixrun, pipeline
from stallscope.cli.options import InputOptions
from stallscope.remedy.model import Choices

NODES = Path(__file__).parent / "nodes.yaml"


class Workshop:
    """``fix(text, other_text, nodes=…, select=…, cni=…, strategy=…)``: files 0.yaml, 1.yaml, … of the current directory."""

    def __call__(
        self,
        *texts: str,
        nodes: str | None = str(NODES),
        select: tuple[str, ...] = ("STL1", "STL2"),
        cni: str = "",
        **choices: Any,
    ) -> fixrun.Run:
        names = []
        for index, text in enumerate(texts):
            Path(f"{index}.yaml").write_text(text)
            names.append(f"{index}.yaml")
        options = InputOptions(paths=tuple(names), nodes=(nodes,) if nodes else (), cni=cni)
        return fixrun.run(options, pipeline.gate(select=select), Choices(**choices))

    def nodes(self, *nodes: str) -> str:
        """A file with these nodes."""
        Path("nodes.yaml").write_text("apiVersion: v1\nkind: List\nitems:\n" + "".join(nodes))
        return "nodes.yaml"

    @staticmethod
    def pytorchjob(**parts: Any) -> str:
        return pytorchjob(**parts)

    @staticmethod
    def node(name: str, zone: str, **parts: Any) -> str:
        return node(name, zone, **parts)


@pytest.fixture
def fix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    monkeypatch.chdir(tmp_path)
    return Workshop()


def pytorchjob(*, master: str = "", worker: str = "", workers: int = 3, labels: str = "") -> str:
    """A CPU coordinator and GPU workers; `master`/`worker` are extra lines of their pod specs, at column 10."""
    return f"""\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata:
  name: llm
  namespace: train
{labels}spec:
  pytorchReplicaSpecs:
    Master:
      replicas: 1
      template:
        spec:
{master}          containers:
            - name: pytorch
              image: registry.example/train:1
              command: [torchrun, train.py]
              resources:
                requests: {{cpu: "4", memory: 8Gi}}
    Worker:
      replicas: {workers}
      template:
        spec:
{worker}          tolerations:
            - {{key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}}
          containers:
            - name: pytorch
              image: registry.example/train:1
              command: [torchrun, train.py]
              resources:
                limits: {{nvidia.com/gpu: 8}}
"""


def node(name: str, zone: str, *, gpus: int = 0, taint: bool = True, cpu: int = 96) -> str:
    """One node of a node list."""
    taints = "  spec: {taints: [{key: nvidia.com/gpu, value: present, effect: NoSchedule}]}\n" if gpus and taint else ""
    devices = f', nvidia.com/gpu: "{gpus}"' if gpus else ""
    return (
        f"- apiVersion: v1\n  kind: Node\n  metadata:\n    name: {name}\n    labels: {{kubernetes.io/hostname: {name}, "
        f"topology.kubernetes.io/zone: {zone}}}\n{taints}"
        f'  status:\n    allocatable: {{cpu: "{cpu}", memory: 1000Gi{devices}, pods: "110"}}\n'
    )
