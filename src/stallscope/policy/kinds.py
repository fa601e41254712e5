"""Which objects are policies, and of which dialect: told by group and kind, so that a dialect is imported only when met."""

from __future__ import annotations

from stallscope.model.kube import KubeObject

CALICO_GROUPS = ("projectcalico.org", "crd.projectcalico.org")
#: Calico's previews of policies.
STAGED = frozenset({"StagedNetworkPolicy", "StagedGlobalNetworkPolicy", "StagedKubernetesNetworkPolicy"})
#: The baseline AdminNetworkPolicy; the API allows one, named ``default``.
BASELINE_ADMIN = "BaselineAdminNetworkPolicy"

_CALICO = frozenset({"NetworkPolicy", "GlobalNetworkPolicy"})
_CILIUM = frozenset({"CiliumNetworkPolicy", "CiliumClusterwideNetworkPolicy"})
_ADMIN = frozenset({"AdminNetworkPolicy", BASELINE_ADMIN})


def is_netpol(item: KubeObject) -> bool:
    """NetworkPolicy v1."""
    return item.kind == "NetworkPolicy" and item.group == "networking.k8s.io"


def is_cilium(item: KubeObject) -> bool:
    """CiliumNetworkPolicy and CiliumClusterwideNetworkPolicy."""
    return item.kind in _CILIUM and item.group == "cilium.io"


def is_calico(item: KubeObject) -> bool:
    """Calico's own NetworkPolicy and GlobalNetworkPolicy."""
    return item.kind in _CALICO and item.group in CALICO_GROUPS


def is_anp(item: KubeObject) -> bool:
    """AdminNetworkPolicy and BaselineAdminNetworkPolicy."""
    return item.kind in _ADMIN and item.api_version == "policy.networking.k8s.io/v1alpha1"


def is_kcnp(item: KubeObject) -> bool:
    """ClusterNetworkPolicy, the two's successor."""
    return item.kind == "ClusterNetworkPolicy" and item.api_version == "policy.networking.k8s.io/v1alpha2"
