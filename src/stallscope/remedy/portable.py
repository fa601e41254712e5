"""
P2: the job keeps itself together with required podAffinity on the zone (reference: placement.md §4).

Roles with accelerators match themselves, so that the first of them may choose; roles without follow them (the reverse or
mutual form deadlocks, kubernetes/kubernetes#24995). podAffinity does not look ahead, so the choice is limited to zones that
hold the whole job, in every ORed node selector term.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stallscope.model.source import as_list, as_map, dig
from stallscope.model.topology import ZONE
from stallscope.model.workload import Role, TrainingJob
from stallscope.remedy.groups import group_of, part_of
from stallscope.remedy.roles import accelerated, movable
from stallscope.remedy.specedits import JobEdits, SpecEdit

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_TERMS = ("affinity", "nodeAffinity", _REQUIRED, "nodeSelectorTerms")


def portable_edits(
    job: TrainingJob,
    zones: Sequence[str],
    lacking: Mapping[str, Sequence[Mapping[str, Any]]],
    version: tuple[int, ...],
) -> JobEdits:
    """The affinity of every role; `zones` empty (no nodes known) leaves the choice open."""
    roles = movable(job)
    leaders = [r for r in roles if accelerated(r)] or list(roles)
    selector, group = part_of(job, group_of(job, version), leaders)
    term: dict[str, Any] = {"labelSelector": selector, "topologyKey": ZONE}
    if group.match_keys:
        term["matchLabelKeys"] = list(group.match_keys)
    specs = {
        role.name: (
            *(SpecEdit("append", ("tolerations",), t) for t in lacking.get(role.name, ())),
            SpecEdit("append", ("affinity", "podAffinity", _REQUIRED), term),
            *(limit_zones(role, zones) if zones else ()),
        )
        for role in roles
    }
    return JobEdits(specs=specs, labels=group.added)


def limit_zones(role: Role, zones: Sequence[str]) -> tuple[SpecEdit, ...]:
    """
    ``zone In zones`` in every term, since terms are ORed; a term that limits itself already, or an empty one (which
    matches nothing), stays as it is.
    """
    limit = {"key": ZONE, "operator": "In", "values": list(zones)}
    terms = as_list(dig(role.template.spec, *_TERMS))
    if not terms:
        return (SpecEdit("append", _TERMS, {"matchExpressions": [limit]}),)
    return tuple(
        SpecEdit("append", (*_TERMS, index, "matchExpressions"), limit)
        for index, term in enumerate(map(as_map, terms))
        if (term.get("matchExpressions") or term.get("matchFields")) and not _limits_itself(term, zones)
    )


def _limits_itself(term: Mapping[str, Any], zones: Sequence[str]) -> bool:
    return any(
        dig(e, "key") == ZONE and dig(e, "operator") == "In" and set(as_list(dig(e, "values"))) <= set(zones)
        for e in as_list(term.get("matchExpressions"))
    )
