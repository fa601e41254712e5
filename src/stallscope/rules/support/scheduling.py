"""Scheduling constraints of a role as written: node terms, pod affinity terms, spread constraints, tolerations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from stallscope.model.labels import Requirement, Selector, parse_requirement, parse_selector
from stallscope.model.source import Location, Route, as_list, as_map, as_str, dig
from stallscope.model.topology import HOSTNAME, Taint
from stallscope.model.workload import Role, TrainingJob
from stallscope.placement.zonepins import ZONE_KEYS


class NodeTerm(NamedTuple):
    """One of the ORed node selector terms; its requirements are ANDed."""

    requirements: tuple[Requirement, ...]
    location: Location

    @property
    def zones(self) -> frozenset[str] | None:
        """Zones the term allows, or ``None`` when it says nothing about zones."""
        chosen = [frozenset(r.values) for r in self.requirements if r.key in ZONE_KEYS and r.operator == "In"]
        return frozenset.intersection(*chosen) if chosen else None

    def __str__(self) -> str:
        return ", ".join(map(str, self.requirements)) or "nothing"


class PodTerm(NamedTuple):
    """
    One required or preferred pod (anti-)affinity term. `selector` ``None`` matches no pod. `namespaces` empty = the
    pod's own, unless `any_namespace` (a namespaceSelector, whose labels are not known here).
    """

    selector: Selector | None
    topology_key: str
    namespaces: tuple[str, ...]
    any_namespace: bool
    location: Location

    def matches(self, labels: Mapping[str, str], namespace: str, own_namespace: str) -> bool:
        """True when the term sees a pod with those labels in `namespace`."""
        if self.selector is None or not self.selector.matches(labels):
            return False
        if self.any_namespace:
            return True
        return namespace in (self.namespaces or (own_namespace,))


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """One topology spread constraint."""

    index: int
    topology_key: str
    max_skew: int
    hard: bool
    selector: Selector | None
    min_domains: int
    honours_affinity: bool
    location: Location


def node_terms(role: Role) -> tuple[NodeTerm, ...]:
    """The required node selector terms (ORed by the scheduler)."""
    base: Route = ("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
    found = []
    for i, term in enumerate(as_list(dig(role.template.spec, *base))):
        requirements = tuple(parse_requirement(e) for e in as_list(dig(term, "matchExpressions")))
        found.append(NodeTerm(requirements=requirements, location=role.template.at("spec", *base, i)))
    return tuple(found)


def pod_terms(role: Role, section: str = "podAffinity") -> tuple[PodTerm, ...]:
    """Required terms of ``podAffinity`` or ``podAntiAffinity``."""
    base: Route = ("affinity", section, "requiredDuringSchedulingIgnoredDuringExecution")
    return tuple(
        _pod_term(as_map(term), role.template.at("spec", *base, i))
        for i, term in enumerate(as_list(dig(role.template.spec, *base)))
    )


def preferred_zone_affinity(role: Role) -> Location | None:
    """Where the role merely *prefers* one zone together (weight, no guarantee), if it does."""
    base: Route = ("affinity", "podAffinity", "preferredDuringSchedulingIgnoredDuringExecution")
    for i, item in enumerate(as_list(dig(role.template.spec, *base))):
        if dig(item, "podAffinityTerm", "topologyKey") in ZONE_KEYS:
            return role.template.at("spec", *base, i)
    return None


def _pod_term(term: Mapping[str, Any], location: Location) -> PodTerm:
    return PodTerm(
        selector=parse_selector(term.get("labelSelector")),
        topology_key=as_str(term.get("topologyKey")),
        namespaces=tuple(str(n) for n in as_list(term.get("namespaces"))),
        any_namespace=isinstance(term.get("namespaceSelector"), Mapping),
        location=location,
    )


def spreads(role: Role) -> tuple[Spread, ...]:
    """Topology spread constraints; an ill-typed maxSkew counts as 1, as the API requires a positive integer."""
    found = []
    for i, item in enumerate(as_list(role.template.spec.get("topologySpreadConstraints"))):
        skew, domains = dig(item, "maxSkew"), dig(item, "minDomains")
        found.append(
            Spread(
                index=i,
                topology_key=as_str(dig(item, "topologyKey")),
                max_skew=skew if isinstance(skew, int) and skew > 0 else 1,
                hard=as_str(dig(item, "whenUnsatisfiable"), "DoNotSchedule") == "DoNotSchedule",
                selector=parse_selector(dig(item, "labelSelector")),
                min_domains=domains if isinstance(domains, int) and domains > 0 else 1,
                honours_affinity=as_str(dig(item, "nodeAffinityPolicy"), "Honor") == "Honor",
                location=role.template.at("spec", "topologySpreadConstraints", i),
            )
        )
    return tuple(found)


def allowed_zones(role: Role) -> frozenset[str] | None:
    """Zones the role's nodeSelector and node affinity allow; ``None`` when they leave the zone open."""
    zones: frozenset[str] | None = None
    selector = as_map(role.template.spec.get("nodeSelector"))
    for key in ZONE_KEYS:
        if isinstance(selector.get(key), str):
            zones = frozenset({selector[key]})
    terms = [t.zones for t in node_terms(role)]
    if terms and all(t is not None for t in terms):
        ored = frozenset(z for t in terms if t is not None for z in t)
        zones = ored if zones is None else zones & ored
    return zones


