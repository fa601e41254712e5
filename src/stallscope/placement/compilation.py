"""Compile many pods quickly: pods of one role share their spec, only names and labels differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from stallscope.model.source import as_list, as_map, as_str, as_str_map, dig
from stallscope.placement.outcome import PodRequest
from stallscope.placement.podspec import PodSpec, compile_pod


def compile_pods(pods: Sequence[PodRequest]) -> list[PodSpec]:
    """`compile_pod` of each, parsing a spec once per namespace and per value of the labels its terms copy."""
    known: dict[tuple[object, ...], PodSpec] = {}
    result = []
    for pod in pods:
        spec = pod.body.get("spec")
        labels = as_str_map(dig(pod.body, "metadata", "labels"))
        copied = tuple(labels.get(k) for k in _copied_keys(as_map(spec)))
        key = (id(spec), dig(pod.body, "metadata", "namespace"), dig(pod.body, "metadata", "deletionTimestamp"), copied)
        if key in known and not _own_claims(as_map(spec)):
            name = as_str(dig(pod.body, "metadata", "name"))
            result.append(replace(known[key], name=name, labels=labels))
        else:
            known[key] = compile_pod(pod.body)
            result.append(known[key])
    return result


def _copied_keys(spec: Mapping[str, Any]) -> tuple[str, ...]:
    """Label keys whose values the API server copies into the pod's selectors (matchLabelKeys and its opposite)."""
    keys: list[str] = []
    for constraint in as_list(spec.get("topologySpreadConstraints")):
        keys += map(as_str, as_list(as_map(constraint).get("matchLabelKeys")))
    affinity = as_map(spec.get("affinity"))
    for which in ("podAffinity", "podAntiAffinity"):
        for items in as_map(affinity.get(which)).values():
            for item in map(as_map, as_list(items)):
                term = as_map(item.get("podAffinityTerm")) or item
                for field in ("matchLabelKeys", "mismatchLabelKeys"):
                    keys += map(as_str, as_list(term.get(field)))
    return tuple(keys)


def _own_claims(spec: Mapping[str, Any]) -> bool:
    """Generic ephemeral volumes make claims named after the pod."""
    return any("ephemeral" in as_map(v) for v in as_list(spec.get("volumes")))
