"""
Who starts the pods together, as the manifests declare it (reference: placement.md §1, "Gang and default scheduler" and
"Kueue"). What only an operator's flag decides (``--gang-scheduler-name``) cannot be seen and is not guessed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stallscope.load.kinds.context import Context
from stallscope.model.kube import KubeObject
from stallscope.model.source import Location, as_str, dig
from stallscope.model.workload import Gang, Role

KUEUE_QUEUE = "kueue.x-k8s.io/queue-name"
_KUEUE_MODES = (
    ("kueue.x-k8s.io/podset-required-topology", "required"),
    ("kueue.x-k8s.io/podset-slice-required-topology", "required"),
    ("kueue.x-k8s.io/podset-preferred-topology", "preferred"),
)
_KAI_MODES = (
    ("kai.scheduler/topology-required-placement", "required"),
    ("kai.scheduler/topology-preferred-placement", "preferred"),
)


def find_gang(ctx: Context, obj: KubeObject, roles: Sequence[Role]) -> Gang | None:
    """The first declaration found: native PodGroup, Kueue, KAI, YuniKorn, Volcano, coscheduling, the operator's own."""
    present = [r for r in roles if r.replicas > 0] or list(roles)
    finders = (_native, _kueue, _kai, _yunikorn, _volcano, _coscheduling, _operator)
    return next((g for find in finders if (g := find(ctx, obj, present)) is not None), None)


def _native(ctx: Context, obj: KubeObject, roles: Sequence[Role]) -> Gang | None:
    """``pod.spec.schedulingGroup.podGroupName`` (Kubernetes 1.36 on, KEP-4671, KEP-5732)."""
    for role in roles:
        name = as_str(dig(role.template.spec, "schedulingGroup", "podGroupName"))
        if name:
            group = ctx.find("scheduling.k8s.io", "PodGroup", name, obj.namespace)
            where = role.template.at("spec", "schedulingGroup")
            if group is None:
                return Gang(system="native", location=where)
            spec = group.get("spec", default={})
            least = dig(spec, "schedulingPolicy", "gang", "minCount")
            key = as_str(dig(spec, "schedulingConstraints", "topology", 0, "key"))
            return Gang(
                system="native",
                min_count=least if isinstance(least, int) else None,
                topology_key=key,
                mode="required" if key else "",
                location=group.at("spec"),
            )
    return None


def _kueue(_: Context, obj: KubeObject, roles: Sequence[Role]) -> Gang | None:
    queued = KUEUE_QUEUE in obj.labels or any(KUEUE_QUEUE in r.template.labels for r in roles)
    for annotation, mode in _KUEUE_MODES:
        for where, value in _annotated(obj, roles, annotation):
            return Gang(system="kueue", topology_key=value, mode=mode, location=where)
    if not queued:
        return None
    if KUEUE_QUEUE in obj.labels:
        return Gang(system="kueue", location=obj.at("metadata", "labels", KUEUE_QUEUE))
    role = next(r for r in roles if KUEUE_QUEUE in r.template.labels)
    return Gang(system="kueue", location=role.template.at("metadata", "labels", KUEUE_QUEUE))


def _kai(_: Context, obj: KubeObject, roles: Sequence[Role]) -> Gang | None:
    if not any(_schedules(r) == "kai-scheduler" for r in roles):
        return None
    for annotation, mode in _KAI_MODES:
        for where, value in _annotated(obj, roles, annotation):
            return Gang(system="kai", topology_key=value, mode=mode, location=where)
    role = next(r for r in roles if _schedules(r) == "kai-scheduler")
    return Gang(system="kai", location=role.template.at("spec", "schedulerName"))


def _yunikorn(_: Context, obj: KubeObject, roles: Sequence[Role]) -> Gang | None:
    for where, _value in _annotated(obj, roles, "yunikorn.apache.org/task-groups"):
        return Gang(system="yunikorn", location=where)
    role = next((r for r in roles if _schedules(r) == "yunikorn"), None)
    return Gang(system="yunikorn", location=role.template.at("spec", "schedulerName")) if role else None


def _volcano(ctx: Context, obj: KubeObject, roles: Sequence[Role]) -> Gang | None:
    role = next((r for r in roles if _schedules(r) == "volcano"), None)
    if role is None:
        return None
    name = role.template.annotations.get("scheduling.k8s.io/group-name", "")
    group = ctx.find("scheduling.volcano.sh", "PodGroup", name, obj.namespace) if name else None
    if group is not None:
        least = group.get("spec", "minMember")
        return Gang(system="volcano", min_count=least if isinstance(least, int) else None, location=group.at("spec"))
    return Gang(system="volcano", location=role.template.at("spec", "schedulerName"))


def _coscheduling(ctx: Context, obj: KubeObject, roles: Sequence[Role]) -> Gang | None:
    label = "scheduling.x-k8s.io/pod-group"
    for role in roles:
        name = role.template.labels.get(label)
        if name:
            group = ctx.find("scheduling.x-k8s.io", "PodGroup", name, obj.namespace)
            least = group.get("spec", "minMember") if group else None
            where = role.template.at("metadata", "labels", label)
            return Gang(system="coscheduling", min_count=least if isinstance(least, int) else None, location=where)
    return None


def _operator(_: Context, obj: KubeObject, __: Sequence[Role]) -> Gang | None:
    """``runPolicy.schedulingPolicy`` of Kubeflow kinds: acted on only when the operator runs with a gang scheduler."""
    least = obj.get("spec", "runPolicy", "schedulingPolicy", "minAvailable")
    if isinstance(least, int) and not isinstance(least, bool):
        where = obj.at("spec", "runPolicy", "schedulingPolicy", "minAvailable")
        return Gang(system="operator", min_count=least, location=where)
    return None


def _schedules(role: Role) -> str:
    return as_str(role.template.spec.get("schedulerName"))


def _annotated(obj: KubeObject, roles: Sequence[Role], key: str) -> Iterator[tuple[Location, str]]:
    for role in roles:
        if key in role.template.annotations:
            yield role.template.at("metadata", "annotations", key), role.template.annotations[key]
    if key in obj.annotations:
        yield obj.at("metadata", "annotations", key), obj.annotations[key]
