"""
What compiled policies are to the rest of the program.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from stallscope.model.kube import KubeObject
from stallscope.model.source import Location
from stallscope.model.traffic import Endpoint, Outcome, PeerEdge, PortRange, Verdict
from stallscope.policy.program import Program


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineOptions:
    """
    Which engine answers. `cni` as in `ClusterFacts` (never empty here). `version` empty = the newest modelled.
    `options` are Cilium agent options by their flag name.
    """

    cni: str = "generic"
    version: tuple[int, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


class Rejected(NamedTuple):
    """An object the agent refuses: it is absent for the engine although the API server accepted it."""

    policy: KubeObject
    reason: str
    location: Location


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicySet:
    """
    Compiled policies. `policies` are those in force, `rejected` those the engine refuses, `ignored` policy objects no
    engine of this cluster enforces, with the reason.
    """

    options: EngineOptions
    policies: tuple[KubeObject, ...] = ()
    rejected: tuple[Rejected, ...] = ()
    ignored: tuple[Rejected, ...] = ()
    program: Program = field(repr=False, compare=False)

    def evaluate(self, edge: PeerEdge) -> Verdict:
        """The verdict of one edge, with provenance."""
        return self.program.evaluate(edge)

    def evaluate_range(
        self, source: Endpoint, destination: Endpoint, ports: PortRange
    ) -> tuple[tuple[PortRange, Verdict], ...]:
        """
        `ports` cut into stretches that share a verdict, in ascending order and without gaps. The cost depends on the number
        of rules, not of ports.
        """
        return self.program.evaluate_range(source, destination, ports)

    def first_denied_port(self, source: Endpoint, destination: Endpoint, ports: PortRange) -> tuple[int, Verdict] | None:
        """The lowest port of `ports` that is not plainly allowed, with its verdict; None when every port is."""
        for stretch, verdict in self.evaluate_range(source, destination, ports):
            if verdict.outcome is not Outcome.ALLOWED:
                return stretch.first, verdict
        return None

    def endpoint_key(self, endpoint: Endpoint) -> tuple[object, ...]:
        """Equal for endpoints that no policy of this set can tell apart: judge one of each class."""
        return self.program.view(endpoint).key

    def selecting(self, edge: PeerEdge) -> tuple[KubeObject, ...]:
        """The policies that select the source or the destination, once each."""
        views = (self.program.view(edge.source), self.program.view(edge.destination))
        return tuple(dict.fromkeys(p for v in views for p in self.program.policies_of(v)))
