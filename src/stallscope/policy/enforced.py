"""Which policy kinds the engine of a cluster enforces; the rest has no effect there, and we say why."""

from __future__ import annotations

from stallscope.model.kube import KubeObject
from stallscope.policy.kinds import CALICO_GROUPS, STAGED, is_anp, is_calico, is_cilium, is_kcnp, is_netpol

#: (group, kind) of policies whose semantics are not modelled, with the engine that enforces them.
UNMODELLED = {
    ("crd.antrea.io", "NetworkPolicy"): "antrea",
    ("crd.antrea.io", "ClusterNetworkPolicy"): "antrea",
    ("k8s.ovn.org", "EgressFirewall"): "ovn",
    ("k8s.ovn.org", "NetworkQoS"): "ovn",
}

_NAMES = {
    "cilium": "Cilium",
    "calico": "Calico",
    "ovn": "OVN-Kubernetes",
    "antrea": "Antrea",
    "generic": "the cluster's engine",
}


def is_policy(item: KubeObject) -> bool:
    """Every kind that is meant to decide who may talk to whom, whether or not it is enforced here."""
    return (
        is_netpol(item)
        or is_cilium(item)
        or is_calico(item)
        or is_anp(item)
        or is_kcnp(item)
        or (item.group, item.kind) in UNMODELLED
        or (item.kind in STAGED and item.group in CALICO_GROUPS)
        or (item.kind == "MultiNetworkPolicy" and item.group == "k8s.cni.cncf.io")
    )


def why_ignored(item: KubeObject, cni: str, version: tuple[int, ...], *, cluster_policies: bool) -> str:
    """
    Why this policy object has no effect on a cluster with this engine; empty when it is enforced. `cluster_policies`: the
    Cilium agent handles ClusterNetworkPolicy.
    """
    if cni == "none":
        return "this cluster has no engine that enforces network policy"
    if item.kind in STAGED:
        return "staged policies are only logged, never enforced"
    if item.kind == "MultiNetworkPolicy":
        return "it governs secondary networks only, by its own controller"
    if is_cilium(item) and cni != "cilium":
        return f"only Cilium enforces {item.kind}, this cluster runs {_NAMES.get(cni, cni)}"
    if (is_calico(item) or item.group in CALICO_GROUPS) and cni != "calico":
        return f"only Calico enforces its own {item.kind}, this cluster runs {_NAMES.get(cni, cni)}"
    owner = UNMODELLED.get((item.group, item.kind), cni)
    if owner != cni:
        return f"only {_NAMES[owner]} enforces {item.kind} of {item.group}"
    if cni == "cilium":
        return _cilium(item, cluster_policies)
    return _cluster_kinds(item, cni, version)


def _cilium(item: KubeObject, cluster_policies: bool) -> str:
    if is_anp(item):
        return f"Cilium does not implement {item.kind}"
    if is_kcnp(item) and not cluster_policies:
        return "Cilium enforces ClusterNetworkPolicy only from 1.20, with enable-k8s-cluster-network-policy"
    return ""


def _cluster_kinds(item: KubeObject, cni: str, version: tuple[int, ...]) -> str:
    """network-policy-api kinds by engine (implementation list of April 2026, reference/policy.md §3)."""
    if is_kcnp(item):
        if cni in ("ovn", "antrea"):
            return f"{_NAMES[cni]} implements the older AdminNetworkPolicy, not ClusterNetworkPolicy"
        if cni == "calico" and version and version < (3, 32):
            return "Calico implements ClusterNetworkPolicy from 3.32"
    if is_anp(item) and cni == "calico" and (not version or not (3, 29) <= version[:2] <= (3, 31)):
        return f"Calico implements {item.kind} in 3.29 to 3.31 only"
    return ""
