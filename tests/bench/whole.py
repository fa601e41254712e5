"""
The whole of `check` on a cluster: ``python tests/bench/whole.py [FACTOR…]``.

One PyTorchJob of 1,024 ranks, 2,000 policies (half NetworkPolicy, half CiliumNetworkPolicy) over 100 namespaces, 5,000 nodes
in three zones and 50,000 bound pods (times FACTOR), written as users have them: manifests as YAML, what the cluster holds as
JSON. Prints wall and CPU seconds and peak memory of the whole process, what of it is reading (beside the plain parsers), and
the growth. Goals at factor 1: judging and rules within 2 s, 1 GB in all.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "src"))

NAMESPACES = 100
ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"
Body = dict[str, Any]

TEMPLATE = """
      metadata: {labels: {app: llm}}
      spec:
        tolerations: [{key: nvidia.com/gpu, operator: Exists}]
        containers:
        - name: pytorch
          image: train
          command: [torchrun, --nproc_per_node=8, train.py]
          resources: {limits: {cpu: "8", memory: 64Gi, nvidia.com/gpu: "8"}}
"""


def job(ranks: int) -> str:
    """`ranks` ranks, eight a pod."""
    lines = ["apiVersion: kubeflow.org/v1", "kind: PyTorchJob", "metadata: {name: llm, namespace: train}", "spec:"]
    lines.append("  pytorchReplicaSpecs:")
    for role, replicas in (("Master", 1), ("Worker", ranks - 1)):
        lines += [f"    {role}:", f"      replicas: {replicas}", "      template:"]
        lines += ["    " + line for line in TEMPLATE.splitlines() if line]
    return "\n".join(lines).replace("nproc_per_node=8", "nproc_per_node=1").replace('gpu: "8"', 'gpu: "1"') + "\n"


def policies(count: int) -> Iterator[Body]:
    """Forty of 2,000 stand in the job's namespace."""
    for i in range(count):
        namespace = "train" if i % 50 == 0 else f"ns{i % NAMESPACES}"
        app = "llm" if namespace == "train" else f"app{i % 37}"
        peer = {"matchLabels": {"app": app, "tier": f"t{i % 5}"}} if i % 100 else {"matchLabels": {"app": app}}
        if i % 2:
            ports = [{"protocol": "TCP", "port": 8080}]
            spec = {
                "podSelector": {"matchLabels": {"app": app}},
                "ingress": [{"from": [{"podSelector": peer}], "ports": ports}],
            }
            yield thing("networking.k8s.io/v1", "NetworkPolicy", f"np{i}", namespace, spec=spec)
        else:
            ports = [{"port": "23456", "protocol": "TCP"}, {"port": "32768", "endPort": 60999, "protocol": "TCP"}]
            rule = {"fromEndpoints": [peer], "toPorts": [{"ports": ports}]}
            spec = {"endpointSelector": {"matchLabels": {"app": app}}, "ingress": [rule]}
            yield thing("cilium.io/v2", "CiliumNetworkPolicy", f"cnp{i}", namespace, spec=spec)


def nodes(count: int) -> Iterator[Body]:
    for i in range(count):
        gpus = {"nvidia.com/gpu": "8"} if i % 5 else {}
        taints = [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}] if gpus else []
        made = thing("v1", "Node", f"n{i}", spec={"taints": taints})
        made["metadata"]["labels"] = {HOSTNAME: f"n{i}", ZONE: f"zone-{'abc'[i % 3]}"}
        yield made | {"status": {"allocatable": {"cpu": "96", "memory": "1000Gi", "pods": "110", **gpus}}}


def pods(count: int, on: int) -> Iterator[Body]:
    """Of 997 Deployments, each with requests of its own, spread over the namespaces and nodes."""
    for i in range(count):
        deployment = i % 997
        requests = {"cpu": f"{100 + deployment * 7 % 900}m", "memory": f"{200 + deployment * 13 % 700}Mi"}
        container = {
            "name": "c",
            "image": "service",
            "resources": {"requests": requests},
            "ports": [{"containerPort": 8080}],
        }
        made = thing(
            "v1", "Pod", f"pod-{i}", f"ns{i % NAMESPACES}", spec={"nodeName": f"n{i % on}", "containers": [container]}
        )
        made["metadata"]["labels"] = {
            "app": f"app{deployment % 37}",
            "tier": f"t{deployment % 5}",
            "pod-template-hash": f"{deployment:x}",
        }
        yield made | {"status": {"phase": "Running"}}


