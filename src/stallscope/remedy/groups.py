"""How the pods of one job are told from all others in a selector."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from stallscope.model.workload import Role, TrainingJob
from stallscope.remedy.roles import labels_of, movable, present, telling_label, usable

#: Our own label, where a job has none that can be written down before its controller ran (RayJob, HyperPod).
OWN_LABEL = "stallscope.dev/job"
LEADS = "stallscope.dev/leads-zone"
#: Labels with one value per run, so that a leftover pod of the same name does not count (GA with matchLabelKeys, 1.33).
RUN_LABELS = ("jobset.sigs.k8s.io/jobset-uid", "batch.kubernetes.io/controller-uid")
#: One value per group of a LeaderWorkerSet.
GROUP_KEY = "leaderworkerset.sigs.k8s.io/group-key"
_PER_GROUP = ("leaderworkerset.sigs.k8s.io/group-index", GROUP_KEY)
MATCH_LABEL_KEYS_SINCE = (1, 33)


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """
    `labels` select the job's pods; `match_keys` narrow the selection to one run or one group of it; `added` must be put
    on the templates of the roles named.
    """

    labels: Mapping[str, str]
    match_keys: tuple[str, ...] = ()
    added: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def covers(self, job: TrainingJob, role: Role) -> bool:
        """Whether the pods of the role carry the labels, or will."""
        return role.name in self.added or self.labels.items() <= labels_of(job, role).items()


def group_of(job: TrainingJob, version: tuple[int, ...] = ()) -> Group:
    """The group of all pods; `version` is the API server's, for the keys it may know."""
    labels = {k: v for k, v in job.group_labels.items() if k not in _PER_GROUP}
    keys = _match_keys(job) if version >= MATCH_LABEL_KEYS_SINCE else ()
    if usable(labels) and all(labels.items() <= labels_of(job, r).items() for r in movable(job)):
        return Group(labels=labels, match_keys=keys)
    own = {OWN_LABEL: label_value(job.name)}
    return Group(labels=own, match_keys=keys, added={r.name: own for r in present(job) if r.template.patchable})


def _match_keys(job: TrainingJob) -> tuple[str, ...]:
    every = [set(job.pods_of(r.name)[0].labels) for r in movable(job) if job.pods_of(r.name)]
    shared = set.intersection(*every) if every else set()
    if GROUP_KEY in shared:
        return (GROUP_KEY,) if job.copies > 1 else ()
    return tuple(k for k in RUN_LABELS if k in shared)[:1]


def part_of(job: TrainingJob, group: Group, chosen: Sequence[Role]) -> tuple[Mapping[str, Any], Group]:
    """
    A label selector for the pods of the `chosen` roles of the group, and the group with what that needs on templates.
    """
    if {r.name for r in chosen} >= {r.name for r in movable(job)}:
        return {"matchLabels": dict(group.labels)}, group
    told = telling_label(job, chosen)
    if told is not None and len(told[1]) == 1:
        return {"matchLabels": {**group.labels, told[0]: told[1][0]}}, group
    if told is not None:
        few = {"key": told[0], "operator": "In", "values": list(told[1])}
        return {"matchLabels": dict(group.labels), "matchExpressions": [few]}, group
    added = {name: dict(labels) for name, labels in group.added.items()}
    for role in chosen:
        added[role.name] = {**added.get(role.name, {}), LEADS: "true"}
    return {"matchLabels": {**group.labels, LEADS: "true"}}, Group(
        labels=group.labels, match_keys=group.match_keys, added=added
    )


def label_value(text: str) -> str:
    """`text` as a label value: at most 63 characters, and an alphanumeric one at each end."""
    return text[:63].strip("-._")
