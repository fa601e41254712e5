"""
5 MB of manifests, with the place of every key and item, against PyYAML's own C loader that keeps none.

    python tests/bench/yaml_stream.py [--mb 5]

CPU seconds are the best of several runs; what counts is the ratio. Peak memory is that of a process of its own.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import yaml

from stallscope.load.stream import parse_stream
from stallscope.model.source import span_of

GOAL_SECONDS = 1.3  # a goal for 5 MB on the machine of reference/ecosystem.md, printed and not asserted

JOB = """\
# job {i}, written by hand with comments and both styles
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata:
  name: train-{i}
  namespace: team-{team}
  labels: {{app: train-{i}, team: "t{team}"}}
spec:
  # two roles
  runPolicy:
    cleanPodPolicy: None
    backoffLimit: 3
  pytorchReplicaSpecs:
    Master:
      replicas: 1
      restartPolicy: OnFailure
      template:
        metadata:
          annotations:
            sidecar.istio.io/inject: "false"
        spec:
          containers:
            - name: pytorch
              image: example.com/train:v{i}
              command: ["torchrun", "--nproc_per_node=8", "train.py"]
              args:
                - --epochs=10
                - --lr=0.1
              ports:
                - {{containerPort: 23456, name: pytorchjob-port}}
              env:
                - name: NCCL_DEBUG
                  value: INFO
                - name: NCCL_SOCKET_IFNAME
                  value: eth0
              resources:
                limits:
                  nvidia.com/gpu: 8   # all of them
                  memory: 64Gi
                  cpu: "16"
          tolerations:
            - key: nvidia.com/gpu
              operator: Exists
              effect: NoSchedule
    Worker:
      replicas: {replicas}
      restartPolicy: OnFailure
      template:
        spec:
          nodeSelector:
            topology.kubernetes.io/zone: zone-a
          containers:
            - name: pytorch
              image: example.com/train:v{i}
              command: ["torchrun", "--nproc_per_node=8", "train.py"]
              resources: {{limits: {{nvidia.com/gpu: 8, memory: 64Gi}}}}
          tolerations:
            - key: nvidia.com/gpu
              operator: Exists
              effect: NoSchedule
---
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata:
  name: boundary-{i}
  namespace: team-{team}
spec:
  description: >-
    Zone boundary of team {team}, kept
    short and readable.
  endpointSelector:
    matchLabels:
      app: train-{i}
  ingress:
    - fromEndpoints:
        - matchLabels:
            app: train-{i}
      toPorts:
        - ports:
            - {{port: "29500", protocol: TCP}}
            # the store
            - port: "23456"
              protocol: TCP
  egress:
    - toEndpoints:
        - matchLabels: {{app: train-{i}}}
---
"""


def manifests(size: int) -> str:
    """PyTorchJobs and CiliumNetworkPolicies, `size` characters or a little more."""
    parts: list[str] = []
    length = 0
    while length < size:
        i = len(parts)
        parts.append(JOB.format(i=i, team=i % 20, replicas=i % 8 + 1))
        length += len(parts[-1])
    return "".join(parts)


def node_dump(size: int) -> str:
    """``kubectl get nodes -o json``, about `size` characters."""
    images = [{"names": [f"registry/{k}@sha256:{'a' * 64}", f"registry/{k}:v1"], "sizeBytes": 10**8 + k} for k in range(50)]
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n", "labels": {f"feature.node.kubernetes.io/cpu-{k}": "true" for k in range(40)}},
        "spec": {"taints": [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}]},
        "status": {"allocatable": {"cpu": "96", "memory": "1Ti", "nvidia.com/gpu": "8"}, "images": images},
    }
    one = len(json.dumps(node, indent=4))
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": [node] * max(1, size // one)}, indent=4)


def cpu(run: Callable[[], object], runs: int = 4) -> float:
    best = float("inf")
    for _ in range(runs):
        started = time.process_time()
        result = run()
        best = min(best, time.process_time() - started)
        del result
    return best


def peak_of(what: str, size: int) -> float:
    """Peak resident MiB of a process that only does `what`."""
    done = subprocess.run(
        [sys.executable, __file__, "--only", what, "--mb", str(size / 1e6)], capture_output=True, check=True
    )
    return float(done.stdout)


def only(what: str, text: str) -> None:
    kept: object
    if what == "ours":
        kept = parse_stream(text)
    elif what == "csafe":
        kept = list(yaml.load_all(text, yaml.CSafeLoader))
    else:
        kept = None
    print(peak_memory())
    del kept


def peak_memory() -> float:
    """MiB. getrusage would give the parent's peak when that was higher: Linux keeps it across exec."""
    status = Path("/proc/self/status")
    if status.exists():
        return int(status.read_text().split("VmHWM:")[1].split()[0]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mb", type=float, default=5.0)
    parser.add_argument("--only", choices=["ours", "csafe", "nothing"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    size = int(options.mb * 1e6)
    text = manifests(size)
    if options.only:
        only(options.only, text)
        return
    documents, problems = parse_stream(text, file="big.yaml")
    theirs = list(yaml.load_all(text, yaml.CSafeLoader))
    assert not problems
    assert [d.value for d in documents] == theirs, "the two readers disagree"
    megabytes = len(text) / 1e6
    print(f"input        {megabytes:.2f} MB, {len(documents)} documents, {text.count(chr(10)):,} lines")
    ours, csafe = cpu(lambda: parse_stream(text)), cpu(lambda: list(yaml.load_all(text, yaml.CSafeLoader)))
    base = peak_of("nothing", size)
    report("ours", ours, megabytes, peak_of("ours", size) - base, "with the place of every key, value and item")
    report("CSafeLoader", csafe, megabytes, peak_of("csafe", size) - base, "without places")
    print(f"ratio        {ours / csafe:.2f} of CSafeLoader; goal {GOAL_SECONDS * megabytes / 5:.2f} s for this size")
    some = documents[: len(documents) // 10]
    asked = cpu(lambda: [span_of(d.value, ("metadata", "name")) for d in some], 1)
    print(f"a place      {asked / max(len(some), 1) * 1e6:.0f} µs when first asked for, the table of lines included")
    dump = node_dump(size)
    lazily, loads = cpu(lambda: parse_stream(dump)), cpu(lambda: json.loads(dump))
    print(
        f"JSON dump    {lazily:.3f} s CPU, {len(dump) / 1e6 / lazily:.0f} MB/s, places on demand; json.loads {loads:.3f} s"
    )


def report(name: str, seconds: float, megabytes: float, peak: float, what: str) -> None:
    print(f"{name:12} {seconds:.2f} s CPU, {megabytes / seconds:.1f} MB/s, +{peak:.0f} MiB at its peak, {what}")


if __name__ == "__main__":
    main()
