"""Which kinds live outside namespaces. From the CRDs and API references of the projects named; the rest is namespaced."""

from __future__ import annotations

_CLUSTER_SCOPED: dict[str, frozenset[str]] = {
    "": frozenset({"Node", "Namespace", "PersistentVolume", "ComponentStatus"}),
    "admissionregistration.k8s.io": frozenset(
        {
            "MutatingWebhookConfiguration",
            "ValidatingWebhookConfiguration",
            "ValidatingAdmissionPolicy",
            "ValidatingAdmissionPolicyBinding",
            "MutatingAdmissionPolicy",
            "MutatingAdmissionPolicyBinding",
        }
    ),
    "apiextensions.k8s.io": frozenset({"CustomResourceDefinition"}),
    "apiregistration.k8s.io": frozenset({"APIService"}),
    "certificates.k8s.io": frozenset({"CertificateSigningRequest"}),
    "rbac.authorization.k8s.io": frozenset({"ClusterRole", "ClusterRoleBinding"}),
    "scheduling.k8s.io": frozenset({"PriorityClass"}),
    "storage.k8s.io": frozenset({"StorageClass", "CSIDriver", "CSINode", "VolumeAttachment", "VolumeAttributesClass"}),
    "networking.k8s.io": frozenset({"IngressClass", "IPAddress", "ServiceCIDR"}),
    "node.k8s.io": frozenset({"RuntimeClass"}),
    "resource.k8s.io": frozenset({"DeviceClass", "ResourceSlice"}),
    "policy.networking.k8s.io": frozenset({"AdminNetworkPolicy", "BaselineAdminNetworkPolicy", "ClusterNetworkPolicy"}),
    "gateway.networking.k8s.io": frozenset({"GatewayClass"}),
    "cilium.io": frozenset(
        {
            "CiliumClusterwideNetworkPolicy",
            "CiliumClusterwideEnvoyConfig",
            "CiliumCIDRGroup",
            "CiliumNode",
            "CiliumIdentity",
            "CiliumExternalWorkload",
            "CiliumEgressGatewayPolicy",
            "CiliumLoadBalancerIPPool",
            "CiliumL2AnnouncementPolicy",
            "CiliumPodIPPool",
            "CiliumBGPClusterConfig",
            "CiliumBGPPeerConfig",
            "CiliumBGPAdvertisement",
            "CiliumBGPNodeConfig",
        }
    ),
    "projectcalico.org": frozenset(
        {
            "GlobalNetworkPolicy",
            "StagedGlobalNetworkPolicy",
            "GlobalNetworkSet",
            "HostEndpoint",
            "IPPool",
            "Tier",
            "FelixConfiguration",
            "KubeControllersConfiguration",
            "ClusterInformation",
            "BGPConfiguration",
            "BGPPeer",
        }
    ),
    "crd.antrea.io": frozenset({"ClusterNetworkPolicy", "ClusterGroup", "Tier", "ExternalIPPool", "Egress", "IPPool"}),
    "k8s.ovn.org": frozenset(
        {"EgressIP", "AdminPolicyBasedExternalRoute", "ClusterUserDefinedNetwork", "EgressService", "RouteAdvertisements"}
    ),
    "trainer.kubeflow.org": frozenset({"ClusterTrainingRuntime"}),
    "kueue.x-k8s.io": frozenset(
        {
            "ClusterQueue",
            "ResourceFlavor",
            "Topology",
            "AdmissionCheck",
            "WorkloadPriorityClass",
            "Cohort",
            "MultiKueueCluster",
            "MultiKueueConfig",
            "ProvisioningRequestConfig",
        }
    ),
    "scheduling.volcano.sh": frozenset({"Queue"}),
    "topology.volcano.sh": frozenset({"HyperNode"}),
    "scheduling.run.ai": frozenset({"Queue"}),
    "kai.scheduler": frozenset({"Topology"}),
    "karpenter.sh": frozenset({"NodePool", "NodeClaim", "NodeOverlay"}),
    "karpenter.k8s.aws": frozenset({"EC2NodeClass"}),
    "nvidia.com": frozenset({"ClusterPolicy", "NVIDIADriver"}),
    "kind.x-k8s.io": frozenset({"Cluster"}),
}
_CLUSTER_SCOPED["crd.projectcalico.org"] = _CLUSTER_SCOPED["projectcalico.org"]


def is_cluster_scoped(group: str, kind: str) -> bool:
    """Whether objects of the kind have no namespace. Unknown kinds count as namespaced."""
    return kind in _CLUSTER_SCOPED.get(group, ())