def pinned(role: Role) -> bool:
    """True when the role can only land in one zone, by its own node constraints."""
    zones = allowed_zones(role)
    return zones is not None and len(zones) <= 1


def zone_affine(role: Role) -> bool:
    """True when a required pod affinity on a zone key binds the role to other pods' zone."""
    return any(t.topology_key in ZONE_KEYS for t in pod_terms(role))


def uses_zone_key(role: Role) -> Location | None:
    """The first constraint of the role that needs the zone label on nodes."""
    for key in ZONE_KEYS:
        if key in as_map(role.template.spec.get("nodeSelector")):
            return role.template.at("spec", "nodeSelector", key)
    for term in (*pod_terms(role), *pod_terms(role, "podAntiAffinity")):
        if term.topology_key in ZONE_KEYS:
            return term.location
    for node_term in node_terms(role):
        if node_term.zones is not None:
            return node_term.location
    return next((s.location for s in spreads(role) if s.topology_key in ZONE_KEYS and s.hard), None)


def tolerates(role: Role, taint: Taint) -> bool:
    """
    True when a toleration of the role covers `taint` (core/v1 Toleration.ToleratesTaint). The numeric operators of
    KEP-5471 (alpha, off) count as not tolerating.
    """
    for item in as_list(role.template.spec.get("tolerations")):
        key, effect = as_str(dig(item, "key")), as_str(dig(item, "effect"))
        operator = as_str(dig(item, "operator")) or "Equal"
        if effect and effect != taint.effect:
            continue
        if key and key != taint.key:
            continue
        if operator == "Exists" or (operator == "Equal" and key and as_str(dig(item, "value")) == taint.value):
            return True
    return False


def tolerations_place(role: Role) -> Location:
    """The role's tolerations, or its pod spec where they are missing."""
    if "tolerations" in role.template.spec:
        return role.template.at("spec", "tolerations")
    return role.template.at("spec")


def labels_of(job: TrainingJob, role: Role) -> Mapping[str, str]:
    """Labels of one pod of the role (the first), as the API server will hold them."""
    pods = job.pods_of(role.name)
    return pods[0].labels if pods else {**role.template.labels, **role.added_labels}


__all__ = [
    "HOSTNAME",
    "ZONE_KEYS",
    "NodeTerm",
    "PodTerm",
    "Spread",
    "allowed_zones",
    "labels_of",
    "node_terms",
    "pinned",
    "pod_terms",
    "preferred_zone_affinity",
    "spreads",
    "tolerates",
    "tolerations_place",
    "uses_zone_key",
    "zone_affine",
]
