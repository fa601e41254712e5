"""Volcano HyperNodes (topology.volcano.sh/v1alpha1): which tiers stay within one zone."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from stallscope.model.kube import KubeObject
from stallscope.model.labels import parse_selector
from stallscope.model.source import as_list, as_str, dig
from stallscope.model.topology import Node

_DEEP = 16
_LONG = 256  # a pattern longer than this is nobody's node name


def highest_zonal_tier(hypernodes: Sequence[KubeObject], nodes: Sequence[Node]) -> int | None:
    """The highest tier of which every HyperNode has nodes, all in one zone; None when there is none."""
    by_name = {h.name: h for h in hypernodes}
    zones: dict[int, list[set[str]]] = {}
    for item in hypernodes:
        tier = item.get("spec", "tier")
        if isinstance(tier, int) and not isinstance(tier, bool):
            zones.setdefault(tier, []).append({n.zone for n in _leaves(item, by_name, nodes, 0)})
    good = [tier for tier, found in zones.items() if all(len(z) == 1 and "" not in z for z in found)]
    return max(good, default=None)


def _leaves(item: KubeObject, by_name: Mapping[str, KubeObject], nodes: Sequence[Node], depth: int) -> list[Node]:
    found: list[Node] = []
    if depth > _DEEP:
        return found
    for member in as_list(item.get("spec", "members")):
        if as_str(dig(member, "type")) == "Node":
            found += [n for n in nodes if _matches(dig(member, "selector"), n.name, n.labels)]
        else:
            for other in by_name.values():
                if other.name != item.name and _matches(dig(member, "selector"), other.name, other.labels):
                    found += _leaves(other, by_name, nodes, depth + 1)
    return found


def _matches(selector: Any, name: str, labels: Mapping[str, str]) -> bool:
    exact = as_str(dig(selector, "exactMatch", "name"))
    if exact:
        return exact == name
    pattern = as_str(dig(selector, "regexMatch", "pattern"))
    if pattern:
        return len(pattern) <= _LONG and _regex(pattern, name)
    by_label = parse_selector(dig(selector, "labelMatch"))
    return by_label is not None and by_label.matches(labels)


def _regex(pattern: str, name: str) -> bool:
    """Simple patterns only: nested repetition in a hostile file could run for ever."""
    if re.search(r"[*+}]\)?[*+{]|\(.*[*+].*\)[*+{]", pattern):
        return False
    try:
        return re.search(pattern, name[:_LONG]) is not None
    except re.error:
        return False
