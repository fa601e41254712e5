"""
Volumes that already have a place: VolumeBinding's check of bound claims and VolumeZone.

Source: kube-scheduler 1.36 plugins volumebinding (binder.go checkBoundClaims) and volumezone. Unbound claims are judged
only as far as no PersistentVolume exists for them yet: they are named as unjudged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from stallscope.model.labels import Requirement
from stallscope.model.source import as_list, as_map, as_str, as_str_map, dig
from stallscope.model.topology import REGION, ZONE, Node
from stallscope.placement.filters.base import Refusal
from stallscope.placement.podspec import PodSpec
from stallscope.placement.settings import Settings
from stallscope.placement.terms import NodeTerm, parse_node_term

NODE_CONFLICT = Refusal("VolumeBinding", ("node(s) didn't match PersistentVolume's node affinity",))
NOT_PROVISIONED = Refusal("VolumeBinding", ("node(s) didn't find available persistent volumes to bind",), resolvable=False)
ZONE_CONFLICT = Refusal("VolumeZone", ("node(s) had no available volume zone",))

_BETA = {"failure-domain.beta.kubernetes.io/zone": ZONE, "failure-domain.beta.kubernetes.io/region": REGION}
_KEYS = (*_BETA, ZONE, REGION)


@dataclass(slots=True)
class VolumeState:
    """Where the pod's volumes may be used (`terms`, `zones`) or made (`provisioned`)."""

    terms: list[tuple[NodeTerm, ...]] = field(default_factory=list)
    provisioned: list[tuple[NodeTerm, ...]] = field(default_factory=list)
    zones: list[tuple[str, frozenset[str]]] = field(default_factory=list)
    unjudged: list[str] = field(default_factory=list)


def volume_state(pod: PodSpec, settings: Settings) -> VolumeState:
    prepared = VolumeState()
    for claim in pod.claims:
        _look_at(claim, pod, settings, prepared)
    return prepared


def _look_at(claim: str, pod: PodSpec, settings: Settings, prepared: VolumeState) -> None:
    body = settings.claims.get(f"{pod.namespace}/{claim}") if settings.claims is not None else None
    if body is None:
        prepared.unjudged.append(f"PersistentVolumeClaim {claim} (not among the inputs)")
        return
    volume = as_str(dig(body, "spec", "volumeName"))
    if not volume:
        prepared.unjudged.append(f"PersistentVolumeClaim {claim} (not bound yet)")
        name = as_str(dig(body, "spec", "storageClassName"))
        if not any(_is_free(v, name) for v in settings.volumes.values()):  # else one of them might be bound instead
            _add_class(settings.storage_classes.get(name), prepared)
    elif volume not in settings.volumes:
        prepared.unjudged.append(f"PersistentVolume {volume} (not among the inputs)")
    else:
        _add_volume(settings.volumes[volume], prepared)


def _is_free(volume: Mapping[str, Any], storage_class: str) -> bool:
    return dig(volume, "spec", "storageClassName") == storage_class and dig(volume, "spec", "claimRef") is None


def _add_class(body: Mapping[str, Any] | None, prepared: VolumeState) -> None:
    """A class that provisions on first use limits the pod to its allowedTopologies (ORed terms, ANDed expressions)."""
    allowed = as_list(dig(body, "allowedTopologies"))
    if allowed and dig(body, "volumeBindingMode") == "WaitForFirstConsumer":
        terms = (map(as_map, as_list(as_map(t).get("matchLabelExpressions"))) for t in allowed)
        prepared.provisioned.append(
            tuple(
                NodeTerm(tuple(Requirement(as_str(e.get("key")), "In", _texts(e.get("values"))) for e in t)) for t in terms
            )
        )


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(map(as_str, as_list(value)))


def _add_volume(body: Mapping[str, Any], prepared: VolumeState) -> None:
    required = dig(body, "spec", "nodeAffinity", "required")
    if isinstance(required, Mapping):
        prepared.terms.append(tuple(parse_node_term(t) for t in as_list(as_map(required).get("nodeSelectorTerms"))))
    labels = as_str_map(dig(body, "metadata", "labels"))
    for key in _KEYS:
        values = frozenset(z.strip() for z in labels[key].split("__")) if key in labels else frozenset({""})
        if "" not in values:  # a list with an empty name is ignored whole (volumehelpers.LabelZonesToSet)
            prepared.zones.append((key, values))


def refuse_volumes(prepared: VolumeState, node: Node) -> Refusal | None:
    # A volume is compared with a nameless copy of the node (storage/volume CheckNodeAffinity).
    if any(not any(t.matches(node.labels, "") for t in terms) for terms in prepared.terms):
        return NODE_CONFLICT
    if any(not any(t.matches(node.labels, node.name) for t in terms) for terms in prepared.provisioned):
        return NOT_PROVISIONED
    if not prepared.zones or not any(k in node.labels for k in _KEYS):
        return None
    for key, values in prepared.zones:
        value = node.labels.get(key, node.labels.get(_BETA.get(key, key)))
        if value is None or value not in values:
            return ZONE_CONFLICT
    return None
