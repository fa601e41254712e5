"""
Required zone affinity that points the wrong way: workers that follow the coordinator, or two roles that follow each other
(kubernetes/kubernetes#24995). Turned round by one scalar: the value of the role's label in the selector.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from stallscope.model.labels import parse_selector
from stallscope.model.source import Route, as_list, as_map, dig
from stallscope.model.workload import Role, TrainingJob
from stallscope.placement.zonepins import ZONE_KEYS
from stallscope.remedy.roles import accelerated, labels_of, movable
from stallscope.remedy.specedits import SpecEdit

_TERMS: Route = ("affinity", "podAffinity", "requiredDuringSchedulingIgnoredDuringExecution")


def turn_round(job: TrainingJob) -> Mapping[str, tuple[SpecEdit, ...]]:
    """Edits per role that make roles with accelerators select themselves instead of another role."""
    roles = movable(job)
    leaders = [r for r in roles if accelerated(r)] or list(roles[:1])
    found: dict[str, tuple[SpecEdit, ...]] = {}
    for role in leaders:
        edits = tuple(edit for route, term in _zone_terms(role) if (edit := _edit(job, role, route, term)) is not None)
        if edits:
            found[role.name] = edits
    return found


def turn_rounds(job: TrainingJob) -> Iterator[Mapping[str, tuple[SpecEdit, ...]]]:
    """Ways to turn it round, smallest first: one role (that with most pods first), then all of them."""
    every = turn_round(job)
    if len(every) > 1:
        for name in sorted(every, key=lambda n: (-job.role(n).replicas, n)):
            yield {name: every[name]}
    if every:
        yield every


def _zone_terms(role: Role) -> Iterator[tuple[Route, Mapping[str, Any]]]:
    for index, term in enumerate(map(as_map, as_list(dig(role.template.spec, *_TERMS)))):
        if term.get("topologyKey") in ZONE_KEYS:
            yield (*_TERMS, index), term


def _edit(job: TrainingJob, role: Role, route: Route, term: Mapping[str, Any]) -> SpecEdit | None:
    """One label value that, replaced by the role's own, makes the term match the role; None when there is none."""
    own = labels_of(job, role)
    selector = parse_selector(term.get("labelSelector"))
    if selector is None or selector.matches(own):
        return None
    wanted = as_map(dig(term, "labelSelector", "matchLabels"))
    differing = [k for k, v in wanted.items() if own.get(k) != v]
    others = [r for r in selector.requirements if r.key not in differing]
    if len(differing) != 1 or differing[0] not in own or not all(r.matches(own) for r in others):
        return None
    return SpecEdit("replace", (*route, "labelSelector", "matchLabels", differing[0]), own[differing[0]])
