"""Any value can have any type anywhere: compiling and judging never raise."""

from __future__ import annotations

from typing import Any

import pytest

from stallscope.model.kube import from_body
from stallscope.model.traffic import Endpoint, PeerEdge, PortRange
from stallscope.policy.engine import EngineOptions, compile_policies
from stallscope.policy.insight import selects_nothing, zone_label_users

KINDS = (
    ("networking.k8s.io/v1", "NetworkPolicy"),
    ("cilium.io/v2", "CiliumNetworkPolicy"),
    ("cilium.io/v2", "CiliumClusterwideNetworkPolicy"),
    ("policy.networking.k8s.io/v1alpha1", "AdminNetworkPolicy"),
    ("policy.networking.k8s.io/v1alpha2", "ClusterNetworkPolicy"),
    ("projectcalico.org/v3", "NetworkPolicy"),
    ("projectcalico.org/v3", "GlobalNetworkPolicy"),
)
ODD: tuple[Any, ...] = (
    None,
    "",
    "x",
    0,
    -1,
    3.5,
    True,
    [],
    [None],
    ["x"],
    [[]],
    [{}],
    {},
    {"x": 1},
    {"matchLabels": 1},
    [{"a": [1]}],
)
FIELDS = (
    "podSelector", "endpointSelector", "nodeSelector", "selector", "namespaceSelector", "subject", "policyTypes", "types",
    "ingress", "egress", "ingressDeny", "egressDeny", "enableDefaultDeny", "tier", "priority", "order",
)  # fmt: skip
RULE_FIELDS = (
    "from", "to", "ports", "fromEndpoints", "fromCIDR", "fromCIDRSet", "fromEntities", "fromNodes", "fromGroups",
    "toServices", "toFQDNs", "toPorts", "icmps", "authentication", "action", "protocol", "protocols", "source",
    "destination",
)  # fmt: skip
ENDS = (Endpoint(name="a", namespace="train", labels=(("x", "1"),)), Endpoint(name="e", ip="not an address"))


def survives(body: dict[str, Any], cni: str) -> None:
    options = EngineOptions(cni=cni, version=(1, 20, 0), options={"enable-k8s-cluster-network-policy": "true"})
    policy_set = compile_policies([from_body(body, namespace="train")], options)
    for source in ENDS:
        policy_set.evaluate(PeerEdge(source=source, destination=ENDS[0], port=1))
        policy_set.evaluate_range(source, ENDS[0], PortRange(1, 65535))
    zone_label_users(policy_set)
    selects_nothing(policy_set, ENDS)


@pytest.mark.parametrize("cni", ["cilium", "calico", "generic"])
@pytest.mark.parametrize(("version", "kind"), KINDS)
def test_odd_values_anywhere(version: str, kind: str, cni: str) -> None:
    for odd in ODD:
        survives({"apiVersion": version, "kind": kind, "metadata": odd, "spec": odd, "specs": odd}, cni)
        for field in FIELDS:
            survives({"apiVersion": version, "kind": kind, "spec": {"endpointSelector": {}, field: odd}}, cni)
        for field in RULE_FIELDS:
            item = {"action": "Allow", field: odd}
            spec = {
                "endpointSelector": {},
                "podSelector": {},
                "subject": {"namespaces": {}},
                "ingress": [item],
                "egress": [item],
            }
            survives({"apiVersion": version, "kind": kind, "spec": spec}, cni)


@pytest.mark.parametrize("odd", ODD)
def test_odd_values_inside_peers_and_ports(odd: Any) -> None:
    for field in ("podSelector", "namespaceSelector", "ipBlock", "namespaces", "pods", "networks", "nodes", "domainNames"):
        for version, kind in KINDS:
            rule = {"action": "Deny", "from": [{field: odd}], "to": [{field: odd}]}
            spec = {"podSelector": {}, "subject": {"namespaces": {}}, "ingress": [rule], "egress": [rule]}
            for cni in ("cilium", "generic"):
                survives({"apiVersion": version, "kind": kind, "spec": spec}, cni)
    for field in ("port", "endPort", "protocol", "rules", "ports", "serverNames", "listener", "terminatingTLS"):
        port = {"ports": [{"port": "80", "protocol": "TCP", field: odd}], field: odd}
        spec = {"endpointSelector": {}, "podSelector": {}, "ingress": [{"toPorts": [port], "ports": port["ports"]}]}
        for version, kind in KINDS[:3]:
            survives({"apiVersion": version, "kind": kind, "spec": spec}, "cilium")
