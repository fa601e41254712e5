"""
Verdicts -> nftables in the path, as a CNI enforces them: egress at the source's node, ingress at the destination's node,
silent drop, replies of allowed connections always let through, and every drop counted under the rule that decided.

A packet of an established connection is judged again in its original direction (Cilium's datapath does the same: only
CT_REPLY and CT_RELATED skip the policy lookup, bpf/lib/policy.h), so that a rule swapped in mid-run hits living
connections. Each reason is one nft set of (source, destination, port range) elements with counters of their own.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from shutil import which

from stallscope.errors import LabError
from stallscope.lab.kernel import entered
from stallscope.lab.netns import PocketCluster
from stallscope.lab.shaper import run_nft
from stallscope.model.traffic import Direction, DirectionVerdict, Endpoint, Outcome, PortRange, Protocol, Verdict

TABLE = "stsc_policy"
ALL_TCP = PortRange(1, 65535, Protocol.TCP)
_COMMENT_LIMIT = 120  # nft: 128 bytes with the terminator

#: Segments of a port range with one verdict each: `PolicySet.evaluate_range`.
Segments = Callable[[Endpoint, Endpoint, PortRange], Sequence[tuple[PortRange, Verdict]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop:
    """Packets to drop: pod names, ports, the end that enforces it, and why in words with file:line."""

    direction: Direction
    source: str
    destination: str
    ports: PortRange
    reason: str
    action: str = "drop"


@dataclass(frozen=True, slots=True, kw_only=True)
class DropCount:
    """How many packets one rule dropped between one pair."""

    source: str
    destination: str
    direction: Direction
    reason: str
    packets: int


@dataclass(slots=True, kw_only=True)
class Firewall:
    """What is installed: `reasons` numbers the reasons as the sets are named."""

    drops: tuple[Drop, ...]
    reasons: dict[str, int] = field(default_factory=dict)


def drops_of(endpoints: Mapping[str, Endpoint], segments: Segments, ports: PortRange = ALL_TCP) -> tuple[Drop, ...]:
    """
    Every denial between the pods of `endpoints` (pod name -> endpoint), per enforcing end.

    Proxied and unjudged traffic passes: the lab has no L7 proxy and does not guess; the report says so.
    """
    found: list[Drop] = []
    for source, source_end in endpoints.items():
        for destination, destination_end in endpoints.items():
            if source == destination:
                continue
            for piece, verdict in segments(source_end, destination_end, ports):
                found += [
                    Drop(
                        direction=side.direction,
                        source=source,
                        destination=destination,
                        ports=piece,
                        reason=why(side, source_end if side.direction is Direction.EGRESS else destination_end),
                    )
                    for side in (verdict.egress, verdict.ingress)
                    if side.outcome is Outcome.DENIED
                ]
    return tuple(found)


def why(side: DirectionVerdict, end: Endpoint) -> str:
    """The deciding rule with its place, or the policies that isolate the end when it is default deny."""
    if side.rules:
        rule = side.rules[0]
        return f"{side.direction} denied by {rule} ({rule.location})"
    names = ", ".join(f"{r.policy} ({r.location})" for r in side.isolating[:2])
    more = f" and {len(side.isolating) - 2} more" if len(side.isolating) > 2 else ""
    return f"{side.direction} default deny at {end.name}: {names}{more}" if names else f"{side.direction} {side.reason}"


def install(cluster: PocketCluster, drops: Iterable[Drop]) -> Firewall:
    """
    Put `drops` in the node namespaces, atomically per node and in place of what was there. Raises LabError.
    """
    firewall = Firewall(drops=tuple(drops))
    if not firewall.drops and which("nft") is None:  # nothing to enforce, and nothing was: nft would have been needed
        return firewall
    for drop in firewall.drops:
        firewall.reasons.setdefault(drop.reason, len(firewall.reasons))
    for node in cluster.plan.nodes:
        local = {p.pod.name for p in node.pods}
        mine = [d for d in firewall.drops if (d.source if d.direction is Direction.EGRESS else d.destination) in local]
        with entered(cluster.nodes[node.name].fd):
            run_nft(ruleset(mine, firewall.reasons, cluster.plan.ips))
    return firewall


def ruleset(drops: Sequence[Drop], reasons: Mapping[str, int], ips: Mapping[str, str]) -> str:
    """The nft text of one node. Replaces the whole table in one transaction."""
    grouped: dict[tuple[int, Direction, str], list[Drop]] = {}
    for drop in drops:
        grouped.setdefault((reasons[drop.reason], drop.direction, drop.action), []).append(drop)
    sets, rules = [], []
    for (number, direction, action), members in sorted(grouped.items(), key=lambda g: (g[0][1], g[0][0])):
        name = f"{direction}_{number}_{action}"
        sets.append(_set(name, members, ips))
        verdict = "reject with icmpx type admin-prohibited" if action == "reject" else "drop"
        rules.append(f"    ip saddr . ip daddr . tcp dport @{name} counter {verdict} comment {_quoted(members[0].reason)}")
    chain = [
        f"table inet {TABLE} {{",
        *sets,
        "  chain forward {",
        "    type filter hook forward priority 0",
        "    policy accept",
        "    ct direction reply accept",
        "    ct state related accept",
        *rules,
        "  }",
        "}",
    ]
    return f"add table inet {TABLE}\ndelete table inet {TABLE}\n" + "\n".join(chain) + "\n"


def _set(name: str, members: Sequence[Drop], ips: Mapping[str, str]) -> str:
    merged: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for drop in members:
        merged.setdefault((ips[drop.source], ips[drop.destination]), []).append((drop.ports.first, drop.ports.last))
    elements = [
        f"{source} . {destination} . {first}-{last}"
        for (source, destination), ranges in merged.items()
        for first, last in _join(ranges)
    ]
    body = ",\n      ".join(elements)
    return f"""  set {name} {{
    type ipv4_addr . ipv4_addr . inet_service
    flags interval
    counter
    elements = {{
      {body}
    }}
  }}"""


def _join(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Touching ranges made one: nft refuses overlaps, and fewer elements load faster."""
    result: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if result and first <= result[-1][1] + 1:
            result[-1] = (result[-1][0], max(result[-1][1], last))
        else:
            result.append((first, last))
    return result


