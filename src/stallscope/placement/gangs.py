"""
Gangs: pods that start together or not at all, and topology requests: pods that share one domain.

The model, for every system alike (reference/placement.md §1, §2.7):
 - all or nothing: outcomes that bind fewer than `min_count` pods do not stay; nothing of the gang runs instead;
 - a required topology: one domain is chosen for the members and the others are closed to them; with a gang, a domain
   that holds it (measured on native PodGroups: zones of 2 and 8 free nodes, gang of 4: always the large one); without,
   any domain the first pod fits in (measured: policy basic locks the small zone);
 - a preferred one: the same where some domain holds the gang, else as if it were not there.
Sources: KEP-4671, KEP-5732 (native), KEP-2724 (Kueue), Volcano docs "gang" and networkTopology, scheduler-plugins
coscheduling, KAI docs/topology.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice, product
from typing import NamedTuple

from stallscope.model.workload import Gang
from stallscope.placement.ends import End
from stallscope.placement.kinds import Kind
from stallscope.placement.outcome import Placement
from stallscope.placement.problem import Problem
from stallscope.placement.reach import Reach, reach

#: Domains (or combinations of them) that are tried; above it the answer is not exhaustive.
MOST_DOMAINS = 64


class TopologyRequest(NamedTuple):
    """Members (pod names, None = all) share one domain of `key`."""

    key: str
    required: bool = True
    members: frozenset[str] | None = None


class GangSpec(NamedTuple):
    """
    `all_or_nothing` with `min_count` pods (None = all of them). `topologies` may be several: Kueue places each PodSet by
    itself unless a podset-group-name joins them. `unjudged` names what is declared but not modelled.
    """

    system: str = ""
    all_or_nothing: bool = True
    min_count: int | None = None
    topologies: tuple[TopologyRequest, ...] = ()
    unjudged: tuple[str, ...] = ()


def gang_spec(gang: Gang, members: Iterable[frozenset[str]] = ()) -> GangSpec:
    """
    The model of a declared gang. `members`: the sets of pod names that share a domain each (Kueue PodSets); default all
    together. A native PodGroup without a count has policy ``basic`` and is no gang.
    """
    groups: list[frozenset[str] | None] = list(members) or [None]
    wanted: tuple[TopologyRequest, ...] = ()
    unjudged: tuple[str, ...] = ()
    if gang.topology_key:
        required = gang.mode not in ("preferred", "soft")
        wanted = tuple(TopologyRequest(key=gang.topology_key, required=required, members=m) for m in groups)
    elif gang.mode in ("hard", "required"):
        unjudged = (f"{gang.system} network topology (its tiers are not among the inputs)",)
    return GangSpec(
        system=gang.system,
        all_or_nothing=gang.system != "native" or gang.min_count is not None,
        min_count=gang.min_count,
        topologies=wanted,
        unjudged=unjudged,
    )


def topology_keys(gang: GangSpec | None) -> frozenset[str]:
    return frozenset(t.key for t in gang.topologies) if gang else frozenset()


def membership(gang: GangSpec | None, names: Sequence[str]) -> list[tuple[bool, ...]]:
    """Which requests each pod belongs to: pods that differ in it are not alike."""
    requests = gang.topologies if gang else ()
    return [tuple(r.members is None or n in r.members for r in requests) for n in names]


def needed(gang: GangSpec, size: int) -> int:
    """Pods that must be bound for an outcome to stay."""
    if not gang.all_or_nothing:
        return 1
    return size if gang.min_count is None else min(gang.min_count, size)


class Ganged(NamedTuple):
    """What a gang can reach, and the (restricted) problem whose scored runs stand for it; None when nothing can run."""

    reach: Reach
    sample: Problem | None


def reach_with_gang(problem: Problem, names: Sequence[str], gang: GangSpec, tags: Sequence[tuple[bool, ...]]) -> Ganged:
    """`reach` under a gang. `problem` must have been built with `topology_keys` as extra keys and `tags` as tags."""
    need = needed(gang, len(names))
    if not gang.topologies:
        found = reach(problem, names)
        return Ganged(_held_together([found], need, len(names), names, gang), problem)
    choices, cut = _choices(problem, gang, tags)
    tried = [(p, reach(p, names)) for p in choices]
    fits = [(p, r) for p, r in tried if any(e.high >= need for e in r.ends) or not r.exhaustive]
    if fits or all(t.required for t in gang.topologies):
        joined = _held_together([r for _, r in fits], need, len(names), names, gang)
        chosen = fits[0][0] if fits else None
    else:
        joined = _held_together([reach(problem, names)], need, len(names), names, gang)
        chosen = problem
    return Ganged(joined._replace(exhaustive=joined.exhaustive and not cut), chosen)


def _held_together(found: Sequence[Reach], need: int, size: int, names: Sequence[str], gang: GangSpec) -> Reach:
    """
    Only ends with at least `need` bound pods stay. Nothing runs when no choice gives one, or when none gives it for
    certain (the gang's own attempt may strand its last pods, at every retry).
    """
    ends = frozenset(End(e.zones, max(e.low, need), e.high) for r in found for e in r.ends if e.high >= need)
    witnesses = [w for r in found for w in r.witnesses if len(names) - len(w.pending) >= need]
    surely = any(r.exhaustive and all(e.low >= need for e in r.ends) and r.ends for r in found)
    if not surely and (gang.all_or_nothing or not ends):
        ends |= {End(frozenset(), 0, 0)}
        witnesses.append(Placement(nodes=dict.fromkeys(names)))
    return Reach(size=size, ends=ends, witnesses=tuple(witnesses), exhaustive=all(r.exhaustive for r in found))


def _choices(problem: Problem, gang: GangSpec, tags: Sequence[tuple[bool, ...]]) -> tuple[list[Problem], bool]:
    """The problem restricted to each combination of domains (alike ones once), and whether some were left out."""
    domains = [_domains(problem, r.key) for r in gang.topologies]
    combinations = list(islice(product(*domains), MOST_DOMAINS + 1))
    cut = len(combinations) > MOST_DOMAINS
    members = [[any(tags[i][n] for i in c.members) for c in problem.classes] for n in range(len(gang.topologies))]
    restricted = []
    for combination in combinations[:MOST_DOMAINS]:
        limits = [(r.key, d, m) for r, d, m in zip(gang.topologies, combination, members, strict=True)]
        restricted.append(_restrict(problem, limits))
    return restricted, cut


def _domains(problem: Problem, key: str) -> list[str]:
    """Domain values, one of each set of alike domains (same zone, same kinds of nodes, as many of each)."""
    shapes: dict[str, list[tuple[object, ...]]] = {}
    for kind in problem.kinds:
        value = _domain_of(problem, kind, key)
        if value is not None and any(kind.allowed):
            others = tuple((k, v) for k, v in kind.domains.items() if k != key)
            shape = (kind.zone, kind.allowed, others, kind.single, kind.free if kind.single is None else (), len(kind.nodes))
            shapes.setdefault(value, []).append(shape)
    first: dict[object, str] = {}
    for value, seen in sorted(shapes.items()):
        first.setdefault(tuple(sorted(seen, key=repr)), value)
    return sorted(first.values())


def _domain_of(problem: Problem, kind: Kind, key: str) -> str | None:
    return (kind.zone or None) if key == problem.settings.zone_key else kind.domains.get(key)


def _restrict(problem: Problem, limits: Sequence[tuple[str, str, Sequence[bool]]]) -> Problem:
    """Close every node outside the chosen domains to the members."""

    def closed(kind: Kind) -> Kind:
        allowed = tuple(
            ok and all(_domain_of(problem, kind, key) == value for key, value, members in limits if members[c])
            for c, ok in enumerate(kind.allowed)
        )
        return kind if allowed == kind.allowed else replace(kind, allowed=allowed)

    return replace(problem, kinds=tuple(map(closed, problem.kinds)), single=tuple(map(closed, problem.single)))


def labelled_groups(pods_by_group: Mapping[str, Iterable[str]]) -> tuple[frozenset[str], ...]:
    """Member sets from a mapping of group to pod names, for `gang_spec`."""
    return tuple(frozenset(names) for _, names in sorted(pods_by_group.items()))
