"""
Plain scalars as Kubernetes reads them: sigs.k8s.io/yaml on go-yaml v2 (resolve.go), then through JSON.

That is YAML 1.1 with Go's own ideas: ``yes``, ``on`` and ``y`` are booleans, ``0777`` and ``0o777`` are octal, there are
no base-60 numbers, timestamps stay text, and because the value passes through JSON an integral float (``2.0``, ``1e3``,
``08``) arrives as an integer.
"""

from __future__ import annotations

import re
from typing import Any

_INT64, _UINT64 = 2**63, 2**64
_MAX_NUMBER = 400  # longest text looked at as a number: Go reads 1e308 with all its digits, nobody writes more

#: Words with a fixed meaning (resolve.go, resolveMapList). The infinities and NaN are left out: see `NOT_IN_JSON`.
CONSTANTS: dict[str, Any] = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
}

#: Numbers to YAML, but JSON has no such number, so the API server refuses the object. Kept as text here.
NOT_IN_JSON = frozenset(sign + word for sign in ("", "+", "-") for word in (".inf", ".Inf", ".INF")) | {
    ".nan",
    ".NaN",
    ".NAN",
}

_INTEGER = re.compile(r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))\Z")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z")
_BASES = (16, 2, 8, 10)


def resolve_plain(text: str) -> Any:
    """The value of a plain (unquoted, untagged) scalar: None, bool, int, float or text."""
    if text in CONSTANTS:
        return CONSTANTS[text]
    if text[0] not in "+-.0123456789" or len(text) > _MAX_NUMBER:
        return text
    digits = text if text[0] == "." else text.replace("_", "")
    number: int | float | None = _integer(digits)
    if number is None and _FLOAT.match(digits):
        number = _float(digits)
    return text if number is None else number


def _integer(digits: str) -> int | None:
    match = _INTEGER.match(digits)
    if match is None:
        return None
    sign, *forms = match.groups()
    value = next(int(form, base) for form, base in zip(forms, _BASES, strict=True) if form is not None)
    value = -value if sign == "-" else value
    # ParseInt takes 64 bits with a sign, ParseUint 64 bits without one; anything else is no integer to Go.
    if -_INT64 <= value < _INT64 or (not sign and value < _UINT64):
        return value
    return None


def _float(digits: str) -> float | int | None:
    value = float(digits)
    if value in (float("inf"), float("-inf")):  # ParseFloat: out of range, so the scalar stays text
        return None
    if value.is_integer() and -_INT64 <= value < _INT64:
        return int(value)
    return value


def as_key(value: Any) -> str | None:
    """
    A mapping key as the text JSON makes of it: ``on`` -> ``"true"``, ``0777`` -> ``"511"``. None for a null key, which Go
    refuses ("unsupported map key").
    """
    if isinstance(value, str):
        return value
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


_CORE = "tag:yaml.org,2002:"

#: The tags of plain data, and what a scalar must be to carry them.
TAG_TYPES: dict[str, tuple[type, ...]] = {
    _CORE + "str": (str,),
    _CORE + "timestamp": (str,),
    _CORE + "int": (int,),
    _CORE + "float": (int, float),
    _CORE + "bool": (bool,),
    _CORE + "null": (type(None),),
}


def resolve_tagged(tag: str, text: str) -> tuple[bool, Any]:
    """Whether a tagged scalar can be read, and its value (`text` when it cannot). Only tags of plain data can."""
    types = TAG_TYPES.get(tag)
    if types is None:
        return False, text
    if str in types:
        return True, text
    value = resolve_plain(text)
    fits = isinstance(value, types) and (isinstance(value, bool) == (bool in types))
    return fits, value if fits else text
