"""
Services of the files as ends of flows: the pods behind one, and the Services that a job's own manifest names.

A job that reads a cache, a parameter store or a tracker names it by its Service: in a variable, a flag or a URL. Such a
connection is needed like the others, and an egress policy written for the ranks forgets it (kubeflow/trainer#3120).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from stallscope.judge.outside import OutsideEnd, workload_end, workloads
from stallscope.model.kube import KubeObject
from stallscope.model.source import as_list, as_map, as_str, as_str_map, dig
from stallscope.model.traffic import Endpoint, Flow, FlowKind, Outside, Protocol, port
from stallscope.model.workload import Role, TrainingJob

#: A host name of one or two labels, what cluster DNS appends to it, and a port.
_HOST = re.compile(
    r"(?:([a-z][a-z0-9+]{0,15})://)?(?<![\w.@-])([a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)"
    r"(?:\.([a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?))?(?:\.svc(?:\.cluster\.local)?)?\.?(?::(\d{1,5}))?(?![\w.-])"
)
_SCHEMES = {"http": 80, "https": 443, "grpc": 80, "redis": 6379}
_MAX_TEXT = 20_000


def behind(service: KubeObject, objects: Sequence[KubeObject], name: str) -> OutsideEnd | None:
    """The pods a Service selects: those of a workload among the files, else pods with just the selector's labels."""
    selector = as_str_map(service.get("spec", "selector"))
    if not selector:
        return None
    for item in workloads(objects):
        labels = as_str_map(item.get("spec", "template", "metadata", "labels"))
        if item.namespace == service.namespace and selector.items() <= labels.items():
            return workload_end(item, name, f"{service.ref} selects {item.ref}")
    known = Endpoint(name=name, namespace=service.namespace, labels=tuple(sorted(selector.items())))
    return OutsideEnd(endpoint=known, why=f"{service.ref} selects pods of which only the selector's labels are known")


def target_port(service: KubeObject, asked: int, end: Endpoint) -> int | None:
    """The port on the pods behind the Service's port `asked`; policies judge that one, after translation."""
    for entry in map(as_map, as_list(service.get("spec", "ports"))):
        if entry.get("port") != asked or entry.get("protocol", "TCP") != "TCP":
            continue
        target = entry.get("targetPort", asked)
        if isinstance(target, int):
            return target if 0 < target < 65536 else None
        return next((n for name, protocol, n in end.named_ports if name == target and protocol is Protocol.TCP), None)
    return None


def named_services(job: TrainingJob, objects: Sequence[KubeObject]) -> Mapping[Flow, OutsideEnd]:
    """
    Flows to Services of the files that the job's containers name, and the pods behind them. Services of the job itself are
    left out: their traffic is among the flows of its kind. Not `required`: a name is no proof of use.
    """
    services = {(o.namespace, o.name): o for o in objects if o.kind == "Service" and not _own(job, o)}
    found: dict[Flow, OutsideEnd] = {}
    if services:
        for role in job.roles:
            for service, asked, where in dict.fromkeys(_mentions(job, role, services)):
                made = _flow(role, services[service], asked, where, objects)
                if made is not None and role.replicas > 0:
                    found.setdefault(*made)
    return found


def _own(job: TrainingJob, service: KubeObject) -> bool:
    selector = as_str_map(service.get("spec", "selector")).items()
    same = service.namespace == job.namespace
    return same and bool(selector) and any(selector <= p.labels.items() for r in job.roles for p in job.pods_of(r.name)[:1])


def _flow(
    role: Role, service: KubeObject, asked: int, where: str, objects: Sequence[KubeObject]
) -> tuple[Flow, OutsideEnd] | None:
    end = behind(service, objects, service.ref)
    number = target_port(service, asked, end.endpoint) if end is not None and end.endpoint is not None else None
    if end is None or number is None:
        return None
    flow = Flow(
        kind=FlowKind.SERVICE,
        source=role.name,
        destination=Outside.SERVICE,
        ports=(port(number),),
        reason=f"{where} of {role.name} names {service.ref}, port {asked}",
        required=False,
    )
    return flow, end


def _mentions(
    job: TrainingJob, role: Role, services: Mapping[tuple[str, str], KubeObject]
) -> Iterator[tuple[tuple[str, str], int, str]]:
    for where, text in _texts(role):
        for scheme, name, namespace, number in _HOST.findall(text[:_MAX_TEXT]):
            key = (namespace or job.namespace, name)
            service = services.get(key)
            if service is None:
                continue
            ports = [p for e in as_list(service.get("spec", "ports")) if isinstance(p := dig(e, "port"), int)]
            stated = int(number) if number else _SCHEMES.get(scheme, 0)
            if not stated and namespace and len(ports) == 1:
                stated = ports[0]
            if stated in ports:  # a bare word is a host only with a port the Service has
                yield key, stated, where


def _texts(role: Role) -> Iterator[tuple[str, str]]:
    """Where a container may name a host, and the text."""
    spec = role.template.spec
    for container in map(as_map, (*as_list(spec.get("containers")), *as_list(spec.get("initContainers")))):
        for entry in map(as_map, as_list(container.get("env"))):
            yield f"variable {as_str(entry.get('name'))}", as_str(entry.get("value"))
        for section in ("command", "args"):
            for text in as_list(container.get(section)):
                yield section, as_str(text)
