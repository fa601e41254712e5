"""Pods that are alike: nothing a scheduler looks at tells them apart."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from stallscope.model.labels import Selector
from stallscope.placement.podspec import PodSpec
from stallscope.placement.settings import Settings, spread_of
from stallscope.placement.state import Cluster
from stallscope.placement.terms import SpreadConstraint


@dataclass(frozen=True, slots=True, kw_only=True)
class PodClass:
    """Pods that are alike. `members` are positions in creation order; `counted` ones decide the zone set (ranks)."""

    index: int
    spec: PodSpec
    members: tuple[int, ...]
    counted: bool = True
    spread: tuple[SpreadConstraint, ...] = ()

    @property
    def size(self) -> int:
        return len(self.members)

    @property
    def hard(self) -> tuple[SpreadConstraint, ...]:
        """Spread constraints that filter."""
        return tuple(c for c in self.spread if c.hard)


def group_pods(
    specs: Sequence[PodSpec], cluster: Cluster, settings: Settings, tags: Sequence[Hashable], counted: Sequence[bool]
) -> tuple[tuple[PodClass, ...], tuple[int, ...]]:
    """Classes, and the class of each pod in creation order. Pods with different `tags` are kept apart."""
    keys = _label_keys(specs, cluster, settings)
    found: dict[Hashable, int] = {}
    members: list[list[int]] = []
    order = []
    for position, spec in enumerate(specs):
        key = (_class_key(spec, keys), counted[position], tags[position])
        index = found.setdefault(key, len(found))
        if index == len(members):
            members.append([])
        members[index].append(position)
        order.append(index)
    classes = tuple(
        PodClass(
            index=index,
            spec=specs[where[0]],
            members=tuple(where),
            counted=counted[where[0]],
            spread=spread_of(specs[where[0]], settings),
        )
        for index, where in enumerate(members)
    )
    return classes, tuple(order)


def _selectors(specs: Iterable[PodSpec], cluster: Cluster) -> Iterable[Selector | None]:
    seen: set[int] = set()
    for spec in specs:
        if id(spec.affinity) not in seen or id(spec.spread) not in seen:
            seen |= {id(spec.affinity), id(spec.spread)}
            terms = (*spec.affinity, *spec.anti_affinity, *(w.term for w in spec.preferred))
            yield from (t.selector for t in terms)
            yield from (c.selector for c in spec.spread)
    for _, bound in cluster.affine:
        yield from (t.selector for t in bound.anti_affinity)


def _label_keys(specs: Sequence[PodSpec], cluster: Cluster, settings: Settings) -> frozenset[str]:
    """Label keys that any selector in play looks at: only these can tell two pods apart."""
    keys = {r.key for s in _selectors(specs, cluster) if s is not None for r in s.requirements}
    for owner in settings.owners:
        keys |= set(owner.selector)
    return frozenset(keys)


def _class_key(spec: PodSpec, keys: frozenset[str]) -> Hashable:
    return (
        spec.namespace,
        tuple(sorted((k, v) for k, v in spec.labels.items() if k in keys)),
        tuple(sorted(spec.requests.items())),
        spec.scoring,
        spec.tolerations,
        spec.node_name,
        spec.nodes,
        spec.preferred_nodes,
        spec.ports,
        spec.spread,
        spec.own_spread,
        spec.affinity,
        spec.anti_affinity,
        spec.preferred,
        spec.gates,
        spec.claims,
    )
