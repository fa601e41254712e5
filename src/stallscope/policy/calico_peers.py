"""One side of a Calico rule (EntityRule) and the subject of a Calico policy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from stallscope.model.kube import KubeObject
from stallscope.model.source import as_list, as_map, as_str
from stallscope.policy.calico_selectors import ALL, Expression, parse
from stallscope.policy.ir import Match
from stallscope.policy.peers import CidrPeer, parse_network
from stallscope.policy.relevance import ACCOUNT, ADDRESS
from stallscope.policy.view import View

NAMESPACE_LABEL = "projectcalico.org/namespace"
NAMESPACE_NAME = "projectcalico.org/name"


@dataclass(frozen=True, slots=True, kw_only=True)
class CalicoEntity:
    """
    ``source`` or ``destination`` of a rule without its ports. All parts must hold; `fact` names a part that cannot be
    judged. `namespace` limits selectors of a namespaced policy to its own namespace. `sets` are the addresses of
    network sets the selector picks.
    """

    selector: Expression | None = None
    excluded: Expression | None = None
    namespaces: Expression | None = None
    namespace: str = ""
    nets: tuple[CidrPeer, ...] | None = None
    outside: tuple[CidrPeer, ...] = ()
    accounts: frozenset[str] = frozenset()
    sets: tuple[CidrPeer, ...] = ()
    fact: str = ""

    @property
    def keys(self) -> frozenset[str]:
        found = frozenset({ADDRESS}) if self.nets is not None or self.outside or self.sets else frozenset[str]()
        found |= frozenset({ACCOUNT}) if self.accounts else frozenset[str]()
        return found.union(*(e.keys for e in (self.selector, self.excluded) if e is not None))

    def match(self, view: View) -> Match:
        parts = [self._selected(view), self._addresses(view), *map(_not, (n.match(view) for n in self.outside))]
        if self.excluded is not None:
            parts.append(not self.excluded.matches(view.labels) if view.labels else True)
        if self.accounts:
            parts.append(view.is_pod and view.endpoint.service_account in self.accounts)
        if False in parts:
            return False
        unknown = next((p for p in parts if p is not True), "") or self.fact
        return unknown or True

    def _selected(self, view: View) -> Match:
        if self.selector is None and self.namespaces is None:
            return True
        found = self._endpoint(view)
        if found is True or not self.sets:
            return found
        return _any([found, *(s.match(view) for s in self.sets)])

    def _endpoint(self, view: View) -> Match:
        if not view.is_pod or view.endpoint.host_network:
            return False
        if self.selector is not None and not self.selector.matches(view.labels):
            return False
        if self.namespaces is None:
            return not self.namespace or view.namespace == self.namespace
        if self.namespaces.is_global:
            return False
        return match_expression(self.namespaces, view)

    def _addresses(self, view: View) -> Match:
        return True if self.nets is None else _any([n.match(view) for n in self.nets])

    def distance(self, view: View) -> int:
        if self.match(view) is not False:
            return 0
        return 1 if self._selected(view) is False else 3

    def why_not(self, view: View) -> str:
        if self._selected(view) is False:
            return f"the rule selects {self.describe()}"
        return "the peer is outside the rule's nets or service accounts"

    def describe(self) -> str:
        parts = [str(self.selector)] if self.selector else []
        parts += [f"namespaces with {self.namespaces}"] if self.namespaces else []
        parts += [f"namespace {self.namespace} only"] if self.namespace and not self.namespaces else []
        return " in ".join(parts) or "everything"


def match_expression(selector: Expression, view: View) -> Match:
    """A namespaceSelector on the namespace's labels, unknown when they are not given and it looks beyond the name."""
    unknown = [k for k in selector.keys if k not in view.namespace_labels]
    if unknown and not view.namespace_known:
        return f"labels of namespace {view.namespace}"
    return selector.matches(view.namespace_labels)


def _not(found: Match) -> Match:
    return not found if isinstance(found, bool) else found


def _any(found: list[Match]) -> Match:
    return True if True in found else next((f for f in found if f is not False), False)


@dataclass(frozen=True, slots=True, kw_only=True)
class CalicoSubject:
    """Whom a Calico policy applies to: workload endpoints, never host-network pods."""

    selector: Expression
    namespaces: Expression | None = None
    namespace: str = ""
    fact: str = ""

    @property
    def needs(self) -> tuple[tuple[str, str], ...]:
        return tuple(p for p in self.selector.pinned if not p[0].startswith("projectcalico.org/"))

    @property
    def keys(self) -> frozenset[str]:
        return self.selector.keys

    def match(self, view: View) -> Match:
        if not view.is_pod or view.endpoint.host_network or (self.namespace and view.namespace != self.namespace):
            return False
        if not self.selector.matches(view.labels):
            return False
        inside = True if self.namespaces is None else match_expression(self.namespaces, view)
        return inside if inside is not True else self.fact or True


def entity(body: Mapping[str, Any], namespace: str, sets: Iterable[KubeObject]) -> CalicoEntity | None:
    """An EntityRule, or None when it names nothing (any peer). Raises SelectorSyntaxError."""
    selector = _parsed(body.get("selector"))
    namespaces = _parsed(body.get("namespaceSelector"))
    excluded = _parsed(body.get("notSelector"))
    accounts = as_map(body.get("serviceAccounts"))
    fact = "the labels of service accounts" if as_str(accounts.get("selector")) else ""
    if as_map(body.get("services")):
        service = as_map(body["services"])
        fact = f"the endpoints of Service {as_str(service.get('namespace'), namespace)}/{as_str(service.get('name'))}"
    nets = _nets(body.get("nets")) if as_list(body.get("nets")) else None
    names = frozenset(str(n) for n in as_list(accounts.get("names")))
    outside = _nets(body.get("notNets"))
    if not (selector or namespaces or excluded or accounts or fact or nets is not None or outside):
        return None
    return CalicoEntity(
        selector=selector,
        excluded=excluded,
        namespaces=namespaces,
        namespace=namespace if (selector or excluded) and namespaces is None else "",
        nets=nets,
        outside=outside,
        accounts=names,
        sets=tuple(_set_nets(selector, namespaces, namespace, sets)) if selector else (),
        fact=fact,
    )


def _parsed(value: Any) -> Expression | None:
    return parse(value) if isinstance(value, str) and value.strip() else None


def _nets(value: Any) -> tuple[CidrPeer, ...]:
    networks = (parse_network(n, bare_address=True) for n in as_list(value))
    return tuple(CidrPeer(n, pods=True) for n in networks if n is not None)


def _set_nets(
    selector: Expression, namespaces: Expression | None, namespace: str, sets: Iterable[KubeObject]
) -> Iterable[CidrPeer]:
    """The addresses of NetworkSet and GlobalNetworkSet objects whose labels the selector matches."""
    for item in sets:
        is_global = item.kind == "GlobalNetworkSet"
        here = item.namespace == namespace if namespaces is None and namespace else True
        if namespaces is not None and namespaces.is_global:
            here = is_global
        if is_global and namespaces is None and namespace:
            here = False
        if here and selector.matches(item.labels):
            yield from _nets(item.get("spec", "nets"))


def subject_of(spec: Mapping[str, Any], namespace: str) -> CalicoSubject:
    """The subject of a policy. Raises SelectorSyntaxError."""
    fact = "the labels of service accounts" if as_str(spec.get("serviceAccountSelector")) else ""
    return CalicoSubject(
        selector=_parsed(spec.get("selector")) or ALL,
        namespaces=None if namespace else _parsed(spec.get("namespaceSelector")),
        namespace=namespace,
        fact=fact,
    )
