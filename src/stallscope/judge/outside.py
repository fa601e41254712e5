"""The ends of a flow that are not pods of the job, as endpoints; what has to be assumed about them is said."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from stallscope.judge.pods import named_ports
from stallscope.model.kube import KubeObject
from stallscope.model.source import Location, as_list, as_map, as_str, as_str_map, dig
from stallscope.model.traffic import Endpoint, Outside, Protocol
from stallscope.model.workload import TrainingJob

_DNS_PORTS = (("dns", Protocol.UDP, 53), ("dns-tcp", Protocol.TCP, 53))
_POD_OWNERS = ("Deployment", "StatefulSet", "DaemonSet")
#: Kinds that tell about the ends outside a job; the rest of a snapshot (its pods) need not be walked for each job.
TELLING = frozenset({*_POD_OWNERS, "Prometheus", "Service"})
#: Names of the controllers' Deployments as their own manifests and charts have them, by API group of the job.
_OPERATORS: Mapping[str, tuple[str, ...]] = {
    "kubeflow.org": ("training-operator", "mpi-operator", "pytorch-operator", "tf-operator"),
    "trainer.kubeflow.org": ("trainer",),
    "jobset.x-k8s.io": ("jobset",),
    "leaderworkerset.x-k8s.io": ("lws", "leaderworkerset"),
    "ray.io": ("kuberay", "ray-operator"),
    "batch.volcano.sh": ("volcano-admission", "volcano-webhook"),
    "sagemaker.amazonaws.com": ("hyperpod", "training-operator"),
}
#: Workloads that carry Prometheus' name and are not the one that scrapes.
_NO_SCRAPER = ("operator", "adapter", "exporter", "alertmanager", "pushgateway", "metrics")


@dataclass(frozen=True, slots=True, kw_only=True)
class OutsideEnd:
    """
    `endpoint` None: nothing can be assumed, and `why` is the missing fact. Else `why` is the assumption. `place` is its pod
    template, where one was read.
    """

    endpoint: Endpoint | None
    why: str
    annotations: Mapping[str, str] = field(default_factory=dict, compare=False)
    place: Location | None = None


def outside_endpoint(
    which: Outside, objects: Sequence[KubeObject], job: TrainingJob | None = None
) -> tuple[Endpoint | None, str]:
    """The endpoint for `which` and the assumption behind it, see `outside_end`."""
    found = outside_end(which, objects, job)
    return found.endpoint, found.why


def outside_end(which: Outside, objects: Sequence[KubeObject], job: TrainingJob | None = None) -> OutsideEnd:
    """
    What `which` is, as far as the objects tell; the operator is the one of `job`'s API group.

    Cluster DNS is the kube-dns/CoreDNS Deployment every conformant installer labels ``k8s-app=kube-dns``. The API
    server is not a pod: policy engines see it as an address or a reserved identity.
    """
    match which:
        case Outside.CLUSTER_DNS:
            labels = (("k8s-app", "kube-dns"),)
            dns = Endpoint(name="cluster-dns", namespace="kube-system", labels=labels, named_ports=_DNS_PORTS)
            return OutsideEnd(endpoint=dns, why="cluster DNS runs in kube-system with the label k8s-app=kube-dns")
        case Outside.API_SERVER:
            server = Endpoint(name="kube-apiserver", reserved=("kube-apiserver", "remote-node"))
            return OutsideEnd(endpoint=server, why="the API server is no pod")
        case Outside.PROMETHEUS:
            return _prometheus(objects)
        case Outside.OPERATOR:
            return _operator(objects, job.source.group if job else "")
    return OutsideEnd(endpoint=None, why=f"nothing is known about {which}")


def workload_end(owner: KubeObject, name: str, why: str) -> OutsideEnd:
    """The pods of a Deployment or its like."""
    template = as_map(owner.get("spec", "template"))
    spec = as_map(template.get("spec"))
    endpoint = Endpoint(
        name=name,
        namespace=owner.namespace,
        labels=tuple(sorted(as_str_map(dig(template, "metadata", "labels")).items())),
        service_account=as_str(spec.get("serviceAccountName"), "default") or "default",
        named_ports=named_ports(spec),
        host_network=spec.get("hostNetwork") is True,
    )
    return OutsideEnd(
        endpoint=endpoint,
        why=why,
        annotations=as_str_map(dig(template, "metadata", "annotations")),
        place=owner.at("spec", "template", "metadata"),
    )


def workloads(objects: Iterable[KubeObject]) -> list[KubeObject]:
    """Deployments and their like, in order."""
    return [o for o in objects if o.kind in _POD_OWNERS and o.group == "apps"]


def _operator(objects: Sequence[KubeObject], group: str) -> OutsideEnd:
    found = workloads(objects)
    for word in _OPERATORS.get(group, ()):
        for item in found:
            if word in item.name.lower() and "prometheus" not in item.name.lower():
                why = f"the operator is {item.ref}, by its name"
                return workload_end(item, str(Outside.OPERATOR), why)
    return OutsideEnd(endpoint=None, why=f"no workload of these files is the operator of {group or 'the job'}")


def _prometheus(objects: Sequence[KubeObject]) -> OutsideEnd:
    """The Prometheus operator's CR, else a workload that runs Prometheus, else one of that name."""
    for item in objects:
        if item.kind == "Prometheus" and item.group == "monitoring.coreos.com":
            return _prometheus_cr(item)
    found = [o for o in workloads(objects) if not any(word in o.name.lower() for word in _NO_SCRAPER)]
    for item in found:
        if _runs_prometheus(item) or "prometheus" in item.name.lower():
            return workload_end(item, str(Outside.PROMETHEUS), f"Prometheus is {item.ref}")
    return OutsideEnd(endpoint=None, why="no Prometheus is in these files")


def _prometheus_cr(item: KubeObject) -> OutsideEnd:
    """Labels the Prometheus operator puts on the pods (pkg/prometheus/server/statefulset.go, podLabels)."""
    labels = {
        **as_str_map(item.get("spec", "podMetadata", "labels")),
        "app.kubernetes.io/name": "prometheus",
        "app.kubernetes.io/managed-by": "prometheus-operator",
        "app.kubernetes.io/instance": item.name,
        "prometheus": item.name,
        "operator.prometheus.io/name": item.name,
        "operator.prometheus.io/shard": "0",
    }
    endpoint = Endpoint(
        name=str(Outside.PROMETHEUS),
        namespace=item.namespace,
        labels=tuple(sorted(labels.items())),
        service_account=as_str(item.get("spec", "serviceAccountName"), "default") or "default",
        host_network=item.get("spec", "hostNetwork") is True,
    )
    notes = as_str_map(item.get("spec", "podMetadata", "annotations"))
    return OutsideEnd(endpoint=endpoint, why=f"Prometheus is {item.ref}", annotations=notes)


def _runs_prometheus(item: KubeObject) -> bool:
    spec: Any = item.get("spec", "template", "spec")
    images = (as_str(dig(c, "image")) for c in as_list(dig(spec, "containers")))
    return any(image.partition("@")[0].rpartition(":")[0].endswith("/prometheus") for image in images)
