"""The connections a job needs, made from its roles. Reasons are what a report prints, so they are whole sentences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from stallscope.model.source import as_list, dig
from stallscope.model.traffic import EPHEMERAL, Flow, FlowKind, Outside, PortRange, Protocol, port
from stallscope.model.workload import Rendezvous, Role, RoleKind

#: Roles whose pods are ranks. Parameter servers are listed with them: their clients are ranks.
RANKED = (RoleKind.COORDINATOR, RoleKind.WORKER)

_ANY_PORT = (PortRange(*EPHEMERAL),)
_WORDS = ("metrics", "prometheus", "prom")


def is_ranked(role: Role) -> bool:
    return role.kind in RANKED and role.ranks_per_pod > 0 and role.replicas > 0


def collective(roles: Iterable[Role], reason: str = "") -> tuple[Flow, ...]:
    """
    Every rank (and parameter server) to every other on a port chosen at run time, both ways, the rendezvous host included.

    NCCL and Gloo listen on ephemeral ports (pytorch#48575, pytorch-operator#191; NCCL bootstrap net, Gloo tcp pair), so
    opening the rendezvous port alone leaves the job running and the first collective hanging.
    """
    ranked = [r for r in roles if is_ranked(r) or (r.kind is RoleKind.SERVER and r.replicas > 0)]
    why = reason or "ranks connect to each other on ports chosen at run time (NCCL and Gloo bootstrap and data)"
    return tuple(
        Flow(
            kind=FlowKind.COLLECTIVE,
            source=a.name,
            destination=b.name,
            ports=_ANY_PORT,
            any_port=True,
            reason=why,
        )
        for a in ranked
        for b in ranked
        if a is not b or a.replicas > 1
    )


def any_port(source: str, destination: str, reason: str, kind: FlowKind = FlowKind.LAUNCHER) -> Flow:
    """One direction on ports chosen at run time."""
    return Flow(kind=kind, source=source, destination=destination, ports=_ANY_PORT, any_port=True, reason=reason)


def service(source: str, destination: str, number: int, reason: str, **more: object) -> Flow:
    """One direction on one TCP port among the kind's own components."""
    kind = FlowKind(str(more.pop("kind", FlowKind.SERVICE)))
    index = more.pop("index", None)
    required = bool(more.pop("required", True))
    return Flow(
        kind=kind,
        source=source,
        destination=destination,
        ports=(port(number),),
        destination_index=index if isinstance(index, int) else None,
        reason=reason,
        required=required,
    )


def all_pairs(roles: Sequence[Role], number: int, reason: str, kind: FlowKind = FlowKind.SERVICE) -> tuple[Flow, ...]:
    """Every pod of `roles` to every other on one TCP port."""
    present = [r for r in roles if r.replicas > 0]
    return tuple(
        service(a.name, b.name, number, reason, kind=kind) for a in present for b in present if a is not b or a.replicas > 1
    )


def to_rendezvous(roles: Iterable[Role], rendezvous: Rendezvous | None, reason: str = "") -> tuple[Flow, ...]:
    """Every rank to the port where they meet. Nothing when they meet outside the job or the place is unknown."""
    if rendezvous is None or not rendezvous.role:
        return ()
    why = reason or f"every rank opens the store at {rendezvous.address}:{rendezvous.port} before the first collective"
    return tuple(
        service(r.name, rendezvous.role, rendezvous.port, why, kind=FlowKind.RENDEZVOUS, index=rendezvous.index)
        for r in roles
        if is_ranked(r) and (r.name != rendezvous.role or r.replicas > 1)
    )


def dns(roles: Iterable[Role]) -> tuple[Flow, ...]:
    """
    Name look-ups. UDP is what resolvers use; TCP is the fallback for answers too long for UDP (headless Services with
    many pods), so it is not required by itself.
    """
    names = [r.name for r in roles if r.replicas > 0]
    udp = "peers are addressed by name"
    tcp = "answers too long for UDP (headless Services with many pods) are asked again over TCP"
    return tuple(
        Flow(
            kind=FlowKind.DNS,
            source=name,
            destination=Outside.CLUSTER_DNS,
            ports=(port(53, protocol),),
            reason=why,
            required=protocol is Protocol.UDP,
        )
        for name in names
        for protocol, why in ((Protocol.UDP, udp), (Protocol.TCP, tcp))
    )


def api_server(role: str, reason: str) -> Flow:
    """
    A pod to the Kubernetes API. Policies judge the address behind the Service (after translation): 443 on EKS, GKE and
    AKS, 6443 with kubeadm and kind; 443 is what people write.
    """
    return Flow(
        kind=FlowKind.API_SERVER,
        source=role,
        destination=Outside.API_SERVER,
        ports=(port(443),),
        reason=f"{reason} (443; the address behind it listens on 6443 with kubeadm and kind)",
    )


def webhook(operator: str, number: int = 9443) -> Flow:
    """The API server to the operator's admission webhook: without it no job of the kind can be created."""
    return Flow(
        kind=FlowKind.WEBHOOK,
        source=Outside.API_SERVER,
        destination=Outside.OPERATOR,
        ports=(port(number),),
        reason=f"the API server asks {operator} to admit the job",
        required=False,
    )


def metrics(roles: Iterable[Role]) -> tuple[Flow, ...]:
    """Prometheus to each declared metrics port: a container port so named, or the ``prometheus.io/port`` annotation."""
    return tuple(
        Flow(
            kind=FlowKind.METRICS,
            source=Outside.PROMETHEUS,
            destination=role.name,
            ports=(port(number),),
            reason=f"Prometheus scrapes the declared metrics port {number}",
            required=False,
        )
        for role in roles
        if role.replicas > 0
        for number in metrics_ports(role)
    )


def metrics_ports(role: Role) -> tuple[int, ...]:
    """Declared metrics ports of a role, in order, without repetition."""
    found: dict[int, None] = {}
    containers = (*as_list(role.template.spec.get("containers")), *as_list(role.template.spec.get("initContainers")))
    for entry in (p for c in containers for p in as_list(dig(c, "ports"))):
        name, number = dig(entry, "name"), dig(entry, "containerPort")
        if isinstance(name, str) and isinstance(number, int) and any(w in name for w in _WORDS) and 0 < number < 65536:
            found[number] = None
    notes = role.template.annotations
    if notes.get("prometheus.io/scrape") == "true" and notes.get("prometheus.io/port", "").isdecimal():
        number = int(notes["prometheus.io/port"])
        if 0 < number < 65536:
            found[number] = None
    return tuple(found)
