"""What every scored run of one problem shares: places, soft spread, preferred affinity."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import NamedTuple

from stallscope.model.topology import HOSTNAME
from stallscope.placement.filters.spread import count_matching, is_eligible
from stallscope.placement.problem import Kind, Problem
from stallscope.placement.scoring import HARD_WEIGHT, node_preference, resource_score, soft_taints
from stallscope.placement.terms import SpreadConstraint

Pair = tuple[str, str]
#: A topology key and what one pod there is worth.
KeyWeight = tuple[str, int]


class Soft(NamedTuple):
    """A soft spread constraint of a class: the classes it counts and bound pods per domain."""

    constraint: SpreadConstraint
    classes: tuple[int, ...]
    base: dict[str, int]


class Stage(NamedTuple):
    """
    What every run of one problem shares. `places` are kinds without their room; `place_of[node]`; `liking[c][place]` is
    (preferred node affinity, soft taints); `soft[c]`; `pull[c][d]` what a placed pod of d is worth to c, per key;
    `pull_base[c]` the same of bound pods, per domain; `scores[c][node]` the resource scores of the empty job, None where the
    class does not fit; `values[place]` domains of the keys that scores look at.
    """

    problem: Problem
    place_of: tuple[int, ...]
    values: tuple[dict[str, str], ...]
    liking: tuple[tuple[tuple[int, int], ...], ...]
    soft: tuple[tuple[Soft, ...], ...]
    pull: tuple[tuple[tuple[KeyWeight, ...], ...], ...]
    pull_base: tuple[dict[Pair, int], ...]
    scores: tuple[tuple[int | None, ...], ...]


def set_stage(problem: Problem) -> Stage:
    """Prepare runs of `problem`."""
    classes = problem.classes
    soft = tuple(tuple(_soft(problem, c, s) for s in classes[c].spread if not s.hard) for c in range(len(classes)))
    pull = tuple(tuple(_pull(problem, c, d) for d in range(len(classes))) for c in range(len(classes)))
    pull_base = tuple(_pull_base(problem, c) for c in range(len(classes)))
    keys = {s.constraint.topology_key for found in soft for s in found} | {k for row in pull for x in row for k, _ in x}
    keys |= {k for base in pull_base for k, _ in base}
    found: dict[Hashable, int] = {}
    kinds: list[Kind] = []
    values: list[dict[str, str]] = []
    liking: list[tuple[tuple[int, int], ...]] = []
    place_of = []
    plain = not any(c.spec.preferred_nodes for c in classes) and not any(
        t.effect == "PreferNoSchedule" for n in problem.cluster.nodes for t in n.node.taints
    )
    nothing = ((0, 0),) * len(classes)
    for state, kind in zip(problem.cluster.nodes, problem.single, strict=True):
        own = {k: state.labels[k] for k in keys if k in state.labels and k not in problem.per_node and k != HOSTNAME}
        likes = (
            nothing
            if plain
            else tuple((node_preference(c.spec, state.node), soft_taints(c.spec, state.node)) for c in classes)
        )
        key = (
            kind.zone,
            tuple(kind.domains.items()),
            kind.keyed,
            kind.eligible,
            kind.own,
            kind.near,
            tuple(own.items()),
            likes,
        )
        index = found.setdefault(key, len(kinds))
        if index == len(kinds):
            kinds.append(replace(kind, index=index))
            values.append(own)
            liking.append(likes)
        place_of.append(index)
    return Stage(
        problem=replace(problem, kinds=tuple(kinds)),
        place_of=tuple(place_of),
        values=tuple(values),
        liking=tuple(liking),
        soft=soft,
        pull=pull,
        pull_base=pull_base,
        scores=tuple(_first_scores(problem, c) for c in range(len(classes))),
    )


def _soft(problem: Problem, chosen: int, constraint: SpreadConstraint) -> Soft:
    spec = problem.classes[chosen].spec
    base: dict[str, int] = {}
    for state in problem.cluster.nodes:
        domain = state.labels.get(constraint.topology_key)
        if state.pods and domain is not None:
            count = count_matching(constraint, spec.namespace, state)
            if count and is_eligible(constraint, spec, state.node, comparisons=problem.settings.comparisons):
                base[domain] = base.get(domain, 0) + count
    same = [c for c in problem.classes if c.spec.namespace == spec.namespace]
    return Soft(constraint, tuple(c.index for c in same if constraint.counts(c.spec.labels)), base)


def _pull(problem: Problem, chosen: int, other: int) -> tuple[KeyWeight, ...]:
    """Weights a placed pod of `other` adds to its domains for a pod of `chosen`."""
    mine, theirs = problem.classes[chosen].spec, problem.classes[other].spec
    cluster = problem.cluster
    weights: dict[str, int] = {}
    here, there = cluster.labels_of_namespace(mine.namespace), cluster.labels_of_namespace(theirs.namespace)
    for wanted in mine.preferred:
        if wanted.term.draws(theirs.namespace, theirs.labels, there):
            weights[wanted.term.topology_key] = weights.get(wanted.term.topology_key, 0) + wanted.weight
    for wanted in theirs.preferred:
        if wanted.term.matches(mine.namespace, mine.labels, here):
            weights[wanted.term.topology_key] = weights.get(wanted.term.topology_key, 0) + wanted.weight
    for term in theirs.affinity:
        if term.matches(mine.namespace, mine.labels, here):
            weights[term.topology_key] = weights.get(term.topology_key, 0) + HARD_WEIGHT
    return tuple(sorted((k, w) for k, w in weights.items() if w))


def _pull_base(problem: Problem, chosen: int) -> dict[Pair, int]:
    mine, cluster = problem.classes[chosen].spec, problem.cluster
    here = cluster.labels_of_namespace(mine.namespace)
    found: dict[Pair, int] = {}
    for state in cluster.nodes:
        for bound in state.pods:
            if not mine.preferred and not bound.preferred:
                continue
            there = cluster.labels_of_namespace(bound.namespace)
            terms = [w for w in mine.preferred if w.term.draws(bound.namespace, bound.labels, there)]
            terms += [w for w in bound.preferred if w.term.matches(mine.namespace, mine.labels, here)]
            for wanted in terms:
                value = state.labels.get(wanted.term.topology_key)
                if value is not None:
                    pair = (wanted.term.topology_key, value)
                    found[pair] = found.get(pair, 0) + wanted.weight
    return found


def _first_scores(problem: Problem, chosen: int) -> tuple[int | None, ...]:
    spec = problem.classes[chosen].spec
    return tuple(
        resource_score(spec, state, (0, 0, 0, 0)) if problem.fits(kind, problem.empty, chosen) else None
        for state, kind in zip(problem.cluster.nodes, problem.single, strict=True)
    )
