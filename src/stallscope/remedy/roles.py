"""What the planners ask about a job's roles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from stallscope.errors import PatchRefused
from stallscope.model.quantity import parse_quantity
from stallscope.model.source import as_list, as_map, dig
from stallscope.model.topology import is_accelerator
from stallscope.model.workload import Role, RoleKind, TrainingJob

_RANKED = (RoleKind.COORDINATOR, RoleKind.WORKER)
#: What a controller fills in later: a label with it cannot be written into a selector.
_PLACEHOLDERS = ("xxxxx", "<", "*")


def present(job: TrainingJob) -> tuple[Role, ...]:
    """Roles with pods."""
    return tuple(r for r in job.roles if r.replicas > 0)


def ranked(job: TrainingJob) -> tuple[Role, ...]:
    """Roles whose pods are ranks."""
    return tuple(r for r in present(job) if r.kind in _RANKED)


def movable(job: TrainingJob) -> tuple[Role, ...]:
    """
    Roles that belong into the job's zone: ranks, parameter servers, and launchers that live as long as the job. A
    submitter or an initializer moves no gradients; where it runs does not matter.
    """
    launchers = job.kind not in ("RayJob", "RayCluster")
    kinds = (*_RANKED, RoleKind.SERVER, *((RoleKind.LAUNCHER,) if launchers else ()))
    return tuple(r for r in present(job) if r.kind in kinds)


def accelerated(role: Role) -> bool:
    """Whether a container of the role asks for accelerators."""
    return bool(accelerator_resources([role]))


def accelerator_resources(roles: Iterable[Role]) -> frozenset[str]:
    """Names of the accelerator resources the roles ask for."""
    found: set[str] = set()
    for role in roles:
        for container in as_list(role.template.spec.get("containers")):
            for section in ("limits", "requests"):
                amounts = as_map(dig(container, "resources", section))
                found |= {k for k, v in amounts.items() if is_accelerator(k) and parse_quantity(v)}
    return frozenset(found)


def labels_of(job: TrainingJob, role: Role) -> Mapping[str, str]:
    """Labels every pod of the role has, as the API server will hold them."""
    pods = job.pods_of(role.name)
    if not pods:
        return {**role.template.labels, **role.added_labels}
    first, last = pods[0].labels, pods[-1].labels
    return {k: v for k, v in first.items() if last.get(k) == v}


def usable(labels: Mapping[str, str]) -> bool:
    """Whether these labels can be written down before the controller ran."""
    return bool(labels) and not any(mark in value for value in labels.values() for mark in _PLACEHOLDERS)


def own_labels(job: TrainingJob, role: Role) -> Mapping[str, str]:
    """
    Labels that select the pods of this role and of no other role of the job. Raises PatchRefused when it has none that can
    be written down.
    """
    others = [labels_of(job, r).items() for r in present(job) if r.name != role.name]
    found = {k: v for k, v in role.added_labels.items() if not any((k, v) in o for o in others) and usable({k: v})}
    if not found:
        raise PatchRefused(f"no label is known that selects {role.name} alone")
    return found


def telling_label(job: TrainingJob, chosen: Sequence[Role]) -> tuple[str, tuple[str, ...]] | None:
    """
    A label key, and its values, that tell the `chosen` roles from all others of the job: ``training.kubeflow.org/
    replica-type``, ``ray.io/group``… None when no label does.
    """
    others = [r for r in present(job) if r.name not in {c.name for c in chosen}]
    keys = _common_keys(job, chosen)
    for key in keys:
        values = {labels_of(job, r)[key] for r in chosen}
        if usable(dict.fromkeys(values, key)) and usable({v: v for v in values}):
            foreign = {labels_of(job, r).get(key) for r in others}
            if not values & foreign:
                return key, tuple(sorted(values))
    return None


def _common_keys(job: TrainingJob, roles: Sequence[Role]) -> list[str]:
    """Keys all `roles` have; the controller's own first, since nobody edits those away."""
    shared = set.intersection(*(set(labels_of(job, r)) for r in roles)) if roles else set()
    added = set().union(*(r.added_labels for r in roles)) if roles else set()
    return sorted(shared, key=lambda k: (k not in added, len(k), k))


def tolerations(role: Role) -> Sequence[Any]:
    return as_list(role.template.spec.get("tolerations"))
