"""Services around a job: those its controller creates, and those the files hold for it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from stallscope.load.kinds.context import Context
from stallscope.model.kube import KubeObject
from stallscope.model.source import as_list, as_str_map, dig
from stallscope.model.workload import JobService, Pod


def fqdn(name: str, namespace: str) -> str:
    """A Service's or pod's full name in the default cluster domain."""
    return f"{name}.{namespace}.svc.cluster.local"


def user_services(
    ctx: Context, namespace: str, pods: Sequence[Pod], generated: Iterable[JobService] = ()
) -> tuple[JobService, ...]:
    """Services of the files whose selector matches a pod of the job. One of a generated Service's name is that one."""
    known = {s.name for s in generated}
    return tuple(
        found
        for item in ctx.of("", "Service")
        if item.namespace == namespace
        and item.name not in known
        and (found := as_service(item)).selector
        and any(found.selector.items() <= p.labels.items() for p in pods)
    )


def as_service(item: KubeObject) -> JobService:
    """A Service object in the words of the model. Headless means ``clusterIP: None``."""
    ports = (dig(p, "port") for p in as_list(item.get("spec", "ports")))
    return JobService(
        name=item.name,
        namespace=item.namespace,
        selector=as_str_map(item.get("spec", "selector")),
        headless=item.get("spec", "clusterIP") == "None",
        generated=False,
        publish_not_ready=item.get("spec", "publishNotReadyAddresses") is True,
        ports=tuple(p for p in ports if isinstance(p, int) and 0 < p < 65536),
    )
