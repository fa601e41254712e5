"""
Ports as closed intervals. A collective needs *every* port of a range, so verdicts are computed for stretches of ports that
no rule tells apart, never port by port.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from stallscope.model.traffic import Protocol

LAST_PORT = 65535

Interval = tuple[int, int]

#: What a port without a protocol covers in Cilium (policy/api/l4.go ProtoAny: TCP, UDP and SCTP).
TRANSPORT = (Protocol.TCP, Protocol.UDP, Protocol.SCTP)

NamedPorts = tuple[tuple[str, Protocol, int], ...]


class PortItem(NamedTuple):
    """
    One listed port. `protocol` None covers every protocol, also those without ports; `name` is resolved on the
    destination. For ICMP `first`..`last` are message types. `ranged`: written with an endPort (Cilium keeps such ports
    apart from the same port without, see `stallscope.policy.cilium_attribution`).
    """

    protocol: Protocol | None
    first: int = 0
    last: int = LAST_PORT
    name: str = ""
    ranged: bool = False

    def __str__(self) -> str:
        if self.name:
            ports = f'"{self.name}"'
        elif (self.first, self.last) == (0, LAST_PORT):
            ports = "any port"
        else:
            ports = str(self.first) if self.first == self.last else f"{self.first}-{self.last}"
        return f"{self.protocol or 'any protocol'} {ports}"

    def interval(self, protocol: Protocol, named: NamedPorts) -> Interval | None:
        """The ports of `protocol` it covers at a destination with these named ports, or None."""
        if self.protocol is not None and self.protocol is not protocol:
            return None
        if not self.name:
            return (self.first, self.last) if self.first <= self.last else None
        for name, declared, number in named:
            if name == self.name and declared is protocol:
                return (number, number)
        return None


def intervals(items: Iterable[PortItem], protocol: Protocol, named: NamedPorts) -> tuple[Interval, ...]:
    """The merged, sorted intervals `items` cover for one protocol at one destination."""
    found = sorted(i for item in items if (i := item.interval(protocol, named)) is not None)
    return tuple(_merge(found))


def _merge(ordered: list[Interval]) -> Iterator[Interval]:
    current: Interval | None = None
    for first, last in ordered:
        if current is None:
            current = (first, last)
        elif first <= current[1] + 1:
            current = (current[0], max(current[1], last))
        else:
            yield current
            current = (first, last)
    if current is not None:
        yield current


def covers(ports: tuple[Interval, ...], number: int) -> bool:
    """Whether one port lies in the intervals."""
    return any(first <= number <= last for first, last in ports)


def cut(first: int, last: int, sets: Iterable[tuple[Interval, ...]]) -> list[Interval]:
    """Split `first`..`last` at every border of `sets`: inside a piece no set changes."""
    starts = {first}
    for ports in sets:
        for low, high in ports:
            if first < low <= last:
                starts.add(low)
            if first < high + 1 <= last:
                starts.add(high + 1)
    edges = sorted(starts)
    return [(start, (edges[i + 1] - 1) if i + 1 < len(edges) else last) for i, start in enumerate(edges)]


def complement(spans: Iterable[Interval]) -> list[Interval]:
    """The ports outside every span."""
    free, start = [], 0
    for first, last in sorted(spans):
        if first > start:
            free.append((start, first - 1))
        start = max(start, last + 1)
    return [*free, (start, LAST_PORT)] if start <= LAST_PORT else free


def describe(items: Iterable[PortItem]) -> str:
    """A readable list, protocols grouped: ``TCP 22, 29500; UDP 53``."""
    groups: dict[str, list[str]] = {}
    for item in items:
        protocol, _, ports = (
            str(item).rpartition(" ") if not str(item).endswith("any port") else (str(item)[:-9], "", "any port")
        )
        groups.setdefault(protocol, []).append(ports)
    return "; ".join(f"{protocol} {', '.join(dict.fromkeys(ports))}" for protocol, ports in groups.items()) or "no port"
