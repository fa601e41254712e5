"""
Cilium's label selectors: keys carry a source, and namespace and cluster are labels like any other.

Source: cilium/cilium pkg/policy/api/selector.go, pkg/k8s/apis/cilium.io/utils/utils.go; reference/policy.md §1.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from stallscope.model.labels import Requirement
from stallscope.model.source import as_list, as_map
from stallscope.policy.identity import CLUSTER, NAMESPACE, NAMESPACE_LABELS
from stallscope.policy.ir import Match
from stallscope.policy.view import View

ANY = "any"
_META = NAMESPACE_LABELS + "."


class Term(NamedTuple):
    """One requirement on a label of a source (``any`` = whichever). `slot` is where a `View` holds that label."""

    source: str
    need: Requirement
    slot: str
    meta: bool

    def match(self, view: View) -> Match:
        value = (view.bare if self.source == ANY else view.sourced).get(self.slot)
        if value is None and self.meta and not view.namespace_known and view.is_pod:
            return f"labels of namespace {view.namespace}"
        match self.need.operator:
            case "In":
                return value is not None and value in self.need.values
            case "NotIn":
                return value is None or value not in self.need.values
            case "Exists":
                return value is not None
        return self.need.operator == "DoesNotExist" and value is None

    def __str__(self) -> str:
        shown = self.need
        if shown.key == NAMESPACE:
            shown = Requirement("namespace", shown.operator, shown.values)
        elif shown.key.startswith(_META):
            shown = Requirement("namespace label " + shown.key[len(_META) :], shown.operator, shown.values)
        return str(shown) if self.source in (ANY, "k8s") else f"{self.source}:{shown}"


def term(source: str, key: str, operator: str, values: tuple[str, ...]) -> Term:
    """A requirement on the label `key` of `source`."""
    slot = key if source == ANY else f"{source}:{key}"
    return Term(source, Requirement(key, operator, values), slot, key.startswith(_META))


class SourcedSelector(NamedTuple):
    """A conjunction of terms; without any it matches every endpoint, nodes and the world included."""

    terms: tuple[Term, ...] = ()

    def match(self, view: View) -> Match:
        unknown = ""
        for term in self.terms:
            found = term.match(view)
            if found is False:
                return False
            if found is not True:
                unknown = unknown or str(found)
        return unknown or True

    @property
    def keys(self) -> frozenset[str]:
        """The bare label keys it reads."""
        return frozenset(t.need.key for t in self.terms)

    def failing(self, view: View) -> list[Term]:
        return [t for t in self.terms if t.match(view) is False]

    def misses(self, view: View) -> int:
        """How many terms fail."""
        count = 0
        for item in self.terms:
            if item.match(view) is False:
                count += 1
        return count

    def names(self, *keys: str) -> bool:
        """Whether a term names one of the keys with source k8s or any."""
        return any(t.need.key in keys and t.source in (ANY, "k8s") for t in self.terms)

    def names_prefix(self, prefix: str) -> bool:
        return any(t.need.key.startswith(prefix) and t.source in (ANY, "k8s") for t in self.terms)

    def names_source(self, source: str) -> bool:
        return any(t.source == source for t in self.terms)

    def plus(self, source: str, key: str, operator: str, *values: str) -> SourcedSelector:
        return SourcedSelector((*self.terms, term(source, key, operator, values)))

    def __str__(self) -> str:
        return ", ".join(map(str, self.terms)) or "everything"


def split_key(key: str, default: str = ANY) -> tuple[str, str]:
    """``k8s:app`` -> (``k8s``, ``app``); ``$x`` and ``reserved.x`` are ``reserved:x`` (pkg/labels parseSource)."""
    if key.startswith("$"):
        return "reserved", key[1:]
    source, colon, rest = key.partition(":")
    if not colon and key.startswith("reserved."):
        return "reserved", key[9:]
    return (source or default, rest) if colon else (default, key)


def parse_terms(value: Any, *, source: str = "", key_prefix: str = "") -> tuple[Term, ...]:
    """
    The terms of a LabelSelector. With `source`, keys are taken literally with that source (NetworkPolicy objects);
    `key_prefix` goes before each key (namespace labels).
    """
    body = as_map(value)
    return tuple(_terms(body, source, key_prefix))


def in_namespace(value: Any, namespace: str, *, source: str = "") -> SourcedSelector:
    """
    A selector confined to `namespace`: the agent writes that label over whatever ``matchLabels`` says of it, while
    ``matchExpressions`` on the same key stay (EndpointSelector.AddMatch; parsePodSelector for NetworkPolicy).
    """
    body = as_map(value)
    kept = {k: v for k, v in as_map(body.get("matchLabels")).items() if _owner(k, source) != ("k8s", NAMESPACE)}
    terms = parse_terms({**body, "matchLabels": kept}, source=source)
    return SourcedSelector(terms).plus("k8s", NAMESPACE, "In", namespace)


def _owner(key: Any, source: str) -> tuple[str, str]:
    return (source, str(key)) if source else split_key(str(key))


def _terms(body: Mapping[str, Any], source: str, key_prefix: str) -> Iterable[Term]:
    for key, wanted in as_map(body.get("matchLabels")).items():
        owner, bare = _owner(key, source)
        yield term(owner, key_prefix + bare, "In", (str(wanted),))
    for item in as_list(body.get("matchExpressions")):
        entry = as_map(item)
        values = tuple(str(v) for v in as_list(entry.get("values")))
        owner, bare = _owner(entry.get("key", ""), source)
        yield term(owner, key_prefix + bare, str(entry.get("operator", "")), values)


def in_cluster(selector: SourcedSelector, cluster: str) -> SourcedSelector:
    """`selector` limited to the local cluster unless it names one (policy-default-local-cluster)."""
    if not cluster or selector.names(CLUSTER):
        return selector
    return selector.plus("k8s", CLUSTER, "In", cluster)


def peer_selector(value: Any, *, namespace: str, cluster: str, init: bool = False) -> SourcedSelector:
    """
    A selector of ``fromEndpoints``/``toEndpoints`` with the defaults the agent adds (getEndpointSelector): the policy's
    namespace unless one is named, "is in some namespace" for clusterwide policies, the local cluster unless one is
    named. `cluster` empty = any cluster.
    """
    selector = SourcedSelector(parse_terms(value))
    if selector.names_source("reserved"):
        return selector
    result = selector
    if not selector.names(NAMESPACE):
        if not namespace:
            result = result if init else result.plus("k8s", NAMESPACE, "Exists")
        elif not selector.names_prefix(_META):
            result = result.plus("k8s", NAMESPACE, "In", namespace)
    return in_cluster(result, cluster)
