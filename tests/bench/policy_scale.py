"""
Scale of the policy engine: ``python tests/bench/policy_scale.py [FACTOR…]``.

One job of 1,024 ranks, 2,000 policies, 50,000 other pods (times FACTOR): compile, put every pod into its class, judge every
ephemeral port between every pair of rank classes both ways, the rendezvous port, and every other pod against rank 0.
Prints CPU seconds and memory per factor (each in a process of its own) and the growth. Goal at factor 1: 2 s, 1 GB.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "src"))

NAMESPACES = 100


def policies(count: int) -> list[dict[str, object]]:
    """Half Cilium, half Kubernetes policies over many namespaces; forty of them concern the job's namespace."""
    made: list[dict[str, object]] = []
    for i in range(count):
        namespace = "train" if i % 50 == 0 else f"ns{i % NAMESPACES}"
        app = "llm" if namespace == "train" else f"app{i % 37}"
        peer = {"matchLabels": {"app": app, "tier": f"t{i % 5}"}} if i % 100 else {"matchLabels": {"app": app}}
        if i % 2:
            spec = {
                "podSelector": {"matchLabels": {"app": app}},
                "policyTypes": ["Ingress"],
                "ingress": [{"from": [{"podSelector": peer}]}],
            }
            made.append(_object("networking.k8s.io/v1", "NetworkPolicy", f"np{i}", namespace, spec))
        else:
            ports = [
                {"ports": [{"port": "29500", "protocol": "TCP"}, {"port": "32768", "endPort": 60999, "protocol": "TCP"}]}
            ]
            spec = {
                "endpointSelector": {"matchLabels": {"app": app}},
                "ingress": [{"fromEndpoints": [peer], "toPorts": ports}],
            }
            made.append(_object("cilium.io/v2", "CiliumNetworkPolicy", f"cnp{i}", namespace, spec))
    return made


def _object(version: str, kind: str, name: str, namespace: str, spec: dict[str, object]) -> dict[str, object]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": namespace}, "spec": spec}


def run(factor: int) -> dict[str, float]:
    """One measurement in this process."""
    started = time.process_time()
    from stallscope.model.kube import from_body
    from stallscope.model.traffic import EPHEMERAL, Endpoint, PeerEdge, PortRange
    from stallscope.policy.engine import EngineOptions, compile_policies

    ranks = [
        Endpoint(
            name=f"llm-worker-{i}",
            namespace="train",
            labels=(
                ("app", "llm"),
                ("tier", f"t{i % 4}"),
                ("training.kubeflow.org/replica-index", str(i)),
                ("topology.kubernetes.io/zone", f"z{i % 3}"),
            ),
            node=f"n{i // 8}",
        )
        for i in range(1024 * factor)
    ]
    others = [
        Endpoint(
            name=f"pod-{i}",
            namespace=f"ns{i % NAMESPACES}",
            labels=(("app", f"app{i % 37}"), ("tier", f"t{i % 5}"), ("pod-template-hash", str(i % 997)), ("uid", str(i))),
        )
        for i in range(50_000 * factor)
    ]
    bodies = policies(2_000 * factor)
    made = time.process_time()
    policy_set = compile_policies(
        [from_body(b, file=f"{i}.yaml") for i, b in enumerate(bodies)], EngineOptions(cni="cilium")
    )
    compiled = time.process_time()
    classes = {}
    for rank in ranks:
        classes.setdefault(policy_set.endpoint_key(rank), rank)
    other_classes = {}
    for pod in others:
        other_classes.setdefault(policy_set.endpoint_key(pod), pod)
    grouped = time.process_time()
    stretches = 0
    for source in classes.values():
        for destination in classes.values():
            stretches += len(policy_set.evaluate_range(source, destination, PortRange(*EPHEMERAL)))
            policy_set.evaluate(PeerEdge(source=source, destination=destination, port=29500))
    for pod in other_classes.values():
        policy_set.evaluate(PeerEdge(source=pod, destination=ranks[0], port=29500))
    done = time.process_time()
    return {
        "make inputs": made - started,
        "compile": compiled - made,
        "classes": grouped - compiled,
        "judge": done - grouped,
        "engine total": done - made,
        "rank classes": len(classes),
        "other classes": len(other_classes),
        "stretches": stretches,
        "process CPU": time.process_time(),
        "peak MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def main() -> int:
    factors = [int(a) for a in sys.argv[1:] if a.isdigit()] or [1, 2, 4]
    if "--one" in sys.argv:
        print(json.dumps(run(factors[0])))
        return 0
    rows = []
    for factor in factors:
        command = [sys.executable, __file__, "--one", str(factor)]
        found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        rows.append((factor, found))
        print(f"x{factor}: " + ", ".join(f"{k} {v:.3g}" for k, v in found.items()))
    first = rows[0][1]
    for factor, found in rows[1:]:
        print(
            f"growth x{factor / rows[0][0]:g}: "
            + ", ".join(f"{k} x{found[k] / first[k]:.2f}" for k in ("engine total", "process CPU", "peak MB"))
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
