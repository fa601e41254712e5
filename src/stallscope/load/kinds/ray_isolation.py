"""The NetworkPolicies KubeRay creates for ``spec.networkPolicy`` (kuberay networkpolicy_controller.go)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stallscope.load.kinds.ray import Cluster, dashboard_port
from stallscope.model.source import as_list, as_map, as_str, dig
from stallscope.model.workload import ExtraObject


def isolation_of(cluster: Cluster, *, submitter: Mapping[str, str] | None = None) -> tuple[ExtraObject, ...]:
    """
    One policy for the head and one for each worker group: all traffic inside the cluster is allowed, the rest follows the
    mode (DenyAll unless said), DNS included in what is denied. `submitter`: labels of a RayJob's submitter pod.
    """
    config = cluster.spec.get("networkPolicy")
    if not isinstance(config, Mapping):
        return ()
    mode = as_str(config.get("mode"), "DenyAll")
    opened = [_submitter_rule(cluster, submitter)] if submitter else []
    policies = [_policy(cluster, "head", mode, as_map(config.get("head")), {"ray.io/node-type": "head"}, opened)]
    special = {as_str(dig(g, "groupName")): as_map(g) for g in as_list(config.get("workerGroups"))}
    for group in as_list(cluster.spec.get("workerGroupSpecs")):
        name = as_str(dig(group, "groupName"))
        rules = special.get(name, as_map(config.get("worker")))
        chosen = {"ray.io/node-type": "worker", "ray.io/group": name}
        policies.append(_policy(cluster, f"workers-{name}", mode, rules, chosen, []))
    return tuple(ExtraObject(body=p, because="KubeRay creates it for spec.networkPolicy") for p in policies)


def _policy(
    cluster: Cluster, suffix: str, mode: str, rules: Mapping[str, Any], labels: Mapping[str, str], opened: list[Any]
) -> dict[str, Any]:
    peer = {"podSelector": {"matchLabels": {"ray.io/cluster": cluster.label}}}
    spec: dict[str, Any] = {"podSelector": {"matchLabels": {"ray.io/cluster": cluster.label, **labels}}, "policyTypes": []}
    if mode in ("DenyAll", "DenyAllIngress"):
        spec["policyTypes"].append("Ingress")
        spec["ingress"] = [{"from": [peer]}, *opened, *as_list(rules.get("ingressRules"))]
    if mode in ("DenyAll", "DenyAllEgress"):
        spec["policyTypes"].append("Egress")
        spec["egress"] = [{"to": [peer]}, *as_list(rules.get("egressRules"))]
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": f"{cluster.name}-{suffix}", "namespace": cluster.obj.namespace},
        "spec": spec,
    }


def _submitter_rule(cluster: Cluster, labels: Mapping[str, str]) -> dict[str, Any]:
    return {
        "from": [{"podSelector": {"matchLabels": dict(labels)}}],
        "ports": [{"protocol": "TCP", "port": dashboard_port(cluster)}],
    }
