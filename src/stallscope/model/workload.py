"""
What a training job is, whatever its kind: roles, pods, ranks, and the flows it needs.

Made by `stallscope.load.kinds` (one module a kind) from the controllers' documented behaviour; everything below the edge
works on these types only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from stallscope.model.kube import KubeObject
from stallscope.model.source import Location, Route
from stallscope.model.traffic import Flow


class RoleKind(StrEnum):
    """What a role does in the collective, whatever its kind calls it."""

    COORDINATOR = "coordinator"  # rank 0 / Master / Chief / head: hosts the rendezvous and is a rank
    WORKER = "worker"
    LAUNCHER = "launcher"  # starts the ranks but is none (MPI launcher, Ray submitter)
    SERVER = "server"  # parameter server
    OTHER = "other"  # evaluators, initializers: no rank


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlay:
    """
    A place in the user's own object that is merged over a template others share (a TrainJob's ``runtimePatches`` over a
    TrainingRuntime): the right place for a patch when the template is built in, and the kinder one when it is shared.

    `route` leads to the *pod spec* patch inside `source`, `keys` are the pod spec fields that may stand there. Parts of
    the route may not exist yet: `identities` gives, for the route of each list item on the way, the entries that item
    must be born with (``{"manager": …}``, ``{"name": "node"}``).
    """

    source: KubeObject
    route: Route
    keys: tuple[str, ...]
    identities: Mapping[Route, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PodTemplate:
    """
    A role's pod template as the controller will use it.

    `labels`/`annotations`/`spec` are the effective ones: runtime merged, overrides applied, and what a controller or
    webhook adds that policy or placement can see (default named ports, exclusive affinities); no other defaults.
    `source`/`route` are the object and route of the template to patch; `spec_sources` maps a top-level spec key to
    another place when it came from one (a runtime patch). `patchable` is false when no given file holds it (a built-in
    runtime); `why_not` says so. `overlay` is where the same pod spec can be patched from the user's own object.
    """

    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    spec: Mapping[str, Any] = field(default_factory=dict)
    source: KubeObject
    route: Route
    spec_sources: Mapping[str, tuple[KubeObject, Route]] = field(default_factory=dict)
    patchable: bool = True
    why_not: str = ""
    overlay: Overlay | None = None

    def at(self, *route: str | int, key: bool = True) -> Location:
        """Location of a route below the template (``"spec", "tolerations"``), wherever it really came from."""
        if len(route) > 1 and route[0] == "spec" and route[1] in self.spec_sources:
            source, base = self.spec_sources[str(route[1])]
            return source.at(*base, *route[2:], key=key)
        return self.source.at(*self.route, *route, key=key)


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """
    One role of a job: `replicas` pods made from one template.

    `added_labels` are put on every pod by the controller; per-pod labels are in `Pod.labels`. `creation_order` orders
    roles as the controller creates their pods (equal = together).
    """

    name: str
    kind: RoleKind
    replicas: int
    template: PodTemplate
    ranks_per_pod: int = 1
    added_labels: Mapping[str, str] = field(default_factory=dict)
    creation_order: int = 0
    replicas_route: Route = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """
    One pod as the API server will hold it before binding. `labels` is the union of template, controller and per-pod
    labels. `rank` is the first global rank it hosts (``None``: no rank). `name` may end in ``-*``
    where random (``-*3`` among several, so that names are distinct).
    """

    name: str
    namespace: str
    role: str
    index: int
    labels: Mapping[str, str]
    rank: int | None = None
    host_names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendezvous:
    """Where the ranks meet: `address` as the environment gives it, `port`, and the role and replica that listens."""

    address: str
    port: int
    role: str
    index: int = 0
    backend: str = ""
    location: Location | None = None


class JobService(NamedTuple):
    """A Service the controller creates or the files contain. Matters for DNS names and built-in soft spreading."""

    name: str
    namespace: str
    selector: Mapping[str, str]
    headless: bool = True
    generated: bool = True
    publish_not_ready: bool = True
    ports: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Gang:
    """
    Who starts the pods together, as declared: `system` (``volcano``, ``kueue``, ``coscheduling``, ``kai``, ``native``,
    ``yunikorn``), how many pods at least, and the topology it packs into (`topology_key`, `mode` required/preferred).
    """

    system: str
    min_count: int | None = None
    topology_key: str = ""
    mode: str = ""
    location: Location | None = None


class ExtraObject(NamedTuple):
    """An object the operator would create that policy or placement must see (Volcano's svc NetworkPolicy, …)."""

    body: Mapping[str, Any]
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingJob:
    """
    A job, expanded as its controller would.

    `group_labels` select exactly this job's pods (use in affinities and policies). `notes` say what was assumed
    (defaults, a built-in runtime); `unsupported` names parts not understood, which makes dependent verdicts `unjudged`.
    `copies` counts identical groups that never talk to each other (LeaderWorkerSet replicas): `pods` are those of the
    first. `distributed` is false when no two pods need each other (one pod, a work queue, serving replicas).
    """

    kind: str
    name: str
    namespace: str
    source: KubeObject
    roles: tuple[Role, ...]
    pods: tuple[Pod, ...]
    group_labels: Mapping[str, str] = field(default_factory=dict)
    rendezvous: Rendezvous | None = None
    flows: tuple[Flow, ...] = ()
    services: tuple[JobService, ...] = ()
    scheduler_name: str = "default-scheduler"
    gang: Gang | None = None
    extra_objects: tuple[ExtraObject, ...] = ()
    world_size: int = 0
    distributed: bool = True
    copies: int = 1
    notes: tuple[str, ...] = ()
    unsupported: tuple[str, ...] = ()

    @property
    def ref(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"

    def role(self, name: str) -> Role:
        """The role of that name. Raises KeyError when there is none."""
        for role in self.roles:
            if role.name == name:
                return role
        raise KeyError(name)

    def pods_of(self, role: str) -> tuple[Pod, ...]:
        return tuple(p for p in self.pods if p.role == role)
