"""Volcano HyperNodes (topology.volcano.sh/v1alpha1): which tiers stay within one zone."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from stallscope.model.kube import KubeObject
from stallscope.model.labels import parse_selector
from stallscope.model.source import as_list, as_str, dig
from stallscope.model.topology import Node

_MANY = 2000  # HyperNodes; selectors by pattern are tried on each
_DEEP = 32  # levels; a fabric has three or four
_LONG = 256  # a pattern longer than this is nobody's node name


def highest_zonal_tier(hypernodes: Sequence[KubeObject], nodes: Sequence[Node]) -> int | None:
    """The highest tier of which every HyperNode is fully known and lies in one zone; None when there is none."""
    if len(hypernodes) > _MANY:
        return None
    tree = _Tree(hypernodes, nodes)
    good: dict[int, bool] = {}
    for item in hypernodes:
        tier = item.get("spec", "tier")
        if isinstance(tier, int) and not isinstance(tier, bool):
            zones = tree.zones(item)
            good[tier] = good.get(tier, True) and zones is not None and len(zones) == 1 and "" not in zones
    return max((tier for tier, zonal in good.items() if zonal), default=None)


class _Tree:
    """HyperNodes by name. `zones` is worked out once each; None where a member is not in the input or a cycle closes."""

    def __init__(self, hypernodes: Sequence[KubeObject], nodes: Sequence[Node]) -> None:
        self._all = hypernodes
        self._by_name = {h.name: h for h in hypernodes}
        self._nodes = nodes
        self._known: dict[str, frozenset[str] | None] = {}
        self._depth = 0

    def zones(self, item: KubeObject) -> frozenset[str] | None:
        if item.name not in self._known:
            self._known[item.name] = None  # what a cycle finds
            self._depth += 1
            self._known[item.name] = self._zones(item) if self._depth < _DEEP else None
            self._depth -= 1
        return self._known[item.name]

    def _zones(self, item: KubeObject) -> frozenset[str] | None:
        found: set[str] = set()
        for member in as_list(item.get("spec", "members")):
            selector = dig(member, "selector")
            if as_str(dig(member, "type")) == "Node":
                parts = [frozenset({n.zone}) for n in self._nodes if _matches(selector, n.name, n.labels)]
            else:
                below = self._chosen(selector)
                inner = [self.zones(h) for h in below]
                if any(z is None for z in inner):
                    return None
                parts = [z for z in inner if z is not None]
            if not parts:
                return None
            found.update(*parts)
        return frozenset(found) if found else None

    def _chosen(self, selector: Any) -> list[KubeObject]:
        exact = as_str(dig(selector, "exactMatch", "name"))
        if exact:
            return [self._by_name[exact]] if exact in self._by_name else []
        return [h for h in self._all if _matches(selector, h.name, h.labels)]


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
