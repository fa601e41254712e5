"""
Taints and tolerations.

Source: core/v1 Toleration.ToleratesTaint and component-helpers FindMatchingUntoleratedTaint (1.36); KEP-5471 for Gt and
Lt (alpha, off: the API server then rejects them); admission plugin DefaultTolerationSeconds (on by default).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from stallscope.model.source import as_list, as_map, as_str
from stallscope.model.topology import Taint

FILTERING_EFFECTS = ("NoSchedule", "NoExecute")
COMPARISONS = ("Gt", "Lt")
_CANONICAL = re.compile(r"(0|-?[1-9]\d*)\Z", re.ASCII)


class Toleration(NamedTuple):
    """Empty `key` (with Exists) tolerates every key; empty `effect` every effect."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""

    def tolerates(self, taint: Taint, *, comparisons: bool = False) -> bool:
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        match self.operator:
            case "" | "Equal":
                return self.value == taint.value
            case "Exists":
                return True
            case "Gt" | "Lt":
                return comparisons and self._compares(taint.value)
        return False

    def _compares(self, value: str) -> bool:
        """``Gt 5`` tolerates a taint whose value is greater than 5 (measured, KEP-5471)."""
        if not _CANONICAL.match(value) or not _CANONICAL.match(self.value):
            return False
        return int(value) > int(self.value) if self.operator == "Gt" else int(value) < int(self.value)


#: What admission adds to a pod that says nothing about these (300 s on a failing node).
_ADDED_KEYS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def parse_tolerations(spec: Mapping[str, Any]) -> tuple[Toleration, ...]:
    """The spec's tolerations plus those DefaultTolerationSeconds adds."""
    own = tuple(
        Toleration(
            as_str(t.get("key")), as_str(t.get("operator")) or "Equal", as_str(t.get("value")), as_str(t.get("effect"))
        )
        for t in map(as_map, as_list(spec.get("tolerations")))
    )
    added = tuple(Toleration(k, "Exists", "", "NoExecute") for k in _ADDED_KEYS if not _speaks_of(own, k))
    return own + added


def _parse(value: Any) -> Toleration:
    body = as_map(value)
    operator = as_str(body.get("operator")) or "Equal"
    return Toleration(as_str(body.get("key")), operator, as_str(body.get("value")), as_str(body.get("effect")))


def _speaks_of(tolerations: Iterable[Toleration], key: str) -> bool:
    return any(t.key in ("", key) and t.effect in ("", "NoExecute") for t in tolerations)


def untolerated(taints: Sequence[Taint], tolerations: Sequence[Toleration], *, comparisons: bool = False) -> Taint | None:
    """The first taint that keeps the pod away. PreferNoSchedule never does."""
    for taint in taints:
        if taint.effect in FILTERING_EFFECTS and not any(t.tolerates(taint, comparisons=comparisons) for t in tolerations):
            return taint
    return None
