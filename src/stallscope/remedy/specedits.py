"""
Changes to pod specs, tried on the placement engine before they are written anywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from stallscope.judge.gang import declared_gang
from stallscope.judge.pods import pod_requests
from stallscope.model.source import Route
from stallscope.model.topology import Topology
from stallscope.model.workload import Role, TrainingJob
from stallscope.placement.group import GroupOutcome, PodRequest, judge_group
from stallscope.remedy import ops, templates
from stallscope.remedy.roles import movable
from stallscope.remedy.workbench import Bench


@dataclass(frozen=True, slots=True)
class SpecEdit:
    """One change below a pod spec."""

    kind: Literal["set", "append", "replace"]
    route: Route
    value: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEdits:
    """Changes per role name, and labels put on every template in `labels`."""

    specs: Mapping[str, tuple[SpecEdit, ...]] = field(default_factory=dict)
    labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


def edited_spec(spec: Mapping[str, Any], edits: Sequence[SpecEdit]) -> Any:
    """The spec with the edits. Raises PatchRefused when one does not fit."""
    tree: Any = spec
    for edit in edits:
        match edit.kind:
            case "set":
                tree = ops.apply(tree, ops.SetKey(file="", document=0, route=edit.route, value=edit.value))
            case "append":
                tree = ops.apply(tree, ops.AppendItem(file="", document=0, route=edit.route, item=edit.value))
            case "replace":
                tree = ops.replaced(tree, edit.route, edit.value)
    return tree


def write(bench: Bench, job: TrainingJob, edits: JobEdits) -> None:
    """Record the edits as operations on the files. Raises PatchRefused."""
    for role in job.roles:
        if edits.labels.get(role.name):
            templates.metadata_set(bench, role, "labels", edits.labels[role.name])
        for edit in edits.specs.get(role.name, ()):
            _write_one(bench, role, edit)


def _write_one(bench: Bench, role: Role, edit: SpecEdit) -> None:
    match edit.kind:
        case "set":
            templates.spec_set(bench, role, edit.route, edit.value)
        case "append":
            templates.spec_append(bench, role, edit.route, edit.value)
        case "replace":
            templates.spec_replace(bench, role, edit.route, edit.value)


def trial_pods(job: TrainingJob, edits: JobEdits) -> tuple[PodRequest, ...]:
    """The job's pods as they would be. Raises PatchRefused."""
    specs = {r.name: edited_spec(r.template.spec, edits.specs.get(r.name, ())) for r in job.roles}
    found = []
    for pod in pod_requests(job):
        metadata = pod.body["metadata"]
        extra = edits.labels.get(pod.klass)
        if extra:
            metadata = {**metadata, "labels": {**metadata["labels"], **extra}}
        found.append(PodRequest(name=pod.name, klass=pod.klass, body={"metadata": metadata, "spec": specs[pod.klass]}))
    return tuple(found)


def trial(job: TrainingJob, topology: Topology, edits: JobEdits) -> GroupOutcome:
    """What the scheduler could do with the job as edited; zones count for roles that move. Raises PatchRefused."""
    moved = {r.name for r in movable(job)}
    pods = trial_pods(job, edits)
    return judge_group(pods, topology, ranks={p.name for p in pods if p.klass in moved}, gang=declared_gang(job))
