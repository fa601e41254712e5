"""
Label selectors as the API machinery defines them (k8s.io/apimachinery labels.Requirement; API concepts, "Labels and
Selectors"). Node selectors add Gt and Lt; Cilium adds label sources (see `stallscope.policy`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from stallscope.model.source import as_list, as_map

LABEL_OPERATORS = frozenset({"In", "NotIn", "Exists", "DoesNotExist"})
NODE_OPERATORS = LABEL_OPERATORS | {"Gt", "Lt"}


class Requirement(NamedTuple):
    """One expression. NotIn and DoesNotExist also match when the key is absent."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        match self.operator:
            case "In":
                return value is not None and value in self.values
            case "NotIn":
                return value is None or value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
            case "Gt" | "Lt":
                return self._compares(value)
        return False

    def _compares(self, value: str | None) -> bool:
        """Gt/Lt compare integers; anything that is no integer does not match (nodeaffinity.go)."""
        try:
            left, right = int(value or ""), int(self.values[0])
        except (ValueError, IndexError):
            return False
        return left > right if self.operator == "Gt" else left < right

    def __str__(self) -> str:
        if self.operator in ("Exists", "DoesNotExist"):
            return self.key if self.operator == "Exists" else f"!{self.key}"
        if self.operator == "In" and len(self.values) == 1:
            return f"{self.key}={self.values[0]}"
        return f"{self.key} {self.operator} [{', '.join(self.values)}]"


class Selector(NamedTuple):
    """A conjunction of requirements; without any it matches everything. An *absent* selector is ``None``, not this."""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        return all(r.matches(labels) for r in self.requirements)

    def failing(self, labels: Mapping[str, str]) -> Requirement | None:
        """The first requirement `labels` does not meet, for explanations."""
        return next((r for r in self.requirements if not r.matches(labels)), None)

    @property
    def empty(self) -> bool:
        return not self.requirements

    def __str__(self) -> str:
        return ", ".join(map(str, self.requirements)) or "everything"


def parse_requirement(item: Any) -> Requirement:
    """A requirement from ``{key, operator, values}``; ill-typed parts become empty, so it matches as the API would not."""
    body = as_map(item)
    values = tuple(str(v) for v in as_list(body.get("values")))
    return Requirement(str(body.get("key", "")), str(body.get("operator", "")), values)


def parse_selector(value: Any) -> Selector | None:
    """A LabelSelector (``matchLabels`` AND ``matchExpressions``); ``None`` when `value` is absent or no mapping."""
    if not isinstance(value, Mapping):
        return None
    labels = tuple(Requirement(str(k), "In", (str(v),)) for k, v in as_map(value.get("matchLabels")).items())
    return Selector(labels + tuple(parse_requirement(e) for e in as_list(value.get("matchExpressions"))))
