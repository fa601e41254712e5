"""What may stand on the other end of a rule, for the engines that think in Kubernetes terms and in Cilium terms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network
from types import MappingProxyType
from typing import Any

from stallscope.model.labels import Requirement, Selector
from stallscope.policy.cilium_selectors import SourcedSelector
from stallscope.policy.go_netip import parse_prefix
from stallscope.policy.identity import CLUSTER, NAMESPACE
from stallscope.policy.ir import Match
from stallscope.policy.relevance import ADDRESS
from stallscope.policy.view import View

Network = IPv4Network | IPv6Network

NAME_LABEL = "kubernetes.io/metadata.name"

EMPTY: Mapping[str, str] = MappingProxyType({})


def parse_network(value: Any, *, bare_address: bool = False) -> Network | None:
    """A CIDR (host bits allowed, as in netip.ParsePrefix). Without ``/len`` only when `bare_address`; else None."""
    return parse_prefix(value, bare_address=bare_address) if isinstance(value, str) else None


@dataclass(frozen=True, slots=True)
class SelectorPeer:
    """Cilium endpoints by identity labels."""

    selector: SourcedSelector

    @property
    def keys(self) -> frozenset[str]:
        return self.selector.keys

    def match(self, view: View) -> Match:
        return self.selector.match(view)

    def distance(self, view: View) -> int:
        return self.selector.misses(view) if view.is_pod or self.match(view) else 9

    def why_not(self, view: View) -> str:
        if not view.is_pod:
            return f"the peer is not a pod; the rule selects pods with {self.selector}"
        carried = dict(view.endpoint.labels)
        return "; ".join(has_not(t.need.key, str(t), view.bare, carried) for t in self.selector.failing(view))


def has_not(key: str, wanted: str, labels: Mapping[str, str], carried: Mapping[str, str] = EMPTY) -> str:
    """One failed requirement in words. `carried`: labels on the pod that the engine does not keep."""
    held = labels.get(key)
    shown = "its namespace" if key == NAMESPACE else key
    if held is not None:
        return (
            f"needs {wanted}, the peer has {shown}={held}"
            if shown == key
            else f"needs {wanted}, the peer is in namespace {held}"
        )
    if key in carried:
        return f"needs {wanted}, the peer carries {key}={carried[key]} but the engine leaves that key out of identity"
    return f"needs {wanted}, the peer has no label {key}"


@dataclass(frozen=True, slots=True)
class CidrPeer:
    """
    Addresses in `network` but not in `excepts`. Matches only ends the engine knows by address (`View.address`); which
    ends these are is the engine's business (Cilium: never pods or nodes).
    """

    network: Network
    excepts: tuple[Network, ...] = ()
    pods: bool = False

    @property
    def keys(self) -> frozenset[str]:
        return frozenset({ADDRESS})

    def match(self, view: View) -> Match:
        if view.address is not None:
            return view.address in self.network and not any(view.address in e for e in self.excepts)
        if view.is_pod and not self.pods:
            return False
        if not self.pods and not _outside(view):
            return False
        if self.network.prefixlen == 0 and not self.excepts:
            return True
        return f"the peer's address (the rule names {self})"

    def distance(self, view: View) -> int:
        if self.match(view) is not False:
            return 0
        return 5 if view.address is not None or self.pods else 8

    def why_not(self, view: View) -> str:
        if view.address is not None or self.pods:
            return f"the peer's address is not in {self}"
        kind = "pods" if view.is_pod else "nodes"
        return f"{self} never matches {kind} here: the engine knows them by identity, not by address"

    def __str__(self) -> str:
        return str(self.network) + (f" except {', '.join(map(str, self.excepts))}" if self.excepts else "")


def _outside(view: View) -> bool:
    return not ENTITY_RESERVED["world"].isdisjoint(view.reserved)


#: Entities that stand for reserved identities (pkg/policy/api/entity.go EntitySelectorMapping).
ENTITY_RESERVED: dict[str, frozenset[str]] = {
    "host": frozenset({"host"}),
    "remote-node": frozenset({"remote-node"}),
    "init": frozenset({"init"}),
    "ingress": frozenset({"ingress"}),
    "health": frozenset({"health"}),
    "unmanaged": frozenset({"unmanaged"}),
    "kube-apiserver": frozenset({"kube-apiserver"}),
    "world": frozenset({"world", "world-ipv4", "world-ipv6"}),
    "world-ipv4": frozenset({"world-ipv4"}),
    "world-ipv6": frozenset({"world-ipv6"}),
    "none": frozenset(),
}
NODES = frozenset({"host", "remote-node"})
CLUSTER_RESERVED = frozenset({"host", "remote-node", "init", "ingress", "health", "unmanaged", "kube-apiserver"})
ENTITIES = frozenset(ENTITY_RESERVED) | {"all", "cluster"}


@dataclass(frozen=True, slots=True)
class EntityPeer:
    """A Cilium entity. `cluster` is the local cluster's name (entity ``cluster`` covers its pods)."""

    entity: str
    cluster: str = "default"

    @property
    def keys(self) -> frozenset[str]:
        return frozenset({CLUSTER})

    def match(self, view: View) -> Match:
        if self.entity == "all":
            return True
        if self.entity == "cluster":
            if view.sourced.get(f"k8s:{CLUSTER}") == self.cluster:
                return True
            return not CLUSTER_RESERVED.isdisjoint(view.reserved)
        return not ENTITY_RESERVED[self.entity].isdisjoint(view.reserved)

    def distance(self, view: View) -> int:
        return 0 if self.match(view) else 6

    def why_not(self, _view: View) -> str:
        return f'the peer is not in entity "{self.entity}"'


