"""
Exclusive topology of JobSet and LeaderWorkerSet: each child Job or group takes a domain of its own.

Source: jobset pkg/webhooks (pod_mutating_webhook.go: the leader gets podAffinity to its job-key and podAntiAffinity to
every other; followers follow by nodeSelector), lws pkg/webhooks (group-key, the same). With the zone as key, two groups
or more are forced apart (reference/placement.md §4).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stallscope.model.source import as_list, as_map, as_str_map, dig
from stallscope.placement.outcome import PodRequest

JOBSET_ANNOTATION = "alpha.jobset.sigs.k8s.io/exclusive-topology"
LWS_ANNOTATION = "leaderworkerset.sigs.k8s.io/exclusive-topology"
JOBSET_KEY = "jobset.sigs.k8s.io/job-key"
LWS_KEY = "leaderworkerset.sigs.k8s.io/group-key"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def with_exclusive_topology(
    pods: Sequence[PodRequest], topology_key: str, groups: Mapping[str, str], *, label: str = JOBSET_KEY
) -> list[PodRequest]:
    """
    The pods with the affinities the webhook adds. `groups` maps a pod's name to its child Job or group; pods without one
    stay as they are. `label` is the controller's group label, set where the pod lacks it.
    """
    specs: dict[tuple[int, str], dict[str, Any]] = {}
    return [_placed(p, topology_key, groups[p.name], label, specs) if p.name in groups else p for p in pods]


def _placed(pod: PodRequest, key: str, group: str, label: str, specs: dict[tuple[int, str], dict[str, Any]]) -> PodRequest:
    labels = {label: group, **as_str_map(dig(pod.body, "metadata", "labels"))}
    spec = as_map(pod.body.get("spec"))
    own = labels[label]
    if (id(spec), own) not in specs:
        specs[id(spec), own] = {**spec, "affinity": _affinity(as_map(spec.get("affinity")), key, label, own)}
    body = {**pod.body, "metadata": {**as_map(pod.body.get("metadata")), "labels": labels}, "spec": specs[id(spec), own]}
    return PodRequest(name=pod.name, klass=pod.klass, body=body)


def _affinity(affinity: Mapping[str, Any], key: str, label: str, own: str) -> dict[str, Any]:
    mine = {"key": label, "operator": "In", "values": [own]}
    others = [{"key": label, "operator": "Exists"}, {"key": label, "operator": "NotIn", "values": [own]}]
    together = {"topologyKey": key, "namespaceSelector": {}, "labelSelector": {"matchExpressions": [mine]}}
    apart = {"topologyKey": key, "namespaceSelector": {}, "labelSelector": {"matchExpressions": others}}
    result = dict(affinity)
    for which, term in (("podAffinity", together), ("podAntiAffinity", apart)):
        existing = as_map(affinity.get(which))
        result[which] = {**existing, _REQUIRED: [*as_list(existing.get(_REQUIRED)), term]}
    return result
