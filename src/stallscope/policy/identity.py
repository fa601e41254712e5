"""
Which labels of a pod are part of its Cilium identity: only those can be selected.

Source: cilium/cilium pkg/labelsfilter/filter.go (default prefixes, longest include against shortest ignore) and the agent
option ``labels``; reference/policy.md §0.1, §0.6.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

NAMESPACE = "io.kubernetes.pod.namespace"
NAMESPACE_LABELS = "io.cilium.k8s.namespace.labels"
SERVICE_ACCOUNT = "io.cilium.k8s.policy.serviceaccount"
CLUSTER = "io.cilium.k8s.policy.cluster"

#: cilium/cilium#43725: topology labels left identity in these releases (backported to 1.18, not to 1.17).
TOPOLOGY_EXCLUDED = ((1, 18, 7), (1, 19, 0))

_INCLUDED = (
    r"reserved:.*",
    r"io\.kubernetes\.pod\.namespace",
    r"io\.cilium\.k8s\.namespace\.labels",
    r"app\.kubernetes\.io",
    r"io\.cilium\.k8s\.policy\.cluster",
    r"io\.cilium\.k8s\.policy\.serviceaccount",
)
_IGNORED = (
    r"io\.kubernetes",
    r"kubernetes\.io",
    r"statefulset\.kubernetes\.io/pod-name",
    r"apps\.kubernetes\.io/pod-index",
    r"batch\.kubernetes\.io/job-completion-index",
    r"batch\.kubernetes\.io/controller-uid",
    r".*beta\.kubernetes\.io",
    r"k8s\.io",
    r"pod-template-generation",
    r"pod-template-hash",
    r"controller-revision-hash",
    r"controller-uid",
    r"annotation.*",
    r"etcd_node",
)
_TOPOLOGY = r"topology\.kubernetes\.io"


def excludes_topology(version: tuple[int, ...]) -> bool:
    """Whether this Cilium release leaves ``topology.kubernetes.io/*`` out of identity; empty = current, so yes."""
    if not version:
        return True
    full = (*version, 0, 0)[:3]
    return full >= (TOPOLOGY_EXCLUDED[0] if full[:2] == (1, 18) else TOPOLOGY_EXCLUDED[1])


class LabelFilter:
    """The agent's identity label filter. `patterns` are the entries of the ``labels`` option, in the agent's syntax."""

    __slots__ = ("_cache", "_ignore", "_include", "inclusive")

    def __init__(self, version: tuple[int, ...], patterns: tuple[str, ...] = ()) -> None:
        ignored = (*_IGNORED, _TOPOLOGY) if excludes_topology(version) else _IGNORED
        self._include = [_parse(p) for p in _INCLUDED]
        self._ignore = [("", re.compile(p)) for p in ignored]
        self.inclusive = False
        self._cache: dict[str, bool] = {}
        for pattern in patterns:
            source, rest = _split(pattern)
            inverted = rest.startswith("!")
            try:
                entry = (source, re.compile(rest[1:] if inverted else rest))
            except re.error:
                continue  # the agent would refuse to start; nothing sensible can be filtered by it
            (self._ignore if inverted else self._include).append(entry)
            self.inclusive = self.inclusive or not inverted

    def keeps(self, key: str, source: str = "k8s") -> bool:
        """Whether the label is part of identity."""
        cached = self._cache.get(key) if source == "k8s" else None
        if cached is not None:
            return cached
        included = max(_lengths(self._include, key, source), default=0)
        ignored = min(_lengths(self._ignore, key, source), default=0)
        kept = (not self.inclusive and ignored == 0) or included > ignored
        if source == "k8s":
            self._cache[key] = kept
        return kept


def _parse(pattern: str) -> tuple[str, re.Pattern[str]]:
    source, rest = _split(pattern)
    return source, re.compile(rest)


def _split(pattern: str) -> tuple[str, str]:
    source, colon, rest = pattern.partition(":")
    return (source, rest) if colon else ("", pattern)


def _lengths(entries: Iterable[tuple[str, re.Pattern[str]]], key: str, source: str) -> list[int]:
    matches = (expression.match(key) for wanted, expression in entries if wanted in ("", source))
    return [m.end() for m in matches if m is not None and m.end()]


@lru_cache(maxsize=64)
def label_filter(version: tuple[int, ...], labels_option: str = "") -> LabelFilter:
    """The filter of a release and its ``labels`` option (patterns separated by spaces, as in cilium-config)."""
    return LabelFilter(version, tuple(labels_option.split()))


def filter_labels(labels: Mapping[str, str], version: tuple[int, ...], labels_option: str = "") -> dict[str, str]:
    """The pod labels that are part of identity."""
    keep = label_filter(version, labels_option).keeps
    return {key: value for key, value in labels.items() if keep(key)}
