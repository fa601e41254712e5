"""What compiling Cilium policies needs besides the policy: agent options and the objects that peers refer to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
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

    def service_peers(self, item: Mapping[str, Any]) -> Iterator[Peer]:
        """
        ``toServices``: a Service's own selector in its namespace; policy runs after translation, so ports are backend
        ports. No namespace = any (pkg/policy/k8s/service.go serviceRefMatches). A Service that is not among the inputs, or
        has no selector, is a missing fact.
        """
        chosen, named = as_map(item.get("k8sServiceSelector")), as_map(item.get("k8sService"))
        wanted = as_str((chosen or named).get("namespace"))
        if chosen:
            labels = parse_selector(chosen.get("selector")) or Selector()
            found = [s for (ns, _), s in self.services.items() if labels.matches(s.labels) and wanted in ("", ns)]
            missing = f"which Services match {labels}"
        else:
            name = as_str(named.get("serviceName"))
            found = [s for (ns, n), s in self.services.items() if n == name and wanted in ("", ns)]
            missing = f"the backends of Service {wanted or '*'}/{name} (no such object among the inputs)"
        if not found:
            yield FactPeer(missing, pods=True)
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
        labelled = LabelPeer(f"fqdn:{shown}")
        if self.options.fqdn_cache is None:
            return AnyOf((labelled, FactPeer(f"which addresses {shown} resolves to")), shown)
        wanted = name_expression(name, pattern)
        hits = [a for n, a in self.options.fqdn_cache if wanted.fullmatch(_full(n))]
        networks = (parse_network(a, bare_address=True) for a in hits)
        return AnyOf((labelled, *(CidrPeer(n) for n in networks if n is not None)), shown)

    def group_peers(self, item: Mapping[str, Any], excepts: tuple[Network, ...]) -> Iterator[Peer]:
        """``cidrGroupRef``/``cidrGroupSelector`` from CiliumCIDRGroup objects; a group not given is a missing fact."""
        name = as_str(item.get("cidrGroupRef"))
        if name:
            groups: Iterable[KubeObject] = [g] if (g := self.cidr_groups.get(name)) else []
            missing = f"the addresses of CiliumCIDRGroup {name}"
            yield LabelPeer(f"cidrgroup:io.cilium.policy.cidrgroupname/{name}", excepts)
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


_DNS = "[-a-zA-Z0-9_]"


def _full(name: str) -> str:
    return name.lower().rstrip(".") + "."


@lru_cache(maxsize=256)
def name_expression(name: str, pattern: str) -> re.Pattern[str]:
    """
    The full names a FQDNSelector matches: ``*`` stays within one label, only a leading ``**.`` covers several (from 1.19),
    ``*`` alone is every name (pkg/fqdn/matchpattern ToAnchoredRegexp).
    """
    if name:
        return re.compile(re.escape(_full(name)))
    if re.fullmatch(r"[*]+[.]?", pattern):
        return re.compile(f"({_DNS}+[.])+|[.]")
    head = re.match(r"[*]{2,}[.]", pattern)
    rest = _full(pattern[head.end() :] if head else pattern)
    body = "".join(f"{_DNS}*" if part.startswith("*") else re.escape(part) for part in re.split(r"([*]+)", rest))
    return re.compile((f"({_DNS}+[.])+" if head else "") + body)


@dataclass(frozen=True, slots=True)
class LabelPeer:
    """Whoever carries one identity label, as addresses behind a name or in a CiliumCIDRGroup do, outside `excepts`."""

    label: str
    excepts: tuple[Network, ...] = ()

    @property
    def keys(self) -> frozenset[str]:
        return frozenset()

    def match(self, view: View) -> Match:
        return self.label in view.sourced and not any(view.address in e for e in self.excepts if view.address is not None)

    def distance(self, view: View) -> int:
        return 0 if self.match(view) else 7

    def why_not(self, _view: View) -> str:
        return f"the peer does not carry {self.label}"

    def __str__(self) -> str:
        return self.label


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

    def __str__(self) -> str:
        return self.shown
