"""What the scheduler is told besides pods and nodes: gates, its spread defaults, Services, volumes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from stallscope.model.source import as_list, as_map
from stallscope.model.topology import HOSTNAME, ZONE
from stallscope.placement.podspec import PodSpec
from stallscope.placement.terms import SpreadConstraint, parse_spread

#: PodTopologySpread's built-in defaults (systemDefaultConstraints): soft, hence they score and never filter.
BUILTIN_SPREAD: tuple[Mapping[str, Any], ...] = (
    {"maxSkew": 3, "topologyKey": HOSTNAME, "whenUnsatisfiable": "ScheduleAnyway"},
    {"maxSkew": 5, "topologyKey": ZONE, "whenUnsatisfiable": "ScheduleAnyway"},
)


class Owner(NamedTuple):
    """
    Something whose selector makes default spreading act on a pod: a Service, or the ReplicaSet, ReplicationController or
    StatefulSet that owns it (helper.DefaultSelector).
    """

    namespace: str
    selector: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """
    `comparisons`: gate TaintTolerationComparisonOperators (off by default in 1.36). `default_spread`:
    PodTopologySpreadArgs.defaultConstraints; None = the built-in soft ones. `claims` maps ``namespace/name`` to a
    PersistentVolumeClaim body, `volumes` a PersistentVolume's name to its body, `storage_classes` a name to its body;
    None = no such objects were given, so claims are unjudged. `zone_key`: the label that means "zone".
    """

    comparisons: bool = False
    default_spread: tuple[Mapping[str, Any], ...] | None = None
    owners: tuple[Owner, ...] = ()
    claims: Mapping[str, Mapping[str, Any]] | None = None
    volumes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    storage_classes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    zone_key: str = ZONE


DEFAULT_SETTINGS = Settings()


def spread_of(pod: PodSpec, settings: Settings) -> tuple[SpreadConstraint, ...]:
    """The pod's own spread constraints, or the cluster's defaults where a Service or owner selects it (KEP-1258)."""
    if pod.own_spread:
        return pod.spread
    selector = _owner_selector(pod, settings.owners)
    if not selector:
        return ()
    defaults = BUILTIN_SPREAD if settings.default_spread is None else settings.default_spread
    return tuple(parse_spread({**as_map(d), "labelSelector": {"matchLabels": selector}}, pod.labels) for d in defaults)


def _owner_selector(pod: PodSpec, owners: Iterable[Owner]) -> dict[str, str]:
    merged: dict[str, str] = {}
    for owner in owners:
        selects = owner.selector and all(pod.labels.get(k) == v for k, v in owner.selector.items())
        if owner.namespace == pod.namespace and selects:
            merged.update(owner.selector)
    return merged


def spread_defaults(config: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...] | None:
    """defaultConstraints of a KubeSchedulerConfiguration's first profile, None when it keeps the built-in ones."""
    for profile in map(as_map, as_list(config.get("profiles"))):
        for plugin in map(as_map, as_list(profile.get("pluginConfig"))):
            args = as_map(plugin.get("args"))
            if plugin.get("name") == "PodTopologySpread" and args.get("defaultingType") == "List":
                return tuple(map(as_map, as_list(args.get("defaultConstraints"))))
    return None
