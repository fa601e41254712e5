"""
Link profiles as users write them; the model and the pocket cluster read the same file.

    name: my cluster
    links:
      node:       {rate: 2400Gbit, delay: 5us}
      zone:       {rate: 40Gbit, delay: 60us, source: measured with iperf3}
      cross-zone: {rate: 5Gbit, delay: 500us, loss: 0.01%, mtu: 1500}

A class left out keeps its cited default. Units are those of tc(8): bit, Kbit, Mbit, Gbit, Tbit; us, ms, s.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from stallscope.collective.links import DEFAULT_PROFILE, Link, LinkClass, LinkProfile
from stallscope.errors import UsageError
from stallscope.model.source import as_map

_RATE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)bit(?:/s|ps)?\Z", re.IGNORECASE)
_DELAY = re.compile(r"(\d+(?:\.\d+)?)\s*(us|ms|s)\Z")
_SHARE = re.compile(r"(\d+(?:\.\d+)?)\s*%\Z")
_BYTES = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(i?)B?\Z", re.IGNORECASE)
_FACTOR = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}
_TIME = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
_KEYS = frozenset({"rate", "delay", "loss", "mtu", "source"})


def profile_from_body(body: Any, *, where: str = "profile") -> LinkProfile:
    """
    A profile from a parsed file. Raises UsageError naming `where` and the key for unknown classes, unknown keys and
    figures that are not of the form above; nothing is guessed.
    """
    links = as_map(body).get("links", {})
    if not isinstance(body, Mapping) or not isinstance(links, Mapping):
        raise UsageError(f"{where}: a profile is a mapping with 'links'", hint="links: {zone: {rate: 40Gbit, delay: 60us}}")
    unknown = [str(k) for k in links if k not in {c.value for c in LinkClass}]
    if unknown:
        raise UsageError(f"{where}: unknown link class '{unknown[0]}'", hint="classes: node, zone, cross-zone")
    made = {kind: _link(links.get(kind.value), DEFAULT_PROFILE.link(kind), f"{where}: {kind}") for kind in LinkClass}
    return LinkProfile(
        name=str(body.get("name", where)),
        node=made[LinkClass.NODE],
        zone=made[LinkClass.ZONE],
        cross_zone=made[LinkClass.CROSS_ZONE],
    )


def parse_rate(text: str) -> float | None:
    """``40Gbit`` -> bytes/s; None when `text` is no rate."""
    match = _RATE.match(text.strip())
    return float(match[1]) * _FACTOR[match[2].lower()] / 8 if match else None


def parse_delay(text: str) -> float | None:
    """``60us`` -> seconds; None when `text` is no duration."""
    match = _DELAY.match(text.strip())
    return float(match[1]) * _TIME[match[2]] if match else None


def parse_bytes(text: str) -> float | None:
    """``14GB``, ``2.5GiB``, ``4096`` -> bytes; None when `text` is no size."""
    match = _BYTES.match(text.strip())
    if match is None:
        return None
    factor = _FACTOR[match[2].lower()]
    if match[3]:
        factor = 1024.0 ** ["", "k", "m", "g", "t"].index(match[2].lower())
    return float(match[1]) * factor


def _link(value: Any, default: Link, where: str) -> Link:
    if value is None:
        return default
    if not isinstance(value, Mapping):
        raise UsageError(f"{where}: expected a mapping", hint="{rate: 40Gbit, delay: 60us}")
    strange = [str(k) for k in value if k not in _KEYS]
    if strange:
        raise UsageError(f"{where}: unknown key '{strange[0]}'", hint=f"keys: {', '.join(sorted(_KEYS))}")
    link = replace(default, source=str(value.get("source", "stated in the profile")))
    if "rate" in value:
        link = replace(link, bandwidth=_figure(parse_rate, value["rate"], f"{where}: rate", "40Gbit"))
    if "delay" in value:
        link = replace(link, latency=_figure(parse_delay, value["delay"], f"{where}: delay", "60us"))
    if "loss" in value:
        link = replace(link, loss=_figure(_parse_share, value["loss"], f"{where}: loss", "0.01%"))
    if "mtu" in value:
        link = replace(link, mtu=_mtu(value["mtu"], f"{where}: mtu"))
    return link


def _parse_share(text: str) -> float | None:
    match = _SHARE.match(text.strip())
    share = float(match[1]) / 100 if match else None
    return share if share is not None and share <= 1 else None


def _figure(parse: Any, value: Any, where: str, example: str) -> float:
    found: float | None = parse(str(value))
    if found is None or (found <= 0 and parse is parse_rate):
        raise UsageError(f"{where}: '{value}' is not understood", hint=f"for example {example}")
    return found


def _mtu(value: Any, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 576 <= value <= 65535:
        raise UsageError(f"{where}: '{value}' is no MTU", hint="a whole number from 576 to 65535")
    return value