@dataclass(frozen=True, slots=True)
class FactPeer:
    """
    A peer nobody can expand from the inputs. `pods`: it may match pods; otherwise only what is outside the cluster.
    """

    fact: str
    pods: bool = False

    @property
    def keys(self) -> frozenset[str]:
        return frozenset()

    def match(self, view: View) -> Match:
        if view.is_pod:
            return self.fact if self.pods else False
        return self.fact if _outside(view) else False

    def distance(self, view: View) -> int:
        return 0 if self.match(view) else 7

    def why_not(self, _view: View) -> str:
        return f"it depends on {self.fact}, which is never a pod or node"


@dataclass(frozen=True, slots=True)
class PodPeer:
    """
    Pods by Kubernetes selectors: `pods` AND (`namespaces`, or the namespace `namespace` when that is None). Never
    nodes or outside addresses. `host_network` false leaves host-network pods out (ClusterNetworkPolicy says so;
    NetworkPolicy v1 leaves it open).
    """

    pods: Selector
    namespaces: Selector | None
    namespace: str = ""
    host_network: bool = True

    @property
    def keys(self) -> frozenset[str]:
        return frozenset(r.key for r in self.pods.requirements)

    def match(self, view: View) -> Match:
        if not view.is_pod or (view.endpoint.host_network and not self.host_network):
            return False
        if self.namespaces is None:
            if view.namespace != self.namespace:
                return False
            unknown = ""
        else:
            found = match_namespace(self.namespaces, view)
            if found is False:
                return False
            unknown = "" if found is True else str(found)
        return (unknown or True) if self.pods.matches(view.labels) else False

    def _failed(self, view: View) -> tuple[list[Requirement], list[Requirement]]:
        """Requirements of the namespace and of the pod that do not hold."""
        spaces = self.namespaces.requirements if self.namespaces is not None else ()
        return (
            [r for r in spaces if not r.matches(view.namespace_labels)],
            [r for r in self.pods.requirements if not r.matches(view.labels)],
        )

    def _elsewhere(self, view: View) -> bool:
        return self.namespaces is None and view.namespace != self.namespace

    def distance(self, view: View) -> int:
        if not view.is_pod or (view.endpoint.host_network and not self.host_network):
            return 9
        spaces, pods = self._failed(view)
        return len(spaces) + len(pods) + self._elsewhere(view)

    def why_not(self, view: View) -> str:
        if not view.is_pod:
            return "the peer is not a pod"
        if view.endpoint.host_network and not self.host_network:
            return "the peer uses the host network"
        spaces, pods = self._failed(view)
        parts = [_namespace_lacks(r, view) for r in spaces] + [has_not(r.key, str(r), view.labels) for r in pods]
        if self._elsewhere(view):
            parts.insert(0, f"the peer is in namespace {view.namespace}, the rule selects pods of {self.namespace} only")
        return "; ".join(parts)


@dataclass(frozen=True, slots=True)
class NodePeer:
    """Nodes by their labels, and the host-network pods on them."""

    nodes: Selector

    @property
    def keys(self) -> frozenset[str]:
        return frozenset()

    def match(self, view: View) -> Match:
        end = view.endpoint
        if view.is_pod and not end.host_network:
            return False
        if not end.node_labels:
            return False if not (end.host_network or NODES & view.reserved) else "the labels of the peer's node"
        return self.nodes.matches(dict(end.node_labels))

    def distance(self, view: View) -> int:
        return 0 if self.match(view) else 9

    def why_not(self, _view: View) -> str:
        return f"the peer is not a node with {self.nodes}"


def _namespace_lacks(need: Requirement, view: View) -> str:
    held = view.namespace_labels.get(need.key)
    ending = f"has {need.key}={held}" if held is not None else f"has no label {need.key}"
    return f"needs a namespace with {need}, the peer's namespace {view.namespace} {ending}"


def match_namespace(selector: Selector, view: View) -> Match:
    """A namespace selector, three-valued: labels other than the name are unknown when no Namespace object was given."""
    unknown = ""
    for need in selector.requirements:
        if not _known(need, view):
            unknown = f"labels of namespace {view.namespace}"
        elif not need.matches(view.namespace_labels):
            return False
    return unknown or True


def _known(need: Requirement, view: View) -> bool:
    return view.namespace_known or need.key in view.namespace_labels
