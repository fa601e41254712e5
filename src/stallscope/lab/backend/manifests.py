"""
What a rehearsal puts into a cluster: probe pods that look to policies as the job's pods do, a kind config with the
topology's zones and taints, and the steps to install a CNI that enforces policies.

Probe pods run agnhost, the image of Kubernetes' own network policy tests (kubernetes/kubernetes test/images/agnhost): it
listens with `porter` and connects with `connect`. Every object carries the run's label, and nothing else is deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any

import yaml

from stallscope.model.topology import Topology
from stallscope.model.traffic import Endpoint

IMAGE = "registry.k8s.io/e2e-test-images/agnhost:2.53"
RUN_LABEL = "stallscope.dev/run"
NODE_LABEL = "stallscope.dev/node"
HOSTNAME = "kubernetes.io/hostname"
_NAME_LIMIT = 63
#: Labels that the API server or the kubelet set from the node; a pod may not bring its own.
_FROM_NODE = ("topology.kubernetes.io/",)


def probe_name(run_id: str, pod: str) -> str:
    """The probe's name: recognisable, unique to the run, a DNS label, and not the job's own pod name."""
    name = f"stsc-{run_id}-{pod.removesuffix('-*')}"
    if len(name) <= _NAME_LIMIT:
        return name
    digest = sha256(pod.encode()).hexdigest()[:8]
    return f"{name[: _NAME_LIMIT - 9].rstrip('-.')}-{digest}"


def probe_pod(
    run_id: str, endpoint: Endpoint, node_selector: Mapping[str, str], ports: Sequence[int], image: str
) -> dict[str, Any]:
    """A pod with the endpoint's labels, service account and named ports, listening on `ports`, on the wanted node."""
    labels = {k: v for k, v in endpoint.labels if not k.startswith(_FROM_NODE)}
    named = [{"name": n, "containerPort": number, "protocol": str(p)} for n, p, number in endpoint.named_ports]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": probe_name(run_id, endpoint.name),
            "namespace": endpoint.namespace,
            "labels": {**labels, RUN_LABEL: run_id},
        },
        "spec": {
            "serviceAccountName": endpoint.service_account,
            "automountServiceAccountToken": False,
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 0,
            "activeDeadlineSeconds": 900,  # whatever becomes of us, the probe ends
            "nodeSelector": dict(node_selector),
            "tolerations": [{"operator": "Exists"}],
            "containers": [
                {
                    "name": "probe",
                    "image": image,
                    "args": ["porter"],
                    "env": [{"name": f"SERVE_PORT_{port}", "value": "stallscope"} for port in ports],
                    "ports": named,
                    "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
                    "resources": {"requests": {"cpu": "1m", "memory": "8Mi"}},
                }
            ],
        },
    }


def namespace(run_id: str, name: str) -> dict[str, Any]:
    """A namespace of ours."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {RUN_LABEL: run_id}}}


def deny_all(run_id: str, space: str, app: str) -> dict[str, Any]:
    """A policy that isolates pods labelled ``app``: a CNI that lets a connect through it does not enforce policies."""
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": f"deny-{app}", "namespace": space, "labels": {RUN_LABEL: run_id}},
        "spec": {"podSelector": {"matchLabels": {"app": app}}, "policyTypes": ["Ingress"]},
    }


def connect_script(targets: Iterable[tuple[str, int]], seconds: int = 2) -> list[str]:
    """One exec that tries every target at once and prints ``open|shut IP PORT`` a line."""
    lines = [
        f"(if /agnhost connect {ip}:{port} --timeout={seconds}s --protocol=tcp >/dev/null 2>&1;"
        f" then echo open {ip} {port}; else echo shut {ip} {port}; fi) &"
        for ip, port in targets
    ]
    return ["sh", "-c", "\n".join([*lines, "wait"])]


def kind_config(topology: Topology, name: str = "stallscope") -> str:
    """
    A kind cluster with one worker a node of `topology`, its labels and taints, and kind's own CNI off (it enforces no
    policies). kind names nodes itself, so each carries its real name in the label `stallscope.dev/node`.
    """
    nodes: list[dict[str, Any]] = [{"role": "control-plane"}]
    for node in topology.nodes:
        labels = {k: v for k, v in node.labels.items() if _may_set(k)}
        entry: dict[str, Any] = {"role": "worker", "labels": {**labels, NODE_LABEL: node.name}}
        if node.taints:
            join = {
                "kind": "JoinConfiguration",
                "nodeRegistration": {
                    "taints": [{"key": t.key, "value": t.value, "effect": t.effect} for t in node.taints],
                },
            }
            entry["kubeadmConfigPatches"] = [_Literal(yaml.safe_dump(join, sort_keys=False))]
        nodes.append(entry)
    body = {
        "kind": "Cluster",
        "apiVersion": "kind.x-k8s.io/v1alpha4",
        "name": name,
        "networking": {"disableDefaultCNI": True},
        "nodes": nodes,
    }
    return str(yaml.dump(body, Dumper=_Dumper, sort_keys=False))


def _may_set(label: str) -> bool:
    """
    Labels a kubelet may give itself: not those of the machine, and of kubernetes.io only topology and node.kubernetes.io
    (KEP-279, NodeRestriction).
    """
    prefix = label.partition("/")[0] if "/" in label else ""
    if prefix in ("topology.kubernetes.io", "node.kubernetes.io"):
        return True
    return not (prefix.endswith(("kubernetes.io", "k8s.io")) or prefix == "stallscope.dev")


class _Literal(str):
    """Text to be written as a block, as people write patches."""


class _Dumper(yaml.SafeDumper):
    """SafeDumper that knows `_Literal`."""


_Dumper.add_representer(_Literal, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|"))


def kind_steps(config: str, name: str = "stallscope", version: str = "1.19.4") -> tuple[str, ...]:
    """The commands that make the cluster, for a person to run."""
    return (
        f"kind create cluster --config {config}",
        f"cilium install --context kind-{name} --version {version} --set ipam.mode=kubernetes",
        f"cilium status --context kind-{name} --wait",
        f"stallscope rehearse PATH --backend kind --context kind-{name}",
    )
