"""Kubernetes resource quantities (apimachinery resource.Quantity): exact, never floating point."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache
from typing import Any

_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_FORM = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:(Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE]?)|[eE]([+-]?\d{1,3}))\Z")


def parse_quantity(value: Any) -> Fraction | None:
    """The exact amount, or ``None`` when `value` is not a quantity (the API server would reject it)."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return Fraction(value)
    if isinstance(value, float):
        value = repr(value)
    return _parse_text(value) if isinstance(value, str) and len(value) <= 64 else None


@lru_cache(maxsize=4096)
def _parse_text(text: str) -> Fraction | None:
    """Thousands of nodes say the same few amounts."""
    match = _FORM.match(text.strip())
    if match is None:
        return None
    number, suffix, exponent = match.groups()
    amount = Fraction(number)
    if exponent is not None:
        return amount * Fraction(10) ** int(exponent)
    if suffix in _BINARY:
        return amount * Fraction(1024) ** _BINARY[suffix]
    return amount * Fraction(10) ** _DECIMAL[suffix or ""]


def format_quantity(amount: Fraction) -> str:
    """A short readable form: whole numbers as they are, binary suffixes where they divide, else milli-units."""
    if amount.denominator == 1:
        whole = int(amount)
        for suffix, power in reversed(_BINARY.items()):
            if whole and whole % 1024**power == 0:
                return f"{whole // 1024**power}{suffix}"
        return str(whole)
    milli = amount * 1000
    return f"{int(milli)}m" if milli.denominator == 1 else f"{float(amount):g}"
