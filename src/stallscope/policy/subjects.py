"""Whom a policy applies to, with the necessary conditions the index uses."""

from __future__ import annotations

from dataclasses import dataclass

from stallscope.model.labels import Requirement, Selector
from stallscope.policy.cilium_selectors import ANY, SourcedSelector
from stallscope.policy.identity import NAMESPACE
from stallscope.policy.ir import Match, Subject
from stallscope.policy.peers import match_namespace
from stallscope.policy.view import View

Needs = tuple[tuple[str, str], ...]


def _single(need: Requirement) -> bool:
    return need.operator == "In" and len(need.values) == 1


@dataclass(frozen=True, slots=True)
class PodSubject:
    """Pods by Kubernetes selectors; `namespaces` None means exactly `namespace`. `host_network`: such pods too."""

    pods: Selector
    namespaces: Selector | None
    namespace: str = ""
    host_network: bool = True

    @property
    def needs(self) -> Needs:
        return tuple((r.key, r.values[0]) for r in self.pods.requirements if _single(r))

    @property
    def keys(self) -> frozenset[str]:
        return frozenset(r.key for r in self.pods.requirements)

    def match(self, view: View) -> Match:
        if not view.is_pod or (self.namespaces is None and view.namespace != self.namespace):
            return False
        if view.endpoint.host_network and not self.host_network:
            return False
        found = match_namespace(self.namespaces, view) if self.namespaces is not None else True
        return found if found is False or self.pods.matches(view.labels) else False


@dataclass(frozen=True, slots=True)
class UnsureSubject:
    """Another subject, if a fact holds that nobody stated (that the cluster enforces this kind at all)."""

    inner: Subject
    fact: str

    @property
    def namespace(self) -> str:
        return self.inner.namespace

    @property
    def needs(self) -> Needs:
        return self.inner.needs

    @property
    def keys(self) -> frozenset[str]:
        return self.inner.keys

    def match(self, view: View) -> Match:
        return self.fact if self.inner.match(view) is not False else False


@dataclass(frozen=True, slots=True)
class CiliumSubject:
    """``endpointSelector`` (everything Cilium manages but the host) or ``nodeSelector`` (`host`: only the host)."""

    selector: SourcedSelector
    namespace: str = ""
    host: bool = False

    @property
    def keys(self) -> frozenset[str]:
        return self.selector.keys

    @property
    def needs(self) -> Needs:
        if self.host:
            return ()
        return tuple(
            (t.need.key, t.need.values[0])
            for t in self.selector.terms
            if _single(t.need) and t.source in (ANY, "k8s") and t.need.key != NAMESPACE
        )

    def match(self, view: View) -> Match:
        if ("host" in view.reserved) is not self.host:
            return False
        return self.selector.match(view)
