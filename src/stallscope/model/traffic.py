"""Who talks to whom: ports, the flows a job kind needs, and the verdict about one of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from stallscope.model.source import Location


class Protocol(StrEnum):
    TCP = "TCP"
    UDP = "UDP"
    SCTP = "SCTP"
    ICMP = "ICMP"


#: Linux default net.ipv4.ip_local_port_range: where NCCL and Gloo listen (pytorch#48575, pytorch-operator#191).
EPHEMERAL = (32768, 60999)


@dataclass(frozen=True, slots=True, order=True)
class PortRange:
    """Ports `first`..`last` (both included) of one protocol."""

    first: int
    last: int
    protocol: Protocol = Protocol.TCP

    def __str__(self) -> str:
        ports = str(self.first) if self.first == self.last else f"{self.first}-{self.last}"
        return f"{self.protocol} {ports}"


def port(number: int, protocol: Protocol = Protocol.TCP) -> PortRange:
    """One port as a range."""
    return PortRange(number, number, protocol)


class FlowKind(StrEnum):
    """Why a job needs the connection."""

    RENDEZVOUS = "rendezvous"  # all ranks -> the store of rank 0
    COLLECTIVE = "collective"  # rank <-> rank, any TCP port (ephemeral), both ways
    LAUNCHER = "launcher"  # MPI ssh/exec, Ray GCS, torchrun agents
    SERVICE = "service"  # a port the kind's own components use among themselves
    DNS = "dns"  # pod -> cluster DNS, UDP and TCP 53
    API_SERVER = "api-server"  # pod -> Kubernetes API
    WEBHOOK = "webhook"  # API server -> the operator's admission webhook
    METRICS = "metrics"  # Prometheus -> pod


class Outside(StrEnum):
    """Ends of a flow that are not pods of the job."""

    CLUSTER_DNS = "cluster-dns"
    API_SERVER = "api-server"
    PROMETHEUS = "prometheus"
    OPERATOR = "operator"
    SERVICE = "service"  # a Service of the files that the job names


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """
    One need of a job, role to role (or to something `Outside`).

    `source`/`destination` are role names, or `Outside` members. `destination_index` limits the destination to one
    replica (rank 0 for the rendezvous). `ports` lists what is needed: for `any_port` flows the receiving side listens
    on a port chosen at run time, so *every* port of `ports` must be open, not just one of them.
    """

    kind: FlowKind
    source: str
    destination: str
    ports: tuple[PortRange, ...]
    any_port: bool = False
    destination_index: int | None = None
    reason: str = ""
    required: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """
    One end of a connection as a policy engine sees it.

    A pod has a namespace; `reserved` names Cilium's reserved identities of something that is not a pod (``host``,
    ``remote-node``, ``kube-apiserver``, ``world``…), with `node_labels` for nodes; an outside address has only `ip`.
    `labels` are the pod's labels as they will exist (template + controller + API server), unfiltered.
    """

    name: str
    namespace: str = ""
    labels: tuple[tuple[str, str], ...] = ()
    service_account: str = "default"
    named_ports: tuple[tuple[str, Protocol, int], ...] = ()
    host_network: bool = False
    node: str = ""
    ip: str = ""
    reserved: tuple[str, ...] = ()
    node_labels: tuple[tuple[str, str], ...] = ()
    raw_labels: tuple[str, ...] = ()

    @property
    def is_pod(self) -> bool:
        return bool(self.namespace) and not self.reserved


class PeerEdge(NamedTuple):
    """An ordered pair of endpoints and one port."""

    source: Endpoint
    destination: Endpoint
    port: int
    protocol: Protocol = Protocol.TCP


class Outcome(StrEnum):
    ALLOWED = "allowed"
    DENIED = "denied"
    PROXIED = "proxied"
    UNJUDGED = "unjudged"


class Direction(StrEnum):
    EGRESS = "egress"
    INGRESS = "ingress"


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleRef:
    """
    A policy rule a verdict points at. `policy` is ``Kind namespace/name``; `section` e.g. ``ingress``; `index` within
    the section (-1: the policy as a whole, its selector); `spec` the position in ``specs`` (0 for ``spec``).
    """

    policy: str
    section: str = ""
    index: int = -1
    spec: int = 0
    location: Location = field(default_factory=lambda: Location(file=""))

    def __str__(self) -> str:
        return f"{self.policy} {self.section}[{self.index}]" if self.index >= 0 else self.policy


class NearMiss(NamedTuple):
    """A rule that would have admitted the edge but for one part."""

    rule: RuleRef
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectionVerdict:
    """
    One end's decision.

    `rules`: the deciding rules (allow or deny) as the engine itself would name them. Empty with DENIED = default deny:
    `isolating` says which policies select the endpoint, `nearest` which rules came close. Empty with ALLOWED: nothing
    selects it (or the end is not enforced, `enforced` false). `also`: rules that would decide the same without `rules`.
    """

    outcome: Outcome
    direction: Direction
    rules: tuple[RuleRef, ...] = ()
    also: tuple[RuleRef, ...] = ()
    isolating: tuple[RuleRef, ...] = ()
    nearest: tuple[NearMiss, ...] = ()
    enforced: bool = True
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """
    What happens to one `PeerEdge`: allowed only when the source's egress and the destination's ingress both allow.
    `reason` names the missing fact of an UNJUDGED verdict. `mesh` is what a service mesh over the policies does at the
    destination; None where there is no mesh.
    """

    outcome: Outcome
    egress: DirectionVerdict
    ingress: DirectionVerdict
    reason: str = ""
    mesh: DirectionVerdict | None = None

    @property
    def deciding(self) -> DirectionVerdict:
        """The part that decides: the first that denies, else is unjudged, else proxies, else ingress; policies first."""
        sides = (self.egress, self.ingress) if self.mesh is None else (self.egress, self.ingress, self.mesh)
        for outcome in (Outcome.DENIED, Outcome.UNJUDGED, Outcome.PROXIED):
            for side in sides:
                if side.outcome is outcome:
                    return side
        return self.ingress

    @property
    def by_mesh(self) -> bool:
        """True when the mesh, and no policy, makes it what it is."""
        return self.mesh is not None and self.mesh.outcome is not Outcome.ALLOWED and self.deciding is self.mesh
