"""
batch/v1 Job. Most Jobs are no training: only one whose pods need each other, or that asks for accelerators, is listed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from stallscope.load.kinds.batch import job_labels, parallel_pods
from stallscope.load.kinds.context import Context, template
from stallscope.load.kinds.flows import dns, metrics
from stallscope.load.kinds.generic import network_of
from stallscope.load.kinds.launch import Launch, launch_of, ranks_per_pod
from stallscope.load.kinds.plan import Draft, PodIdentity, RolePlan, assemble, random_name
from stallscope.load.kinds.services import as_service, fqdn
from stallscope.model.kube import KubeObject
from stallscope.model.source import as_str
from stallscope.model.workload import JobService, PodTemplate, Role, RoleKind, TrainingJob

_TOPOLOGY = "-topology"


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """Whether a plain workload trains, and whether its pods need each other; `why` in plain words."""

    listed: bool
    distributed: bool
    why: str


def intent_of(launch: Launch, pods: int, *, named: bool, together: bool, indexed: bool) -> Intent:
    """
    What a plain workload is for. `named`: its pods have stable DNS names; `together`: a topology annotation asks for
    nearness; `indexed`: each pod knows its index.

    A work queue of GPU pods is far commoner than training without a launcher, and a false "peer denied" costs trust, so
    pods count as peers only on evidence: a launcher or a variable only collectives read, or accelerators in pods that
    can find each other (index and name, or a request to be near each other).
    """
    word = launch.telltale
    if pods > 1 and word:
        return Intent(listed=True, distributed=True, why=f"{word} starts peers")
    if pods > 1 and launch.accelerators and ((indexed and named) or together):
        return Intent(listed=True, distributed=True, why="accelerators in pods that find each other by index and name")
    if pods > 1 and together:
        return Intent(listed=True, distributed=True, why="its pods ask to be placed near each other")
    if launch.accelerators or word:
        why = "one pod" if pods <= 1 else "nothing shows that its pods talk to each other"
        return Intent(listed=True, distributed=False, why=why)
    return Intent(listed=False, distributed=False, why="no accelerator and no launcher: not a training job")


def asks_nearness(found: PodTemplate, obj: KubeObject) -> bool:
    """A Kueue or KAI annotation that packs the pods of the set into one domain (``unconstrained`` asks for nothing)."""
    keys = (*found.annotations, *obj.annotations)
    return any(
        key.startswith(("kueue.x-k8s.io/podset-required", "kueue.x-k8s.io/podset-preferred", "kai.scheduler/topology-"))
        and _TOPOLOGY[1:] in key
        for key in keys
    )


def expand_job(ctx: Context, obj: KubeObject) -> tuple[TrainingJob, ...]:
    """Pods at once, named by their index when Indexed; they have DNS names when the template has a subdomain."""
    # A broken template is nobody's training job: reported to a context of its own, so that no CronJob-like thing complains.
    found = template(Context(), obj, ("spec", "template"))
    if found is None:
        return ()
    launch = launch_of(found.spec, fields=_fields(obj))
    if not launch.accelerators and not launch.telltale and not asks_nearness(found, obj):
        return ()
    pods = parallel_pods(ctx, obj, ("spec",))
    if pods is None:
        return ()
    indexed = obj.get("spec", "completionMode") == "Indexed"
    subdomain = as_str(found.spec.get("subdomain"))
    intent = intent_of(launch, pods, named=bool(subdomain), together=asks_nearness(found, obj), indexed=indexed)
    if not intent.listed:
        return ()
    ranks, note = ranks_per_pod(launch)
    role = Role(
        name="pods",
        kind=RoleKind.WORKER,
        replicas=pods,
        template=found,
        ranks_per_pod=ranks,
        added_labels=job_labels(obj.name),
        replicas_route=("spec", "parallelism"),
    )
    plan = RolePlan(role=role, identify=_identifier(obj, indexed, subdomain, pods))
    services = _subdomain_services(ctx, obj, subdomain)
    net = network_of([plan], {"pods": launch}, obj.namespace, services)
    peers = (*net.flows, *dns([role])) if intent.distributed else ()
    draft = Draft(
        kind="Job",
        plans=(plan,),
        group_labels={"batch.kubernetes.io/job-name": obj.name},
        rendezvous=net.rendezvous if intent.distributed else None,
        flows=(*peers, *metrics([role])),
        distributed=intent.distributed,
        notes=(*((note,) if note else ()), *(() if intent.distributed else (f"not distributed: {intent.why}",)), *net.notes),
        unsupported=net.unsupported if intent.distributed else (),
    )
    return (assemble(ctx, obj, draft),)


def _fields(obj: KubeObject) -> dict[str, str]:
    return {
        "metadata.namespace": obj.namespace,
        "metadata.labels['job-name']": obj.name,
        "metadata.labels['batch.kubernetes.io/job-name']": obj.name,
    }


def _identifier(obj: KubeObject, indexed: bool, subdomain: str, pods: int) -> Callable[[int], PodIdentity]:
    def identify(index: int) -> PodIdentity:
        if not indexed:
            return PodIdentity(name=random_name(obj.name, index, pods))
        host = f"{obj.name}-{index}"
        names = (f"{host}.{subdomain}", fqdn(f"{host}.{subdomain}", obj.namespace)) if subdomain else ()
        labels = {"batch.kubernetes.io/job-completion-index": str(index)}
        return PodIdentity(name=f"{host}-*", labels=labels, host_names=names)

    return identify


def _subdomain_services(ctx: Context, obj: KubeObject, subdomain: str) -> tuple[JobService, ...]:
    return tuple(
        as_service(s) for s in ctx.of("", "Service") if s.namespace == obj.namespace and subdomain and s.name == subdomain
    )
