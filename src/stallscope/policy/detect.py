"""Which engine the cluster runs, as far as its own objects tell."""

from __future__ import annotations

from collections.abc import Iterable

from stallscope.model.kube import KubeObject

#: API group suffix -> engine. Order matters: a cluster with Cilium objects enforces with Cilium whatever else is installed.
GROUPS = (
    ("cilium.io", "cilium"),
    ("projectcalico.org", "calico"),
    ("operator.tigera.io", "calico"),
    ("k8s.ovn.org", "ovn"),
    ("antrea.io", "antrea"),
)


def detect_cni(objects: Iterable[KubeObject]) -> str:
    """``cilium``, ``calico``, ``ovn`` or ``antrea`` when an object of that project is there, else ``generic``."""
    groups = {o.group for o in objects}
    for suffix, name in GROUPS:
        if any(g == suffix or g.endswith("." + suffix) for g in groups):
            return name
    return "generic"
