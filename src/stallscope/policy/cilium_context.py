"""What compiling Cilium policies needs besides the policy: agent options and the objects that peers refer to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from stallscope.model.kube import KubeObject
from stallscope.model.labels import Selector, parse_selector
from stallscope.model.source import as_list, as_map, as_str, as_str_map
from stallscope.policy.cilium_selectors import SourcedSelector, Term, parse_terms
from stallscope.policy.identity import CLUSTER, NAMESPACE
from stallscope.policy.ir import Match, Peer
from stallscope.policy.options import CiliumOptions
from stallscope.policy.peers import CidrPeer, FactPeer, Network, SelectorPeer, parse_network
from stallscope.policy.view import View


@dataclass(frozen=True, slots=True, kw_only=True)
class CiliumContext:
    """`cluster` is the local cluster's name, `peer_cluster` the one added to peers (empty: any cluster)."""

    options: CiliumOptions
    normal_tier: int = 0
    services: Mapping[tuple[str, str], KubeObject] = field(default_factory=dict)
    cidr_groups: Mapping[str, KubeObject] = field(default_factory=dict)

    @property
    def cluster(self) -> str:
        return self.options.cluster

    @property
    def peer_cluster(self) -> str:
        return self.options.cluster if self.options.local_cluster_peers else ""

    @property
    def non_default_deny(self) -> bool:
        return self.options.non_default_deny

    def service_peers(self, item: Mapping[str, Any], namespace: str) -> Iterator[Peer]:
        """
        ``toServices``: a Service's own selector in its namespace; policy runs after translation, so ports are backend
        ports. A Service that is not among the inputs, or has no selector, is a missing fact.
        """
        named = as_map(item.get("k8sService"))
        if named:
            key = (as_str(named.get("namespace")) or namespace, as_str(named.get("serviceName")))
            service = self.services.get(key)
            if service is None:
                yield FactPeer(f"the backends of Service {key[0]}/{key[1]} (no such object among the inputs)", pods=True)
            else:
                yield self._backends(service)
            return
        chosen = as_map(item.get("k8sServiceSelector"))
        labels = parse_selector(chosen.get("selector")) or Selector()
        wanted = as_str(chosen.get("namespace"))
        found = [s for (ns, _), s in self.services.items() if labels.matches(s.labels) and (not wanted or ns == wanted)]
        if not found:
            yield FactPeer(f"which Services match {labels}", pods=True)
        for service in found:
            yield self._backends(service)

    def _backends(self, service: KubeObject) -> Peer:
        wanted = as_str_map(service.get("spec", "selector"))
        if not wanted:
            return FactPeer(f"the endpoint addresses of {service.ref} (it has no selector)")
        terms: tuple[Term, ...] = parse_terms({"matchLabels": wanted}, source="k8s")
        selector = SourcedSelector(terms).plus("k8s", NAMESPACE, "In", service.namespace)
        return SelectorPeer(selector.plus("k8s", CLUSTER, "In", self.cluster))

    def fqdn_peer(self, item: Mapping[str, Any]) -> Peer:
        """``toFQDNs``: addresses the agent saw in DNS answers (option ``fqdn-cache``: ``name=ip`` …); never pods."""
        name, pattern = as_str(item.get("matchName")), as_str(item.get("matchPattern"))
        shown = name or pattern
        if self.options.fqdn_cache is None:
            return FactPeer(f"which addresses {shown} resolves to")
        hits = [a for n, a in self.options.fqdn_cache if (n == name if name else fnmatchcase(n, pattern))]
        return AnyOf(tuple(CidrPeer(net) for a in hits if (net := parse_network(a, bare_address=True)) is not None), shown)

    def group_peers(self, item: Mapping[str, Any], excepts: tuple[Network, ...]) -> Iterator[Peer]:
        """``cidrGroupRef``/``cidrGroupSelector`` from CiliumCIDRGroup objects; a group not given is a missing fact."""
        name = as_str(item.get("cidrGroupRef"))
        if name:
            groups: Iterable[KubeObject] = [g] if (g := self.cidr_groups.get(name)) else []
            missing = f"the addresses of CiliumCIDRGroup {name}"
        else:
            selector = parse_selector(item.get("cidrGroupSelector")) or Selector()
            groups = [g for g in self.cidr_groups.values() if selector.matches(g.labels)]
            missing = f"which CiliumCIDRGroups match {selector}"
        empty = True
        for group in groups:
            empty = False
            for cidr in as_list(group.get("spec", "externalCIDRs")):
                network = parse_network(cidr, bare_address=True)
                if network is not None:
                    yield CidrPeer(network, excepts)
        if empty:
            yield FactPeer(missing)


@dataclass(frozen=True, slots=True)
class AnyOf:
    """The union of peers; empty matches nobody."""

    peers: tuple[Peer, ...]
    shown: str

    @property
    def keys(self) -> frozenset[str]:
        return frozenset().union(*(p.keys for p in self.peers))

    def match(self, view: View) -> Match:
        results = [p.match(view) for p in self.peers]
        return True if True in results else next((r for r in results if r is not False), False)

    def distance(self, view: View) -> int:
        return 0 if self.match(view) else 7

    def why_not(self, _view: View) -> str:
        return f"{self.shown} does not resolve to the peer"
