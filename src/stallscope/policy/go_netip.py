"""
Addresses and prefixes as Go's net/netip reads them (ParseAddr, ParsePrefix), with its words for what it refuses: they end up
in the agent's rejections. Stricter than Python's ipaddress: no netmask, no spaces, no zone in a prefix.
"""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_network


def quoted(text: str) -> str:
    """The text as Go's %q writes plain strings."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def address_error(text: str) -> str:
    """Why ParseAddr refuses `text`, or the empty string."""
    kind = next((c for c in text if c in ".:%"), "")
    if kind == ".":
        problem = _ipv4_error(text)
    elif kind == ":":
        problem = _ipv6_error(text)
    else:
        problem = "missing IPv6 address" if kind else "unable to parse IP"
    return f"ParseAddr({quoted(text)}): {problem}" if problem else ""


def _ipv4_error(text: str) -> str:
    fields, value, digits = 0, 0, 0
    for index, char in enumerate(text):
        if char in "0123456789":
            if digits == 1 and value == 0:
                return "IPv4 field has octet with leading zero"
            value, digits = value * 10 + int(char), digits + 1
            if value > 255:
                return "IPv4 field has value >255"
        elif char != ".":
            return f"unexpected character (at {quoted(text[index:])})"
        elif index in (0, len(text) - 1) or text[index - 1] == ".":
            return f"IPv4 field must have at least one digit (at {quoted(text[index:])})"
        elif fields == 3:
            return "IPv4 address too long"
        else:
            fields, value, digits = fields + 1, 0, 0
    return "" if fields == 3 else "IPv4 address too short"


def _ipv6_error(text: str) -> str:
    try:
        IPv6Address(text)
    except ValueError:
        return "unable to parse IP"
    return ""


def prefix_error(text: str) -> str:
    """Why ParsePrefix refuses `text`, or the empty string."""
    problem = _prefix_problem(text)
    return f"netip.ParsePrefix({quoted(text)}): {problem}" if problem else ""


def _prefix_problem(text: str) -> str:
    address, slash, bits = text.rpartition("/")
    if not slash:
        return "no '/'"
    if problem := address_error(address):
        return problem
    if "%" in address:
        return "IPv6 zones cannot be present in a prefix"
    if not (bits.isascii() and bits.isdigit()) or (len(bits) > 1 and bits[0] == "0"):
        return f"bad bits after slash: {quoted(bits)}"
    return "prefix length out of range" if int(bits) > (128 if ":" in address else 32) else ""


def parse_prefix(text: str, *, bare_address: bool = False) -> IPv4Network | IPv6Network | None:
    """The prefix with its host bits cleared; with `bare_address` also an address without length."""
    bare = bare_address and "/" not in text and "%" not in text
    if address_error(text) if bare else prefix_error(text):
        return None
    return ip_network(text, strict=False)
