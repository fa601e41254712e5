"""NodePorts. Source: kube-scheduler 1.36 plugin nodeports, framework.HostPortInfo.CheckConflict."""

from __future__ import annotations

from collections.abc import Iterable

from stallscope.placement.filters.base import Refusal

HostPort = tuple[str, str, int]
TAKEN = Refusal("NodePorts", ("node(s) didn't have free ports for the requested pod ports",), resolvable=True)
_ANY = "0.0.0.0"  # noqa: S104 - the API's own word for "any address"


def ports_conflict(wanted: Iterable[HostPort], used: Iterable[HostPort]) -> bool:
    """Whether two sets of host ports cannot live on one node: same protocol and port, same or any address."""
    taken = set(used)
    for address, protocol, port in wanted:
        for other, other_protocol, other_port in taken:
            if (protocol, port) == (other_protocol, other_port) and (address == other or _ANY in (address, other)):
                return True
    return False