def _quoted(text: str) -> str:
    """A comment nft accepts: no quotes or control characters, within its length."""
    plain = "".join(c if c.isprintable() and c not in '"\\' else "'" for c in text)
    return '"' + plain.encode()[:_COMMENT_LIMIT].decode("utf-8", "ignore") + '"'


def counts(cluster: PocketCluster, firewall: Firewall) -> tuple[DropCount, ...]:
    """What was dropped so far, by pair and reason, most first. Reads nft's per-element counters. Raises LabError."""
    if not firewall.drops:
        return ()
    names = {ip: pod for pod, ip in cluster.plan.ips.items()}
    reasons = {number: reason for reason, number in firewall.reasons.items()}
    totals: dict[tuple[str, str, Direction, str], int] = {}
    for node in cluster.plan.nodes:
        with entered(cluster.nodes[node.name].fd):
            done = subprocess.run(["nft", "-j", "list", "table", "inet", TABLE], capture_output=True, text=True, check=False)
        if done.returncode:
            raise LabError(f"nft: cannot read the counters of node {node.name}: {done.stderr.strip()}")
        for item in json.loads(done.stdout)["nftables"]:
            if "set" in item:
                direction, number, _ = item["set"]["name"].split("_")
                for element in item["set"].get("elem", []):
                    source, destination, packets = _element(element)
                    key = (names[source], names[destination], Direction(direction), reasons[int(number)])
                    totals[key] = totals.get(key, 0) + packets
    found = [
        DropCount(source=s, destination=d, direction=side, reason=reason, packets=packets)
        for (s, d, side, reason), packets in totals.items()
        if packets
    ]
    return tuple(sorted(found, key=lambda c: (-c.packets, c.source, c.destination)))


def _element(element: dict[str, object]) -> tuple[str, str, int]:
    """(source ip, destination ip, packets) of one set element with a counter (libnftables-json(5))."""
    body = element["elem"]
    assert isinstance(body, dict)  # noqa: S101  the format of a set declared with `counter`
    source, destination, _ = body["val"]["concat"]
    return source, destination, int(body["counter"]["packets"])
