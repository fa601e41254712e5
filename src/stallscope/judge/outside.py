"""The ends of a flow that are not pods of the job, as endpoints; what has to be assumed about them is said."""

from __future__ import annotations

from collections.abc import Sequence

from stallscope.model.kube import KubeObject
from stallscope.model.source import as_str, as_str_map, dig
from stallscope.model.traffic import Endpoint, Outside, Protocol

_DNS_PORTS = (("dns", Protocol.UDP, 53), ("dns-tcp", Protocol.TCP, 53))
_POD_OWNERS = ("Deployment", "StatefulSet", "DaemonSet", "Prometheus")


def outside_endpoint(which: Outside, objects: Sequence[KubeObject]) -> tuple[Endpoint | None, str]:
    """
    The endpoint for `which` and the assumption behind it; ``None`` with the missing fact when nothing can be assumed.

    Cluster DNS is the kube-dns/CoreDNS Deployment every conformant installer labels ``k8s-app=kube-dns``. The API
    server is not a pod: policy engines see it as an address or a reserved identity.
    """
    match which:
        case Outside.CLUSTER_DNS:
            labels = (("k8s-app", "kube-dns"),)
            dns = Endpoint(name="cluster-dns", namespace="kube-system", labels=labels, named_ports=_DNS_PORTS)
            return dns, "cluster DNS runs in kube-system with the label k8s-app=kube-dns"
        case Outside.API_SERVER:
            return Endpoint(name="kube-apiserver", reserved=("kube-apiserver", "remote-node")), "the API server is no pod"
        case Outside.PROMETHEUS:
            return _by_name(objects, "prometheus", which), "Prometheus is the workload of that name in the files"
        case Outside.OPERATOR:
            return _by_name(objects, "operator", which), "the operator is the workload of that name in the files"
    return None, f"nothing is known about {which}"


def _by_name(objects: Sequence[KubeObject], word: str, which: Outside) -> Endpoint | None:
    for item in objects:
        if item.kind in _POD_OWNERS and word in item.name.lower():
            labels = as_str_map(item.get("spec", "template", "metadata", "labels"))
            return Endpoint(
                name=str(which),
                namespace=item.namespace,
                labels=tuple(sorted(labels.items())),
                service_account=as_str(dig(item.body, "spec", "template", "spec", "serviceAccountName"), "default"),
            )
    return None
