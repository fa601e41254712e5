"""
How the placement judgement grows: ``python tests/bench/placement_scale.py [--profile]``.

Prints seconds of CPU for ranks x nodes and the ratio to the step before; no assertion on time. Every line is one job of
identical full-node or one-GPU ranks (and a CPU coordinator) on nodes in three zones, each with a daemon already bound.
"""

from __future__ import annotations

import argparse
import itertools
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))

from stallscope.model.topology import HOSTNAME, ZONE, Topology, bound_pods, node_from_body
from stallscope.placement.group import PodRequest, judge_group

JOB = {"training.kubeflow.org/job-name": "llm"}
STEPS = ((8, 16), (32, 200), (128, 1000), (1024, 5000))


def node(index: int, zones: int) -> dict[str, Any]:
    name = f"n{index}"
    gpus = {"nvidia.com/gpu": "8"} if index % 5 else {}
    return {
        "metadata": {"name": name, "labels": {HOSTNAME: name, ZONE: f"zone-{'abcdefgh'[index % zones]}"}},
        "spec": {"taints": [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}] if gpus else []},
        "status": {"allocatable": {"cpu": "96", "memory": "1000Gi", "pods": "110", **gpus}},
    }


def daemon(index: int) -> dict[str, Any]:
    """Usage differs from node to node, as on a real cluster."""
    requests = {"cpu": f"{100 + index * 7 % 900}m", "memory": f"{200 + index * 13 % 700}Mi"}
    return {
        "metadata": {"name": f"d{index}", "namespace": "kube-system", "labels": {"app": "d"}},
        "spec": {"nodeName": f"n{index}", "containers": [{"name": "c", "resources": {"requests": requests}}]},
    }


def topology(nodes: int, zones: int = 3, *, tainted: bool = True) -> Topology:
    bodies = [node(i, zones) for i in range(nodes)]
    return Topology(
        nodes=tuple(node_from_body(b if tainted else {**b, "spec": {}}) for b in bodies),
        bound_pods=bound_pods([daemon(i) for i in range(nodes)]),
    )


def affinity(*labels: dict[str, str]) -> dict[str, Any]:
    terms = [{"topologyKey": ZONE, "labelSelector": {"matchLabels": x}} for x in labels]
    return {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}


def spread(key: str, skew: int = 1) -> dict[str, Any]:
    constraint = {"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule"}
    return {"topologySpreadConstraints": [{**constraint, "labelSelector": {"matchLabels": JOB}}]}


def apart() -> dict[str, Any]:
    terms = [{"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": JOB}}]
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}


WORKER = {**JOB, "role": "worker"}
VARIANTS: dict[str, tuple[dict[str, Any], dict[str, Any] | None]] = {
    "alone": ({}, None),
    "with coordinator": ({}, {}),
    "untainted": ({}, {}),
    "eight zones": ({}, {}),
    "pin": ({"nodeSelector": {ZONE: "zone-a"}}, {"nodeSelector": {ZONE: "zone-a"}}),
    "self-affine": (affinity(JOB), affinity(JOB)),
    "role-aware": (affinity(WORKER), affinity(WORKER)),
    "coordinator to workers": ({}, affinity(WORKER)),
    "zone spread": (spread(ZONE), spread(ZONE)),
    "loose zone spread": (spread(ZONE, 50), spread(ZONE, 50)),
    "hostname spread": (spread(HOSTNAME), spread(HOSTNAME)),
    "one per node": (apart(), apart()),
}


def job(ranks: int, gpus: int, worker: dict[str, Any], coordinator: dict[str, Any] | None) -> list[PodRequest]:
    tolerations = [{"key": "nvidia.com/gpu", "operator": "Exists"}]
    limits = {"cpu": str(gpus), "memory": f"{8 * gpus}Gi", "nvidia.com/gpu": str(gpus)}
    spec = {"containers": [{"name": "c", "resources": {"limits": limits}}], "tolerations": tolerations, **worker}
    pods = [pod(f"llm-worker-{i}", "worker", spec) for i in range(ranks)]
    if coordinator is not None:
        own = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "2", "memory": "4Gi"}}}], **coordinator}
        pods.insert(0, pod("llm-master-0", "master", own))
    return pods


def pod(name: str, role: str, spec: dict[str, Any]) -> PodRequest:
    labels = {**JOB, "role": role, "training.kubeflow.org/replica-index": name.rpartition("-")[2]}
    return PodRequest(
        name=name, klass=role, body={"metadata": {"name": name, "namespace": "train", "labels": labels}, "spec": spec}
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--variant", action="append")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--whole", action="store_true", help="one run of the largest step, for timing the whole process")
    arguments = parser.parse_args()
    if arguments.whole:
        judge_group(job(1024, 8, {}, {}), topology(5000))
        return 0
    for gpus in (8, 1):
        for name, (worker, coordinator) in VARIANTS.items():
            if arguments.variant and name not in arguments.variant:
                continue
            line(name, gpus, worker, coordinator, profile=arguments.profile)
    subprocess.run([sys.executable, __file__, "--whole"], check=True)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"whole process, 1024 ranks and a coordinator on 5000 nodes: {used.ru_utime + used.ru_stime:.2f} s of CPU")
    return 0


def line(name: str, gpus: int, worker: dict[str, Any], coordinator: dict[str, Any] | None, *, profile: bool) -> None:
    times = []
    for ranks, nodes in STEPS:
        cluster = topology(nodes, 8 if name == "eight zones" else 3, tainted=name != "untainted")
        pods = job(ranks, gpus, worker, coordinator)
        started = time.process_time()
        if profile and (ranks, nodes) == STEPS[-1]:
            import cProfile

            with cProfile.Profile() as profiler:
                outcome = judge_group(pods, cluster)
            profiler.print_stats("cumulative")
        else:
            outcome = judge_group(pods, cluster)
        times.append(time.process_time() - started)
    ratios = " ".join(f"x{b / a:.1f}" for a, b in itertools.pairwise(times))
    shown = " ".join(f"{t:.3f}" for t in times)
    said = f"split={outcome.may_split} must start={outcome.must_start_whole} exhaustive={outcome.exhaustive}"
    print(f"{gpus} GPU a rank, {name:24} {shown} s ({ratios})  {said}")


if __name__ == "__main__":
    raise SystemExit(main())
