"""
Exclusive placement of JobSet and LeaderWorkerSet: their pod webhooks add affinities that no template shows. They decide
where pods land, so they belong to the effective spec.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stallscope.model.source import as_list, as_map


def with_exclusive(
    spec: Mapping[str, Any], topology_key: str, group_key: str, *, everywhere: bool = False
) -> Mapping[str, Any]:
    """
    `spec` with what SetExclusiveAffinities adds (lws pkg/webhooks/pod_webhook.go, jobset pkg/webhooks/pod_webhook.go):
    required affinity to pods of the own group, required anti-affinity to pods of every other group.

    The webhooks write the group's value; a role's template serves several groups, so the same is said here with
    matchLabelKeys and mismatchLabelKeys, which the API server resolves to that value for each pod. `everywhere`: the
    terms look at all namespaces (JobSet), not only the pod's own (LWS).
    """
    exists = {"matchExpressions": [{"key": group_key, "operator": "Exists"}]}
    common = {"labelSelector": exists, "topologyKey": topology_key, **({"namespaceSelector": {}} if everywhere else {})}
    own = {**common, "matchLabelKeys": [group_key]}
    others = {**common, "mismatchLabelKeys": [group_key]}
    affinity = as_map(spec.get("affinity"))
    return {
        **spec,
        "affinity": {
            **affinity,
            "podAffinity": _added(affinity, "podAffinity", own),
            "podAntiAffinity": _added(affinity, "podAntiAffinity", others),
        },
    }


def _added(affinity: Mapping[str, Any], kind: str, term: Mapping[str, Any]) -> dict[str, Any]:
    present = as_map(affinity.get(kind))
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    return {**present, required: [*as_list(present.get(required)), term]}
