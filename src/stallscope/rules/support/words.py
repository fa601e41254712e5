"""Wording shared by findings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from stallscope.findings import Label
from stallscope.model.source import Location


def label(location: Location, text: str, *, primary: bool = False) -> Label:
    """A label; a short form that keeps rules readable."""
    return Label(location=location, text=text, primary=primary)


def unique(labels: Iterable[Label]) -> tuple[Label, ...]:
    """Labels without repeats of the same place, the primary one kept; labels without a file are dropped."""
    kept: dict[tuple[str, int, int], Label] = {}
    for item in labels:
        if not item.location.file:
            continue
        key = (item.location.file, item.location.span.line, item.location.span.column)
        if key not in kept or (item.primary and not kept[key].primary):
            kept[key] = item
    return tuple(kept.values())


def listed(items: Sequence[str], limit: int = 3) -> str:
    """``a``, ``a and b``, ``a, b and 7 more``."""
    if len(items) > limit + 1:
        return f"{', '.join(items[:limit])} and {len(items) - limit} more"
    if len(items) <= 1:
        return "".join(items)
    return f"{', '.join(items[:-1])} and {items[-1]}"


def zone_name(zone: str) -> str:
    """``zone a``; names that say so themselves (``zone-a``) stay as they are."""
    return zone if zone.lower().startswith("zone") else f"zone {zone}"


def zone_names(zones: Sequence[str]) -> str:
    """``zone a``, ``zones a and b``, ``zone-a and zone-b``."""
    if len(zones) == 1 or not zones:
        return zone_name(zones[0]) if zones else "an unknown zone"
    bare = all(z.lower().startswith("zone") for z in zones)
    return listed(zones) if bare else f"zones {listed(zones)}"


def count(number: int, noun: str, plural: str = "") -> str:
    """``1 pod``, ``3 pods``."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"
