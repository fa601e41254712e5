"""What the objects themselves tell about the cluster: its CNI, its versions, its namespaces' labels."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from stallscope.judge.inputs import ClusterFacts
from stallscope.model.kube import KubeObject
from stallscope.model.source import as_list, as_str, dig

_VERSION = re.compile(r"v?(\d+)\.(\d+)(?:\.(\d+))?")


def parse_version(text: str) -> tuple[int, ...]:
    """``v1.36.2`` or ``1.19`` as a tuple; the empty tuple when `text` holds no version."""
    match = _VERSION.search(text)
    return tuple(int(part) for part in match.groups() if part is not None) if match else ()


def complete(facts: ClusterFacts, objects: Sequence[KubeObject]) -> ClusterFacts:
    """
    `facts` as stated by the user, completed from a snapshot's objects: the kubelet version of the nodes, and the image
    tag of Cilium's DaemonSet. What the user stated always wins.
    """
    found = facts
    kubelets = [v for o in objects if o.kind == "Node" if (v := parse_version(_kubelet(o)))]
    if kubelets and facts.kubernetes_version == ClusterFacts().kubernetes_version:
        found = replace(found, kubernetes_version=min(kubelets)[:2])
    if not facts.cni_version and facts.cni in ("", "cilium"):
        versions = [v for o in objects if o.kind == "DaemonSet" and o.name == "cilium" if (v := _image_version(o))]
        if versions:
            found = replace(found, cni="cilium", cni_version=versions[0])
    return found


def namespace_labels(objects: Sequence[KubeObject], facts: ClusterFacts) -> dict[str, dict[str, str]]:
    """
    Labels of the namespaces that are *known*: those of Namespace objects and of `facts`. A namespace left out is one whose
    labels nobody stated, so a selector on them stays unjudged; the engine itself adds the API server's own
    ``kubernetes.io/metadata.name``.
    """
    labels = {name: dict(pairs) for name, pairs in facts.namespace_labels}
    for item in objects:
        if item.kind == "Namespace" and item.api_version == "v1" and item.name:
            labels[item.name] = dict(item.labels)
    return labels


def _kubelet(node: KubeObject) -> str:
    return as_str(node.get("status", "nodeInfo", "kubeletVersion"))


def _image_version(daemonset: KubeObject) -> tuple[int, ...]:
    containers: Sequence[Mapping[str, object]] = as_list(daemonset.get("spec", "template", "spec", "containers"))
    for container in containers:
        if dig(container, "name") == "cilium-agent":
            return parse_version(as_str(dig(container, "image")).partition("@")[0].rpartition(":")[2])
    return ()
