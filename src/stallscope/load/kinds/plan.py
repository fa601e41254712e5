"""From a kind's roles to a whole `TrainingJob`: pods with names, labels and ranks, and everything kinds have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from stallscope.judge.inputs import ProblemKind
from stallscope.load.kinds.context import Context
from stallscope.load.kinds.flows import is_ranked
from stallscope.load.kinds.gang import find_gang
from stallscope.load.kinds.services import user_services
from stallscope.model.kube import KubeObject
from stallscope.model.source import as_str
from stallscope.model.traffic import Flow
from stallscope.model.workload import (
    ExtraObject,
    Gang,
    JobService,
    Pod,
    Rendezvous,
    Role,
    RoleKind,
    TrainingJob,
)

#: More pods than this are not listed one by one: no scheduler places such a job, a typing mistake is likelier.
MAX_PODS = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PodIdentity:
    """What the controller gives one pod: its name, labels only this pod has, and the DNS names that reach it."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    host_names: tuple[str, ...] = ()


def random_name(base: str, index: int, pods: int) -> str:
    """The name of a pod whose tail is random: ``base-*``, numbered when there are several so that names stay distinct."""
    return f"{base}-*" if pods <= 1 else f"{base}-*{index}"


class RolePlan(NamedTuple):
    """A role, and the identity of its i-th pod."""

    role: Role
    identify: Callable[[int], PodIdentity]


class Draft(NamedTuple):
    """What a kind found out about a job before the common parts are added."""

    kind: str
    plans: tuple[RolePlan, ...]
    group_labels: Mapping[str, str]
    rendezvous: Rendezvous | None = None
    flows: tuple[Flow, ...] = ()
    services: tuple[JobService, ...] = ()
    gang: Gang | None = None
    extra_objects: tuple[ExtraObject, ...] = ()
    distributed: bool | None = None
    copies: int = 1
    notes: tuple[str, ...] = ()
    unsupported: tuple[str, ...] = ()
    leader_first: bool = False


def first_ranks(roles: Sequence[Role], *, leader_first: bool = False) -> dict[str, int]:
    """The first rank of each ranked role: in the order of the roles, the coordinator before all others if `leader_first`."""
    order = sorted(roles, key=lambda r: leader_first and r.kind is not RoleKind.COORDINATOR)
    first: dict[str, int] = {}
    rank = 0
    for role in (r for r in order if is_ranked(r)):
        first[role.name] = rank
        rank += role.replicas * role.ranks_per_pod
    return first


def pods_of(plans: Sequence[RolePlan], namespace: str, *, leader_first: bool = False) -> tuple[Pod, ...]:
    """All pods; a pod of a ranked role has `ranks_per_pod` ranks, contiguous."""
    pods: list[Pod] = []
    first = first_ranks([p.role for p in plans], leader_first=leader_first)
    for plan in plans:
        role = plan.role
        common = {**role.template.labels, **role.added_labels}
        start = first.get(role.name)
        for index in range(role.replicas):
            identity = plan.identify(index)
            pods.append(
                Pod(
                    name=identity.name,
                    namespace=namespace,
                    role=role.name,
                    index=index,
                    labels={**common, **identity.labels},
                    rank=None if start is None else start + index * role.ranks_per_pod,
                    host_names=identity.host_names,
                )
            )
    return tuple(pods)


def world_size(roles: Sequence[Role]) -> int:
    """Ranks of the job."""
    return sum(r.replicas * r.ranks_per_pod for r in roles if is_ranked(r))


def assemble(ctx: Context, obj: KubeObject, draft: Draft) -> TrainingJob:
    """
    The job. When it would have more than `MAX_PODS` pods it keeps its roles, but lists none, and a problem says so: every
    later step works on pods one by one.
    """
    plans, notes, unsupported = draft.plans, draft.notes, draft.unsupported
    roles = tuple(p.role for p in plans)
    total = sum(r.replicas for r in roles)
    pods: tuple[Pod, ...] = ()
    if total > MAX_PODS:
        largest = max(roles, key=lambda r: r.replicas)
        message = f"asks for {total:,} pods; more than {MAX_PODS:,} are not judged"
        ctx.problem(ProblemKind.UNSUPPORTED, obj, largest.replicas_route, message, "check the replica counts")
        unsupported = (*unsupported, f"{total:,} pods")
    else:
        pods = pods_of(plans, obj.namespace, leader_first=draft.leader_first)
    talking = sum(r.replicas for r in roles if r.kind is not RoleKind.OTHER)
    found = draft.gang or find_gang(ctx, obj, roles)
    return TrainingJob(
        kind=draft.kind,
        name=obj.name,
        namespace=obj.namespace,
        source=obj,
        roles=roles,
        pods=pods,
        group_labels=dict(draft.group_labels),
        rendezvous=draft.rendezvous,
        flows=draft.flows,
        services=(*draft.services, *user_services(ctx, obj.namespace, pods, draft.services)),
        scheduler_name=_scheduler(roles),
        gang=found,
        extra_objects=draft.extra_objects,
        world_size=world_size(roles),
        distributed=talking > 1 if draft.distributed is None else draft.distributed,
        copies=draft.copies,
        notes=tuple(dict.fromkeys(notes)),
        unsupported=tuple(dict.fromkeys(unsupported)),
    )


def _scheduler(roles: Sequence[Role]) -> str:
    names = (as_str(r.template.spec.get("schedulerName")) for r in roles if r.replicas > 0)
    return next((n for n in names if n), "default-scheduler")
