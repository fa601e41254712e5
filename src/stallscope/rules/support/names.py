"""Names that resolve in the job's pods: its pods, its Services, and the Services of the files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from stallscope.model.kube import KubeObject
from stallscope.model.workload import TrainingJob

_ADDRESS = re.compile(r"^[0-9.]+$|^[0-9a-fA-F]*:[0-9a-fA-F:.]+$")
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1", "localhost.localdomain", "0.0.0.0"})  # noqa: S104


def is_address(host: str) -> bool:
    """True for an IPv4 or IPv6 literal."""
    return bool(_ADDRESS.match(host))


def cluster_names(job: TrainingJob, objects: Sequence[KubeObject]) -> frozenset[str]:
    """
    Host names of the job's namespace that answer, without cluster suffix: Service names, host names of pods, and
    ``host.service`` under each headless Service (kubernetes.io, "DNS for Services and Pods").
    """
    services = {s.name for s in job.services} | {o.name for o in _services(job, objects)}
    names = set(services)
    for pod in job.pods:
        names.update(n.split(".svc")[0] for n in pod.host_names)
        names.update(f"{pod.name}.{s}" for s in services)
    return frozenset(names)


def resolves(host: str, job: TrainingJob, objects: Sequence[KubeObject]) -> bool:
    """True when `host` is one of the names above, in any of the forms the search path of a pod completes."""
    known = cluster_names(job, objects)
    return bare_name(host, job.namespace) in known or host in known


def bare_name(host: str, namespace: str) -> str:
    """`host` without what the search path of a pod in `namespace` completes."""
    bare = host.rstrip(".")
    for suffix in (".cluster.local", ".svc", f".{namespace}"):
        bare = bare.removesuffix(suffix)
    return bare


def inside_cluster(host: str) -> bool:
    """True for names only cluster DNS can answer: one label, ``pod.service``, or the cluster's own suffixes."""
    labels = host.rstrip(".").split(".")
    return len(labels) <= 2 or host.rstrip(".").endswith((".svc", ".cluster.local"))


def _services(job: TrainingJob, objects: Sequence[KubeObject]) -> Iterator[KubeObject]:
    return (o for o in objects if o.kind == "Service" and o.namespace == job.namespace)
