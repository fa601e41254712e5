"""An endpoint as an engine sees it: computed once a class of endpoints, then only looked up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address

from stallscope.model.traffic import Endpoint
from stallscope.policy.portset import NamedPorts

Address = IPv4Address | IPv6Address


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """
    `endpoint` stands for its class (`key`). `labels` are the pod's own labels as the engine keeps them (Cilium: identity
    labels only), `sourced` the same and the derived ones as ``source:key``, `bare` without source. `namespace_known`
    false: only the namespace's name is known. `reserved` are Cilium's reserved identities (``world``: outside addresses).
    `address` is set where the engine matches this end by address. `governed`: policies can apply to this end.
    """

    endpoint: Endpoint
    key: tuple[object, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    sourced: Mapping[str, str] = field(default_factory=dict)
    bare: Mapping[str, str] = field(default_factory=dict)
    namespace_labels: Mapping[str, str] = field(default_factory=dict)
    namespace_known: bool = True
    reserved: frozenset[str] = frozenset()
    address: Address | None = None
    governed: bool = True

    @property
    def namespace(self) -> str:
        return self.endpoint.namespace

    @property
    def is_pod(self) -> bool:
        return self.endpoint.is_pod

    @property
    def named_ports(self) -> NamedPorts:
        return self.endpoint.named_ports
