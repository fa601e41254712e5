"""apps/v1 StatefulSet. Most serve; one whose containers start ranks trains (see `job.intent_of`)."""

from __future__ import annotations

from collections.abc import Callable

from stallscope.load.kinds.context import Context, count, template
from stallscope.load.kinds.flows import dns, metrics
from stallscope.load.kinds.generic import network_of
from stallscope.load.kinds.job import asks_nearness, intent_of
from stallscope.load.kinds.launch import launch_of, ranks_per_pod
from stallscope.load.kinds.plan import Draft, PodIdentity, RolePlan, assemble
from stallscope.load.kinds.services import as_service, fqdn
from stallscope.model.kube import KubeObject
from stallscope.model.source import as_str, as_str_map
from stallscope.model.workload import Role, RoleKind, TrainingJob


def expand_statefulset(ctx: Context, obj: KubeObject) -> tuple[TrainingJob, ...]:
    """
    Pods ``{name}-{i}`` from the start ordinal, named in the headless Service `serviceName`. Accelerators alone do not make
    peers: replicas of an inference server have them too and never talk to each other.
    """
    found = template(Context(), obj, ("spec", "template"))
    if found is None:
        return ()
    launch = launch_of(found.spec, fields={"metadata.namespace": obj.namespace})
    if not launch.accelerators and not launch.telltale and not asks_nearness(found, obj):
        return ()
    replicas = count(ctx, obj, ("spec", "replicas"), default=1)
    start = count(ctx, obj, ("spec", "ordinals", "start"), default=0)
    if replicas is None or start is None:
        return ()
    intent = intent_of(launch, replicas, named=False, together=asks_nearness(found, obj), indexed=False)
    if not intent.listed:
        return ()
    service = as_str(obj.get("spec", "serviceName"))
    ranks, note = ranks_per_pod(launch)
    role = Role(
        name="pods",
        kind=RoleKind.WORKER,
        replicas=replicas,
        template=found,
        ranks_per_pod=ranks,
        added_labels={"controller-revision-hash": f"<revision of {obj.name}>"},
        replicas_route=("spec", "replicas"),
    )
    plan = RolePlan(role=role, identify=_identifier(obj, service, start))
    services = [as_service(s) for s in ctx.of("", "Service") if s.namespace == obj.namespace and s.name == service]
    net = network_of([plan], {"pods": launch}, obj.namespace, services)
    peers = (*net.flows, *dns([role])) if intent.distributed else ()
    parallel = obj.get("spec", "podManagementPolicy") == "Parallel"
    notes = (
        *((note,) if note else ()),
        *(() if intent.distributed else (f"not distributed: {intent.why}",)),
        *(
            ()
            if parallel or replicas < 2
            else ("pods are created one by one, each after the one before is ready (OrderedReady)",)
        ),
        *(net.notes if intent.distributed else ()),
    )
    draft = Draft(
        kind="StatefulSet",
        plans=(plan,),
        group_labels=as_str_map(obj.get("spec", "selector", "matchLabels")) or dict(found.labels),
        rendezvous=net.rendezvous if intent.distributed else None,
        flows=(*peers, *metrics([role])),
        distributed=intent.distributed,
        notes=notes,
        unsupported=net.unsupported if intent.distributed else (),
    )
    return (assemble(ctx, obj, draft),)


def _identifier(obj: KubeObject, service: str, start: int) -> Callable[[int], PodIdentity]:
    def identify(index: int) -> PodIdentity:
        name = f"{obj.name}-{start + index}"
        labels = {"apps.kubernetes.io/pod-index": str(start + index), "statefulset.kubernetes.io/pod-name": name}
        names = (f"{name}.{service}", fqdn(f"{name}.{service}", obj.namespace)) if service else ()
        return PodIdentity(name=name, labels=labels, host_names=names)

    return identify
