"""
The seam of the policy package: objects -> `PolicySet` -> `Verdict` of an edge.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field

from stallscope.model.kube import KubeObject
from stallscope.model.source import Location
from stallscope.model.traffic import Endpoint, PeerEdge, PortRange, RuleRef, Verdict


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """An object the agent refuses: it is absent for the engine although the API server accepted it."""

    policy: KubeObject
    reason: str
    location: Location


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicySet:
    """Compiled policies. `ignored` are policy objects no engine of this cluster enforces, with the reason."""

    options: EngineOptions
    policies: tuple[KubeObject, ...] = ()
    rejected: tuple[Rejected, ...] = ()
    ignored: tuple[Rejected, ...] = ()

    def evaluate(self, edge: PeerEdge) -> Verdict:
        """The verdict of one edge, with provenance."""
        raise NotImplementedError

    def evaluate_range(
        self, source: Endpoint, destination: Endpoint, ports: PortRange
    ) -> tuple[tuple[PortRange, Verdict], ...]:
        """Segments of `ports` with equal outcome and provenance, in order, covering it; one evaluation a segment."""
        raise NotImplementedError

    def endpoint_key(self, endpoint: Endpoint) -> Hashable:
        """Endpoints with equal keys get equal verdicts with everybody (labels no selector mentions do not count)."""
        raise NotImplementedError

    def selecting(self, endpoint: Endpoint) -> tuple[RuleRef, ...]:
        """The policies that select `endpoint` as their subject."""
        raise NotImplementedError


def compile_policies(objects: Iterable[KubeObject], options: EngineOptions) -> PolicySet:
    """Compile every policy object among `objects`; other kinds are skipped."""
    raise NotImplementedError
