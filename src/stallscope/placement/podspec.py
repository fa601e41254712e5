"""A pod spec parsed once into the frozen form every filter reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from stallscope.model.kube import DEFAULT_NAMESPACE
from stallscope.model.source import as_list, as_map, as_str, as_str_map, dig
from stallscope.placement.amounts import asked_by, host_ports
from stallscope.placement.holding import Known, held_by
from stallscope.placement.terms import (
    AffinityTerm,
    RequiredNodes,
    SpreadConstraint,
    Weighted,
    WeightedNodes,
    as_int,
    parse_preferred_nodes,
    parse_preferred_terms,
    parse_required_nodes,
    parse_required_terms,
    parse_spread,
)
from stallscope.placement.tolerations import COMPARISONS, Toleration, parse_tolerations


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSpec:
    """
    What the scheduler reads of a pod.

    `requests` are the scheduler's integers (`amounts.whole`). `own_spread` tells whether the pod declares any spread
    constraint: if so, cluster defaults do not apply. `claims` are PersistentVolumeClaim names. `unjudged` names
    constructs that are not modelled.
    """

    name: str
    namespace: str
    labels: Mapping[str, str]
    requests: Mapping[str, int]
    scoring: tuple[int, int] = (0, 0)
    tolerations: tuple[Toleration, ...] = ()
    node_name: str = ""
    nodes: RequiredNodes = field(default_factory=RequiredNodes)
    preferred_nodes: tuple[WeightedNodes, ...] = ()
    ports: tuple[tuple[str, str, int], ...] = ()
    spread: tuple[SpreadConstraint, ...] = ()
    own_spread: bool = False
    affinity: tuple[AffinityTerm, ...] = ()
    anti_affinity: tuple[AffinityTerm, ...] = ()
    preferred: tuple[Weighted, ...] = ()
    gates: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    priority: int = 0
    may_preempt: bool = True
    terminating: bool = False
    unjudged: tuple[str, ...] = ()


class BoundSpec(NamedTuple):
    """What the scheduler reads of a pod that already sits on a node. `home` is the node's name."""

    name: str
    namespace: str
    home: str
    labels: Mapping[str, str]
    requests: Mapping[str, int]
    scoring: tuple[int, int]
    ports: tuple[tuple[str, str, int], ...] = ()
    anti_affinity: tuple[AffinityTerm, ...] = ()
    preferred: tuple[Weighted, ...] = ()
    priority: int = 0
    terminating: bool = False


def compile_pod(body: Mapping[str, Any], namespace: str = DEFAULT_NAMESPACE) -> PodSpec:
    """Parse a plain pod body. Never raises: ill-typed parts count as absent or are named in `unjudged`."""
    spec = as_map(body.get("spec"))
    where = as_str(dig(body, "metadata", "namespace")) or namespace
    labels = as_str_map(dig(body, "metadata", "labels"))
    asked = asked_by(spec)
    tolerations = parse_tolerations(spec)
    spread = as_list(spec.get("topologySpreadConstraints"))
    return PodSpec(
        name=as_str(dig(body, "metadata", "name")),
        namespace=where,
        labels=labels,
        requests=asked.requests,
        scoring=asked.scoring,
        tolerations=tolerations,
        node_name=as_str(spec.get("nodeName")),
        nodes=parse_required_nodes(spec),
        preferred_nodes=parse_preferred_nodes(spec),
        ports=host_ports(spec),
        spread=tuple(parse_spread(c, labels) for c in spread),
        own_spread=bool(spread),
        affinity=parse_required_terms(spec, "podAffinity", where, labels),
        anti_affinity=parse_required_terms(spec, "podAntiAffinity", where, labels),
        preferred=_preferred(spec, where, labels),
        gates=tuple(as_str(as_map(g).get("name")) or "unnamed" for g in as_list(spec.get("schedulingGates"))),
        claims=_claims(body, spec),
        priority=as_int(spec.get("priority"), 0),
        may_preempt=spec.get("preemptionPolicy") != "Never",
        terminating=dig(body, "metadata", "deletionTimestamp") is not None,
        unjudged=asked.unreadable + _not_modelled(spec, tolerations),
    )


def compile_bound(
    body: Mapping[str, Any], *, home: str, namespace: str, name: str, labels: Mapping[str, str], known: Known | None = None
) -> BoundSpec:
    """Parse a pod that is already bound to node `home`; `known` is what the pods before were found to hold."""
    spec = as_map(body.get("spec"))
    asked, ports = held_by(body, {} if known is None else known)
    has_affinity = bool(spec.get("affinity"))
    return BoundSpec(
        name=name,
        namespace=namespace,
        home=home,
        labels=labels,
        requests=asked.requests,
        scoring=asked.scoring,
        ports=ports,
        anti_affinity=parse_required_terms(spec, "podAntiAffinity", namespace, labels) if has_affinity else (),
        preferred=_preferred(spec, namespace, labels) if has_affinity else (),
        priority=as_int(spec.get("priority"), 0),
        terminating=dig(body, "metadata", "deletionTimestamp") is not None,
    )


def _preferred(spec: Mapping[str, Any], namespace: str, labels: Mapping[str, str]) -> tuple[Weighted, ...]:
    return parse_preferred_terms(spec, "podAffinity", namespace, labels) + parse_preferred_terms(
        spec, "podAntiAffinity", namespace, labels
    )


def _claims(body: Mapping[str, Any], spec: Mapping[str, Any]) -> tuple[str, ...]:
    """PVC names, those of generic ephemeral volumes included (``<pod>-<volume>``)."""
    found = []
    for volume in map(as_map, as_list(spec.get("volumes"))):
        claim = as_map(volume.get("persistentVolumeClaim"))
        if claim:
            found.append(as_str(claim.get("claimName")))
        elif "ephemeral" in volume:
            found.append(f"{as_str(dig(body, 'metadata', 'name'))}-{as_str(volume.get('name'))}")
    return tuple(found)


def _not_modelled(spec: Mapping[str, Any], tolerations: tuple[Toleration, ...]) -> tuple[str, ...]:
    """Constructs whose effect on placement is not modelled, by name."""
    names = []
    if spec.get("resourceClaims"):
        names.append("resourceClaims (dynamic resource allocation)")
    if as_str(spec.get("runtimeClassName")) and "overhead" not in spec:
        names.append(f"runtimeClassName {as_str(spec.get('runtimeClassName'))} (its overhead and node selector)")
    if any(t.operator in COMPARISONS for t in tolerations):
        names.append("toleration operator Gt/Lt (feature gate TaintTolerationComparisonOperators)")
    if as_str(spec.get("priorityClassName")) and "priority" not in spec:
        names.append(f"priorityClassName {as_str(spec.get('priorityClassName'))} (preemption)")
    return tuple(names)
