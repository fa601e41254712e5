"""
The seam of the policy package: objects -> `PolicySet` -> `Verdict` of an edge.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from stallscope.model.kube import KubeObject
from stallscope.model.source import Location
from stallscope.model.traffic import PeerEdge, Verdict


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

    def selecting(self, edge: PeerEdge) -> tuple[KubeObject, ...]:
        raise NotImplementedError


def compile_policies(objects: Iterable[KubeObject], options: EngineOptions) -> PolicySet:
    """Compile every policy object among `objects`; other kinds are skipped."""
    raise NotImplementedError
