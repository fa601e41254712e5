"""
How the job's own pods constrain each other, with everything that bound pods decide folded away.

A term that only bound pods can satisfy or violate is a fact about nodes, not about the job; so is a spread constraint
whose emptiest domain can never change. What is left is dynamic and kept here, per class.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from stallscope.placement.classes import PodClass
from stallscope.placement.filters.interpod import interpod_state, matches_all
from stallscope.placement.filters.spread import spread_state
from stallscope.placement.filters.volumes import VolumeState, volume_state
from stallscope.placement.settings import Settings
from stallscope.placement.state import Cluster

Pair = tuple[str, str]


class Blocker(NamedTuple):
    """A topology key and the classes whose pods keep a class out of their domain (anti-affinity, either way)."""

    key: str
    classes: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """
    A hard spread constraint of a class: the classes it counts, bound pods per domain, and its numbers. `index` is its
    position among the class's hard constraints.
    """

    index: int
    key: str
    classes: tuple[int, ...]
    base: Mapping[str, int]
    max_skew: int
    min_domains: int
    self_match: int

    @property
    def base_minimum(self) -> int:
        return min(self.base.values()) if self.base and len(self.base) >= self.min_domains else 0

    def admits(self, domain: str) -> bool:
        """Whether the domain passes as things stand before the job placed anything."""
        return self.base.get(domain, 0) + self.self_match - self.base_minimum <= self.max_skew


@dataclass(frozen=True, slots=True, kw_only=True)
class Interplay:
    """
    The terms of one class. `keys`, `attract`: affinity, and the classes that satisfy it; `blockers`; `spread`: all
    dynamic. `fixed_*` are those that only bound pods decide.
    """

    keys: tuple[str, ...] = ()
    attract: tuple[int, ...] = ()
    attracted_base: frozenset[Pair] = frozenset()
    self_ok: bool = False
    blockers: tuple[Blocker, ...] = ()
    spread: tuple[Counted, ...] = ()
    fixed_keys: tuple[str, ...] = ()
    fixed_spread: tuple[Counted, ...] = ()
    fixed_blocks: frozenset[Pair] = frozenset()
    volumes: VolumeState = field(default_factory=VolumeState)

    @property
    def free(self) -> bool:
        """No other pod of the job changes where this class may go, room on the node apart."""
        return not self.keys and not self.blockers and not self.spread

    @property
    def may_recover(self) -> bool:
        """A pod of this class that found no node may find one later, when others were bound."""
        return bool(self.keys or self.spread)


def compile_interplay(classes: Sequence[PodClass], cluster: Cluster, settings: Settings) -> tuple[Interplay, ...]:
    return tuple(_settled(_terms(c, classes, cluster, settings), classes) for c in classes)


def _terms(chosen: PodClass, classes: Sequence[PodClass], cluster: Cluster, settings: Settings) -> Interplay:
    spec = chosen.spec
    spread = spread_state(spec, chosen.spread, cluster.nodes, comparisons=settings.comparisons)
    bound = interpod_state(spec, cluster)
    return Interplay(
        keys=tuple(dict.fromkeys(t.topology_key for t in spec.affinity)),
        attract=tuple(o.index for o in classes if matches_all(spec.affinity, o.spec, cluster)),
        attracted_base=frozenset(bound.affinity),
        self_ok=matches_all(spec.affinity, spec, cluster),
        blockers=_blockers(chosen, classes, cluster),
        spread=tuple(
            Counted(
                index=i,
                key=c.topology_key,
                classes=tuple(o.index for o in classes if o.spec.namespace == spec.namespace and c.counts(o.spec.labels)),
                base=spread.counts[i],
                max_skew=c.max_skew,
                min_domains=c.min_domains,
                self_match=spread.self_match[i],
            )
            for i, c in enumerate(chosen.hard)
        ),
        fixed_blocks=frozenset(bound.existing | bound.anti_affinity),
        volumes=volume_state(spec, settings),
    )


def _blockers(chosen: PodClass, classes: Sequence[PodClass], cluster: Cluster) -> tuple[Blocker, ...]:
    found: dict[str, set[int]] = {}
    for other in classes:
        if chosen.size < 2 and other is chosen:
            continue
        here, there = (cluster.labels_of_namespace(p.spec.namespace) for p in (chosen, other))
        for term in chosen.spec.anti_affinity:
            if term.draws(other.spec.namespace, other.spec.labels, there):
                found.setdefault(term.topology_key, set()).add(other.index)
        for term in other.spec.anti_affinity:
            if term.matches(chosen.spec.namespace, chosen.spec.labels, here):
                found.setdefault(term.topology_key, set()).add(other.index)
    return tuple(Blocker(key, tuple(sorted(indexes))) for key, indexes in sorted(found.items()))


def _settled(found: Interplay, classes: Sequence[PodClass]) -> Interplay:
    """Move what no pod of the job can change from the dynamic to the fixed terms; drop what can never bind."""
    sizes = [c.size for c in classes]
    fixed, moving = [], []
    for counted in found.spread:
        more = sum(sizes[c] for c in counted.classes)
        if not more:
            fixed.append(counted)
        elif max(counted.base.values(), default=0) + more > counted.max_skew:  # itself among them, or all beside it
            moving.append(counted)
    lone = not found.attract
    return replace(
        found,
        keys=() if lone else found.keys,
        fixed_keys=found.keys if lone else (),
        spread=tuple(moving),
        fixed_spread=tuple(fixed),
    )
