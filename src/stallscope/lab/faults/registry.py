"""Every fault by name, and how users write one."""

from __future__ import annotations

from collections.abc import Iterable

from stallscope.errors import UsageError
from stallscope.lab.faults.base import Args, Armed, Fault
from stallscope.lab.faults.hosts import HOST_FAULTS
from stallscope.lab.faults.network import NETWORK_FAULTS

FAULTS: dict[str, Fault] = {f.name: f for f in (*HOST_FAULTS, *NETWORK_FAULTS)}


def parse_fault(text: str) -> Armed:
    """``straggler:rank=2,ms=300`` -> the fault with its arguments. Raises UsageError."""
    name, _, rest = text.partition(":")
    fault = FAULTS.get(name)
    if fault is None:
        from difflib import get_close_matches

        near = get_close_matches(name, FAULTS, n=1)
        instead = f"; did you mean {near[0]!r}?" if near else ""
        raise UsageError(f"--fault: unknown fault {name!r}{instead}", hint="--fault list shows them all")
    values = dict(fault.defaults)
    for item in filter(None, rest.split(",")):
        key, sign, value = item.partition("=")
        if not sign or key not in fault.defaults:
            known = ", ".join(fault.defaults) or "none"
            raise UsageError(f"--fault {name}: {item!r} is no argument of it", hint=f"arguments: {known}")
        values[key] = value
    return Armed(fault, Args(name, values))


def parse_faults(texts: Iterable[str]) -> tuple[Armed, ...]:
    """All of `texts`. Raises UsageError."""
    return tuple(map(parse_fault, texts))


def describe_faults() -> str:
    """The list for ``--fault list``: name, arguments with defaults, what it does, the label."""
    rows = [(f"{f.name}:{','.join(f'{k}={v}' for k, v in f.defaults.items())}".rstrip(":"), f) for f in FAULTS.values()]
    width = max(len(name) for name, _ in rows)
    return "".join(f"{name.ljust(width)}  {f.help} [{f.label}]\n" for name, f in rows)
