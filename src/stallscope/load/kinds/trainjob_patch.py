"""
What a TrainJob lays over its runtime: ``runtimePatches`` (Trainer v2.2 on), ``podTemplateOverrides`` (v2.1),
``podSpecOverrides`` (v2.0). All three are strategic merges into one replicated job's pod template, in the order written
(trainer pkg/runtime/core/trainingruntime.go mergeRuntimePatches; v2.1 mergePodTemplateOverrides).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stallscope.load.kinds.context import named_items
from stallscope.model.kube import KubeObject
from stallscope.model.source import Route, as_list, as_map, as_str, as_str_map, dig
from stallscope.model.workload import Overlay

#: Lists of a pod spec that merge by a key (core/v1 patchMergeKey); all others are replaced whole (tolerations, terms).
_MERGE_KEYS = {
    "containers": "name",
    "initContainers": "name",
    "volumes": "name",
    "imagePullSecrets": "name",
    "env": "name",
    "volumeMounts": "mountPath",
    "schedulingGates": "name",
    "ports": "containerPort",
}
#: Fields a patch may carry (PodSpecPatch; affinity came with v2.1).
KEYS = ("nodeSelector", "affinity", "tolerations", "schedulingGates")
_KEYS_V20 = ("nodeSelector", "tolerations", "schedulingGates")
MANAGER = "stallscope.dev/placement"
_DEPTH = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """One patch of one replicated job: metadata, spec, and the route of the spec in the TrainJob."""

    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    spec: Mapping[str, Any]
    route: Route


def patches_for(obj: KubeObject, job: str) -> tuple[Patch, ...]:
    """The patches of replicated job `job`, in the order they apply."""
    found: list[Patch] = []
    for i in range(len(as_list(obj.get("spec", "podSpecOverrides")))):
        base: Route = ("spec", "podSpecOverrides", i)
        if job in _targets(obj, base):
            found.append(_patch(base, {}, obj.get(*base)))
    for i in range(len(as_list(obj.get("spec", "podTemplateOverrides")))):
        base = ("spec", "podTemplateOverrides", i)
        if job in _targets(obj, base):
            found.append(_patch((*base, "spec"), obj.get(*base, "metadata"), obj.get(*base, "spec")))
    for i in range(len(as_list(obj.get("spec", "runtimePatches")))):
        jobs: Route = ("spec", "runtimePatches", i, "trainingRuntimeSpec", "template", "spec", "replicatedJobs")
        for j, name, item in named_items(obj, *jobs):
            if name == job:
                pod = as_map(dig(item, "template", "spec", "template"))
                route = (*jobs, j, "template", "spec", "template", "spec")
                found.append(_patch(route, pod.get("metadata"), pod.get("spec")))
    return tuple(found)


def _targets(obj: KubeObject, base: Route) -> list[str]:
    return [as_str(dig(t, "name")) for t in as_list(obj.get(*base, "targetJobs"))]


def _patch(route: Route, metadata: Any, spec: Any) -> Patch:
    return Patch(
        labels=as_str_map(dig(metadata, "labels")),
        annotations=as_str_map(dig(metadata, "annotations")),
        spec={k: v for k, v in as_map(spec).items() if k != "targetJobs"},
        route=route,
    )


def overlay_for(obj: KubeObject, job: str) -> Overlay:
    """
    Where a new placement patch of replicated job `job` goes: into the form this TrainJob already uses for that job, else
    into a new entry of ``runtimePatches``.
    """
    existing = patches_for(obj, job)
    if existing:
        old = existing[-1].route[1] == "podSpecOverrides"
        return Overlay(source=obj, route=existing[-1].route, keys=_KEYS_V20 if old else KEYS)
    for form in ("podTemplateOverrides", "podSpecOverrides"):
        entries = as_list(obj.get("spec", form))
        if entries:
            item: Route = ("spec", form, len(entries))
            route = (*item, "spec") if form == "podTemplateOverrides" else item
            keys = KEYS if form == "podTemplateOverrides" else _KEYS_V20
            return Overlay(source=obj, route=route, keys=keys, identities={item: {"targetJobs": [{"name": job}]}})
    return _new_entry(obj, job)


def _new_entry(obj: KubeObject, job: str) -> Overlay:
    """One manager owns one entry: an own one is extended, others are left alone."""
    entries = as_list(obj.get("spec", "runtimePatches"))
    mine = next((i for i, e in enumerate(entries) if dig(e, "manager") == MANAGER), len(entries))
    entry: Route = ("spec", "runtimePatches", mine)
    jobs: Route = (*entry, "trainingRuntimeSpec", "template", "spec", "replicatedJobs")
    item: Route = (*jobs, len(as_list(obj.get(*jobs))))
    identities: dict[Route, Mapping[str, Any]] = {item: {"name": job}}
    if mine == len(entries):
        identities[entry] = {"manager": MANAGER}
    return Overlay(source=obj, route=(*item, "template", "spec", "template", "spec"), keys=KEYS, identities=identities)


def merge(base: Any, patch: Any, key: str = "", depth: int = 0) -> Any:
    """Strategic merge of `patch` over `base`: maps by key (null deletes), keyed lists by their key, the rest replaced."""
    if depth > _DEPTH:
        return patch
    if isinstance(base, Mapping) and isinstance(patch, Mapping):
        merged = dict(base)
        for name, value in patch.items():
            if value is None:
                merged.pop(name, None)
            else:
                merged[name] = merge(merged.get(name), value, name, depth + 1)
        return merged
    if key in _MERGE_KEYS and isinstance(base, list) and isinstance(patch, list):
        return _merge_list(base, patch, _MERGE_KEYS[key], depth)
    return patch


def _merge_list(base: Sequence[Any], patch: Sequence[Any], key: str, depth: int) -> list[Any]:
    merged = list(base)
    for item in patch:
        identity = dig(item, key)
        at = next((i for i, old in enumerate(merged) if identity is not None and dig(old, key) == identity), None)
        if at is None:
            merged.append(item)
        else:
            merged[at] = merge(merged[at], item, "", depth + 1)
    return merged
