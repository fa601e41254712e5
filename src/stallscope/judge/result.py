"""The judgement as data: per job, where it may land, who may talk, and the witness of the worst case."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from stallscope.judge.inputs import ClusterFacts, Inputs
from stallscope.judge.price import JobPrice
from stallscope.judge.witness import Witness
from stallscope.model.topology import Topology
from stallscope.model.traffic import Flow, PortRange, Verdict
from stallscope.model.workload import TrainingJob
from stallscope.placement.group import Feasibility, GroupOutcome
from stallscope.policy.engine import PolicySet

if TYPE_CHECKING:
    from stallscope.judge.mesh import Mesh

__all__ = ["Answer", "FlowJudgement", "JobJudgement", "Judgement", "Witness"]


class Answer(StrEnum):
    """Three values: an unknown is never reported as a no."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


class FlowJudgement(NamedTuple):
    """
    One flow between one pair of pods (or classes of pods) under one placement.

    `source`/`destination` are pod names (or an `Outside` value); `port` is the port the verdict is about: for any-port
    flows the first port of the needed range that is not allowed, so that a finding can name a port. `zones` are the
    zones of both ends in that placement, empty where unknown. `pairs` counts the pod pairs that share this verdict.
    """

    flow: Flow
    source: str
    destination: str
    source_role: str
    destination_role: str
    port: PortRange
    verdict: Verdict
    zones: tuple[str, str] = ("", "")
    pairs: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class JobJudgement:
    """
    All that is known about one job.

    `placement` is None without a topology: `can_split` is then about the manifests alone (can the scheduler put two
    ranks in different zones as far as the spec says). `feasible` is per role. `price` models the
    witness. `flows` is the role x role list under the
    witness placement, followed by flows that come out differently in other reachable zones (`FlowJudgement.zones`).
    """

    job: TrainingJob
    can_split: Answer
    why: str = ""
    placement: GroupOutcome | None = None
    feasible: Mapping[str, Feasibility] = field(default_factory=dict)
    witness: Witness | None = None
    flows: tuple[FlowJudgement, ...] = ()
    price: JobPrice | None = None
    caveats: tuple[str, ...] = ()

    def with_outcome(self, *outcomes: str) -> tuple[FlowJudgement, ...]:
        return tuple(f for f in self.flows if f.verdict.outcome in outcomes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """
    The judgement of all jobs of an input. `edges` counts the peer edges judged, for the summary line. `mesh` is the
    service mesh over the policies, None where nothing asks for one.
    """

    inputs: Inputs
    facts: ClusterFacts
    policies: PolicySet
    mesh: Mesh | None = None
    jobs: tuple[JobJudgement, ...] = ()
    topology: Topology | None = None
    edges: int = 0
    unjudged: tuple[str, ...] = field(default=())
