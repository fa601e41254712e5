"""
Topology spread constraints over the zone (reference: placement.md §3).

They never co-locate: over zones with DoNotSchedule they split the job or leave it Pending. Under a pin to one zone such a
constraint is idle and stays; where it would still act, its topology key becomes the host name, which keeps the author's
wish (not everything on one node) and is what a spread constraint can do for a training job.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from stallscope.model.labels import parse_selector
from stallscope.model.source import as_list, as_map, as_str
from stallscope.model.topology import HOSTNAME
from stallscope.model.workload import Role, TrainingJob
from stallscope.placement.zonepins import ZONE_KEYS
from stallscope.remedy.groups import Group
from stallscope.remedy.roles import labels_of
from stallscope.remedy.specedits import SpecEdit

_FIELD = "topologySpreadConstraints"


def loosen(job: TrainingJob, role: Role, *, pinned: bool, soften: bool) -> tuple[SpecEdit, ...]:
    """Edits that stop zone constraints from splitting the role; `soften` makes the host spread a preference."""
    edits: list[SpecEdit] = []
    for index, item in _hard_over_zones(job, role):
        if pinned and _idle_under_pin(item):
            continue
        edits.append(SpecEdit("replace", (_FIELD, index, "topologyKey"), HOSTNAME))
        if soften and "minDomains" not in item:
            edits.append(SpecEdit("replace", (_FIELD, index, "whenUnsatisfiable"), "ScheduleAnyway"))
    return tuple(edits)


def over_hosts(group: Group) -> SpecEdit:
    """One rank a node where there is room, a preference: it may not keep the job from starting."""
    return SpecEdit(
        "append",
        (_FIELD,),
        {
            "maxSkew": 1,
            "topologyKey": HOSTNAME,
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": dict(group.labels)},
        },
    )


def _hard_over_zones(job: TrainingJob, role: Role) -> Iterator[tuple[int, Mapping[str, Any]]]:
    own = labels_of(job, role)
    for index, item in enumerate(map(as_map, as_list(role.template.spec.get(_FIELD)))):
        selector = parse_selector(item.get("labelSelector"))
        hard = as_str(item.get("whenUnsatisfiable"), "DoNotSchedule") == "DoNotSchedule"
        if item.get("topologyKey") in ZONE_KEYS and hard and selector is not None and selector.matches(own):
            yield index, item


def _idle_under_pin(item: Mapping[str, Any]) -> bool:
    """One eligible zone left: needs nodeAffinityPolicy Honor (the default) and no minDomains above 1."""
    domains = item.get("minDomains", 1)
    return item.get("nodeAffinityPolicy", "Honor") == "Honor" and not (isinstance(domains, int) and domains > 1)
