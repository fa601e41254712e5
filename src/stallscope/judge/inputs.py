"""What the judgement starts from: everything that was read, and the facts about the cluster that the user stated."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from stallscope.judge.price import PriceFacts
from stallscope.model.kube import KubeObject
from stallscope.model.source import Location
from stallscope.model.topology import Topology
from stallscope.model.workload import TrainingJob


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts:
    """
    What the cluster runs. `cni` is one of ``cilium``, ``calico``, ``ovn``, ``antrea``, ``none``, ``generic`` (Kubernetes
    NetworkPolicy as written); empty = detect from the objects. Versions are ``(1, 19, 4)``; empty = current.
    `cilium_options` are agent options that change verdicts (``enable-policy``, ``enable-host-firewall``, …).
    """

    cni: str = ""
    cni_version: tuple[int, ...] = ()
    kubernetes_version: tuple[int, ...] = (1, 36)
    cilium_options: tuple[tuple[str, str], ...] = ()
    namespace_labels: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = ()


class ProblemKind(StrEnum):
    UNREADABLE = "unreadable"
    UNRENDERED = "unrendered"  # a Helm/Jinja template, not a manifest
    DUPLICATE_KEY = "duplicate-key"
    DUPLICATE_OBJECT = "duplicate-object"
    INVALID = "invalid"  # a known kind with a part nobody can use
    UNSUPPORTED = "unsupported"  # a training kind (or a part of one) that is not understood


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something wrong with the input itself. `message` is one line, `hint` what to do; `minor`: usual, and no warning."""

    kind: ProblemKind
    message: str
    location: Location
    hint: str = ""
    subject: str = ""
    minor: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """All that `analyse` needs. `objects` are all that was read with the jobs; `jobs` their expansion, `names` the files."""

    objects: tuple[KubeObject, ...] = ()
    jobs: tuple[TrainingJob, ...] = ()
    topology: Topology | None = None
    facts: ClusterFacts = field(default_factory=ClusterFacts)
    prices: PriceFacts = field(default_factory=PriceFacts)
    problems: tuple[Problem, ...] = ()
    files: int = 0
    names: tuple[str, ...] = ()
