"""
Facts about a job's constraints that rules report: terms that pin nothing, affinities that never hold, spreads that split.

Sources: reference/placement.md §2.2 (ORed terms), §2.3 (first-pod rule, mutual affinity, kubernetes#24995), §2.4 and §3
(what topology spread can and cannot do), kubernetes#129762 (zones without the resource count as empty domains).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from stallscope.model.topology import HOSTNAME, ZONE, Topology
from stallscope.placement.compilation import compile_pods
from stallscope.placement.filters.interpod import matches_all
from stallscope.placement.filters.node import refuse_node
from stallscope.placement.filters.spread import spread_state
from stallscope.placement.outcome import PodRequest
from stallscope.placement.podspec import PodSpec
from stallscope.placement.settings import DEFAULT_SETTINGS, Settings, spread_of
from stallscope.placement.snapshot import snapshot_of
from stallscope.placement.state import Cluster, build_cluster
from stallscope.placement.terms import SpreadConstraint
from stallscope.placement.zonepins import co_locates, zone_pin


class OpenTerms(NamedTuple):
    """Node affinity of a role with ORed terms, some of which name a zone and `without` (indexes) do not."""

    klass: str
    terms: int
    without: tuple[int, ...]


class AffinityFact(NamedTuple):
    """
    Required pod affinity of a role, term by term ANDed. `attracts`: roles of the job that satisfy all its terms;
    `first_may_go_anywhere`: it matches itself, so without any matching pod its first one may be placed. `waits_for_ever`:
    no order of binding ever satisfies it from within the job (mutual requirement, a selector nobody matches).
    `bound_matches`: already bound pods, ``namespace/name``, that satisfy it and hence decide the domain.
    """

    klass: str
    keys: tuple[str, ...]
    attracts: tuple[str, ...]
    first_may_go_anywhere: bool
    waits_for_ever: bool
    bound_matches: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SpreadFact:
    """
    A hard spread constraint of a role (`index` in its list). `domains`: eligible ones; `hostile`: those of them where no
    counted pod can ever be placed. `verdict`: ``idle`` (selector misses the pod, or one domain), ``permits`` (maxSkew
    allows all pods in one domain), ``forces-split``, ``blocks`` (at most `binds` pods can be bound), ``contradicts`` (the
    role also requires pod affinity on the same key).
    """

    klass: str
    index: int
    key: str
    max_skew: int
    counted: int
    domains: tuple[str, ...]
    hostile: tuple[str, ...]
    verdict: str
    binds: int | None = None


def affinity_pins_nothing(pods: Sequence[PodRequest]) -> tuple[OpenTerms, ...]:
    """Roles whose zone pin is one ORed term among others: it pins nothing (gardener#7166 shipped that bug)."""
    found = []
    for klass, spec, _ in roles_of(pods):
        pin = zone_pin(spec)
        if pin.open_terms and spec.nodes.terms:
            without = tuple(
                i for i, t in enumerate(spec.nodes.terms) if not any(_names_zone(r.key, r.operator) for r in t.labels)
            )
            found.append(OpenTerms(klass=klass, terms=len(spec.nodes.terms), without=without))
    return tuple(found)


def _names_zone(key: str, operator: str) -> bool:
    return operator == "In" and co_locates(key) and key != HOSTNAME


def affinity_facts(pods: Sequence[PodRequest], topology: Topology | None = None) -> tuple[AffinityFact, ...]:
    """Required pod affinity, role by role; bound pods are considered when there is a topology."""
    cluster = snapshot_of(topology) if topology else build_cluster(Topology(nodes=()))
    roles = roles_of(pods)
    bound = {k: _bound_matches(s, cluster) for k, s, _ in roles if s.affinity}
    attract = {k: {o for o, t, _ in roles if matches_all(s.affinity, t, cluster)} for k, s, _ in roles if s.affinity}
    started = {k for k, s, _ in roles if not s.affinity or k in attract[k] or bound[k]}
    grown = True
    while grown:
        more = {k for k in attract if k not in started and attract[k] & started}
        grown = bool(more)
        started |= more
    return tuple(
        AffinityFact(
            klass=k,
            keys=tuple(dict.fromkeys(t.topology_key for t in s.affinity)),
            attracts=tuple(sorted(attract[k])),
            first_may_go_anywhere=k in attract[k],
            waits_for_ever=k not in started,
            bound_matches=bound[k],
        )
        for k, s, _ in roles
        if s.affinity
    )


def _bound_matches(spec: PodSpec, cluster: Cluster) -> tuple[str, ...]:
    return tuple(f"{b.namespace}/{b.name}" for n in cluster.nodes for b in n.pods if matches_all(spec.affinity, b, cluster))


def spread_facts(
    pods: Sequence[PodRequest], topology: Topology, settings: Settings = DEFAULT_SETTINGS
) -> tuple[SpreadFact, ...]:
    """Hard spread constraints over anything but the hostname, role by role."""
    cluster = snapshot_of(topology)
    roles = roles_of(pods)
    found = []
    for klass, spec, _ in roles:
        constraints = spread_of(spec, settings)
        prepared = spread_state(spec, constraints, cluster.nodes)
        hard = [(i, c) for i, c in enumerate(constraints) if c.hard]
        for (index, constraint), counts in zip(hard, prepared.counts, strict=True):
            if constraint.topology_key != HOSTNAME:
                found.append(_spread_fact(klass, spec, index, constraint, counts, roles, cluster))
    return tuple(found)


def spread_forces_split(pods: Sequence[PodRequest], topology: Topology) -> tuple[SpreadFact, ...]:
    """Those of `spread_facts` that force a split or block pods."""
    return tuple(f for f in spread_facts(pods, topology) if f.verdict in ("forces-split", "blocks", "contradicts"))


def _spread_fact(
    klass: str,
    spec: PodSpec,
    index: int,
    constraint: SpreadConstraint,
    counts: Mapping[str, int],
    roles: Sequence[tuple[str, PodSpec, int]],
    cluster: Cluster,
) -> SpreadFact:
    counted = sum(n for _, s, n in roles if s.namespace == spec.namespace and constraint.counts(s.labels))
    entered = _domains_entered([s for _, s, _ in roles if constraint.counts(s.labels)], constraint.topology_key, cluster)
    hostile = tuple(sorted(d for d in counts if d not in entered))
    skew = constraint.max_skew
    binds = None
    if not constraint.counts(spec.labels) or (len(counts) < 2 and constraint.min_domains < 2):
        verdict = "idle"
    elif any(t.topology_key == constraint.topology_key for t in spec.affinity) and counted > skew:
        verdict = "contradicts"
    elif max(counts.values(), default=0) + counted <= skew:
        verdict = "permits"
    elif len(counts) < constraint.min_domains or any(counts[d] == min(counts.values()) for d in hostile):
        lowest = 0 if len(counts) < constraint.min_domains else min(counts.values(), default=0)
        binds = sum(max(0, lowest + skew - n) for d, n in counts.items() if d in entered)
        verdict = "blocks" if binds < counted else "forces-split"
    else:
        verdict = "forces-split"
    return SpreadFact(
        klass=klass,
        index=index,
        key=constraint.topology_key,
        max_skew=skew,
        counted=counted,
        domains=tuple(sorted(counts)),
        hostile=hostile,
        verdict=verdict,
        binds=binds,
    )


def _domains_entered(specs: Sequence[PodSpec], key: str, cluster: Cluster) -> set[str]:
    """Domains with a node that could take one of the pods if it were empty of the job's other pods."""
    entered = set()
    for state in cluster.nodes:
        domain = state.labels.get(key)
        if domain is not None and domain not in entered:
            for spec in specs:
                room = all(a <= state.free(r) for r, a in spec.requests.items() if r not in cluster.unstated)
                if refuse_node(spec, state.node) is None and ("*" in cluster.unstated or room):
                    entered.add(domain)
                    break
    return entered


def unlabelled_nodes(topology: Topology, key: str = ZONE) -> tuple[str, ...]:
    """Nodes without the label: pod affinity and spread over it never admit them."""
    return tuple(n.name for n in topology.nodes if key not in n.labels)


def roles_of(pods: Sequence[PodRequest]) -> list[tuple[str, PodSpec, int]]:
    """``(role, spec of its first pod, number of pods)``, by `PodRequest.klass` (the pod's own name when empty)."""
    first: dict[str, PodSpec] = {}
    counts: dict[str, int] = {}
    for pod, spec in zip(pods, compile_pods(pods), strict=True):
        klass = pod.klass or pod.name
        first.setdefault(klass, spec)
        counts[klass] = counts.get(klass, 0) + 1
    return [(k, s, counts[k]) for k, s in first.items()]
