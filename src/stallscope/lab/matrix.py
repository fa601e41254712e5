"""The reachability matrix: what the policies say about every pair and probed port, beside what a real connect met."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from stallscope.collective.rehearsal import DropResult, EdgeResult
from stallscope.lab.cast import Cast
from stallscope.lab.firewall import Segments, counts, why
from stallscope.lab.netns import PocketCluster
from stallscope.lab.reach import Probe, Reached, all_pairs, measure
from stallscope.lab.stage import Stage
from stallscope.model.traffic import Direction, Endpoint, Outcome, PortRange, Verdict
from stallscope.policy.engine import PolicySet

#: Ports probed per pair; each is one more socket a pair.
MAX_PORTS = 8


def cached_segments(policies: PolicySet) -> Segments:
    """`PolicySet.evaluate_range`, asked once per pair of endpoint classes."""
    known: dict[tuple[Hashable, Hashable, PortRange], Sequence[tuple[PortRange, Verdict]]] = {}

    def segments(source: Endpoint, destination: Endpoint, ports: PortRange) -> Sequence[tuple[PortRange, Verdict]]:
        key = (policies.endpoint_key(source), policies.endpoint_key(destination), ports)
        if key not in known:
            known[key] = policies.evaluate_range(source, destination, ports)
        return known[key]

    return segments


def probe_ports(cast: Cast, segments: Segments) -> tuple[int, ...]:
    """
    Ports worth a connect: the rendezvous, and the first port of every stretch of a needed range in which some pair's
    verdict changes, up to `MAX_PORTS`.
    """
    found: dict[int, None] = {cast.rendezvous_port: None}
    for ports in cast.ports:
        found.setdefault(ports.first)
        for source in cast.endpoints.values():
            for destination in cast.endpoints.values():
                if source.name != destination.name:
                    for piece, _ in segments(source, destination, ports):
                        found.setdefault(piece.first)
    return tuple(sorted(list(found)[:MAX_PORTS]))


def reachability(stage: Stage) -> tuple[EdgeResult, ...]:
    """Measure every ordered pair of the stage's pods on the probed ports and compare with the verdicts."""
    segments = stage.segments
    ports = probe_ports(stage.cast, segments)
    verdicts = {probe: _verdict(stage.cast, probe, segments) for probe in all_pairs(stage.cast.endpoints, ports)}
    passing = frozenset(p for p, v in verdicts.items() if v.outcome in (Outcome.ALLOWED, Outcome.PROXIED))
    measured = measure(stage.cluster, list(verdicts), expected_open=passing)
    zones = {p.name: stage.cast.spec.zones[p.node] for p in stage.cast.spec.pods}
    results = []
    for probe, verdict in verdicts.items():
        source, destination, port = probe
        reached = measured[probe].reached
        results.append(
            EdgeResult(
                source=source,
                destination=destination,
                port=port,
                zones=(zones[source], zones[destination]),
                judged=verdict.outcome,
                measured=reached.value,
                agrees=agrees(verdict.outcome, reached),
                reason=reason(verdict, stage.cast.endpoints[source], stage.cast.endpoints[destination]),
            )
        )
    return tuple(results)


def agrees(judged: Outcome, reached: Reached) -> bool | None:
    """Whether a connect met what was judged; None for unjudged edges."""
    if judged is Outcome.UNJUDGED:
        return None
    return (reached is Reached.OPEN) == (judged is not Outcome.DENIED)


def _verdict(cast: Cast, probe: Probe, segments: Segments) -> Verdict:
    source, destination, port = probe
    return segments(cast.endpoints[source], cast.endpoints[destination], PortRange(port, port))[0][1]


def reason(verdict: Verdict, source: Endpoint, destination: Endpoint) -> str:
    """The deciding rule of a denial with its place, the missing fact of an unjudged edge; empty when allowed."""
    if verdict.outcome is Outcome.ALLOWED:
        return ""
    if verdict.outcome is not Outcome.DENIED:
        return verdict.reason or verdict.deciding.reason
    side = verdict.deciding
    return why(side, source if side.direction is Direction.EGRESS else destination)


def drop_results(cluster: PocketCluster, stage: Stage) -> tuple[DropResult, ...]:
    """The nft counters of the stage's node namespaces."""
    return tuple(
        DropResult(source=c.source, destination=c.destination, reason=c.reason, packets=c.packets)
        for c in counts(cluster, stage.firewall)
    )