def thing(version: str, kind: str, name: str, namespace: str = "", **parts: Any) -> Body:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **parts}


def write(directory: Path, factor: int) -> None:
    """The input of one factor as files."""
    (directory / "job.yaml").write_text(job(1024 * factor))
    dumps = (json.dumps(p) for p in policies(2000 * factor))
    (directory / "policies.yaml").write_text("---\n" + "\n---\n".join(dumps) + "\n")
    for name, items in (("nodes", nodes(5000 * factor)), ("pods", pods(50_000 * factor, 5000 * factor))):
        listed = ",\n".join(map(json.dumps, items))
        (directory / f"{name}.json").write_text(f'{{"apiVersion": "v1", "kind": "List", "items": [\n{listed}\n]}}\n')


def phases(directory: str) -> dict[str, float]:
    """CPU seconds of each part, in this process."""
    from stallscope.judge.joint import judge
    from stallscope.load.inputs import LoadRequest, load_inputs
    from stallscope.rules.registry import run_rules

    gc.set_threshold(200_000, 50, 1000)  # as the command line does
    marks = [time.process_time()]
    inputs = load_inputs(LoadRequest(paths=(directory,)))
    marks.append(time.process_time())
    judgement = judge(inputs)
    marks.append(time.process_time())
    findings = run_rules(judgement)
    marks.append(time.process_time())
    spent = [b - a for a, b in itertools.pairwise(marks)]
    return {"read": spent[0], "judge": spent[1], "rules": spent[2], "findings": len(findings)}


def floor(directory: str) -> float:
    """CPU seconds of the plain parsers, which know no places."""
    import yaml

    started = time.process_time()
    for file in Path(directory).iterdir():
        text = file.read_text()
        parsed = [json.loads(text)] if file.suffix == ".json" else list(yaml.load_all(text, yaml.CSafeLoader))
        del parsed
    return time.process_time() - started


def whole(directory: str) -> dict[str, float]:
    """One `check`, as a user runs it."""
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-m", "stallscope", "check", directory, "--cni", "cilium", "-o", "short"]
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.perf_counter() - started
    return {"wall": wall, "CPU": used.ru_utime + used.ru_stime, "peak MB": used.ru_maxrss / 1024, "exit": process.returncode}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("factors", nargs="*", type=int)
    parser.add_argument("--phases", metavar="DIR", help="judge DIR in this process and print what each part took")
    parser.add_argument("--profile", action="store_true", help="with --phases: where the time goes")
    arguments = parser.parse_args()
    if arguments.phases:
        if arguments.profile:
            import cProfile

            cProfile.runctx("phases(directory)", {"phases": phases, "directory": arguments.phases}, {}, sort="tottime")
        else:
            print(json.dumps(phases(arguments.phases)))
        return 0
    rows = []
    for factor in arguments.factors or [1, 2, 4]:
        with tempfile.TemporaryDirectory() as directory:
            write(Path(directory), factor)
            found = whole(directory)
            rows.append((factor, found))
            print(f"x{factor}: " + ", ".join(f"{k} {v:.3g}" for k, v in found.items()), flush=True)
            if len(rows) == 1:
                command = [sys.executable, __file__, "--phases", directory]
                parts = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
                print("    of it: " + ", ".join(f"{k} {v:.3g}" for k, v in parts.items()))
                spent = floor(directory)
                ratio = parts["read"] / spent
                print(f"    json.loads and yaml.CSafeLoader of the same files: {spent:.3g} s, reading is {ratio:.2g} x that")
    first = rows[0][1]
    for factor, found in rows[1:]:
        grown = (f"{k} x{found[k] / first[k]:.1f}" for k in ("CPU", "peak MB"))
        print(f"growth x{factor / rows[0][0]:g}: " + ", ".join(grown))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
