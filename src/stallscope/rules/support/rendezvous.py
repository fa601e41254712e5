"""Where a role's ranks say they meet: flags and variables of torchrun, torch.distributed and their like."""

from __future__ import annotations

import re
from dataclasses import dataclass

from stallscope.model.source import Location
from stallscope.model.workload import Role, TrainingJob
from stallscope.rules.support.containers import Container, declared_ports, rank_containers
from stallscope.rules.support.settings import Setting, flag, has_token, setting

_ENDPOINT_FLAGS = ("--rdzv_endpoint", "--rdzv-endpoint")
_HOST_FLAGS = ("--master_addr", "--master-addr", "--main_process_ip")
_PORT_FLAGS = ("--master_port", "--master-port", "--main_process_port")
_ENDPOINT_VARS = ("PET_RDZV_ENDPOINT",)
_HOST_VARS = ("PET_MASTER_ADDR", "MASTER_ADDR")
_PORT_VARS = ("PET_MASTER_PORT", "MASTER_PORT")
_NODES_FLAGS = ("--nnodes", "--num_machines")


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Host and port as the manifest states them: an empty host or port 0 is not stated."""

    host: str
    port: int
    bare_ipv6: bool = False
    location: Location
    port_location: Location


#: Kinds whose operator writes MASTER_* and PET_* after the user's variables: the kubelet takes the last entry of a name
#: (training-operator v1.9 pkg/controller.v1/pytorch/envvar.go; trainer v2 upserts them).
_OPERATOR_ENV = frozenset({"PyTorchJob", "TrainJob", "PaddleJob", "XGBoostJob", "JAXJob"})


def role_endpoint(job: TrainingJob, role: Role) -> Endpoint | None:
    """The endpoint the role's rank containers state; flags win over variables, as torchrun's argparse has it."""
    for container in rank_containers(role):
        found = _container_endpoint(container, with_variables=job.kind not in _OPERATOR_ENV)
        if found is not None:
            return found
    return None


def rendezvous_place(job: TrainingJob) -> Location | None:
    """
    The line that fixes the rendezvous port: what the hosting role states, else the container port it declares, else its
    rank container (the operator's default port has no line of its own).
    """
    host = job.rendezvous
    role = next((r for r in job.roles if host is not None and r.name == host.role), None)
    if host is None or role is None:
        return host.location if host else None
    stated = role_endpoint(job, role)
    if stated is not None and stated.port:
        return stated.port_location
    for container, index, entry in declared_ports(role):
        if entry.get("containerPort") == host.port:
            return container.at("ports", index, "containerPort")
    return next((c.place for c in rank_containers(role)), host.location)


def single_node(container: Container) -> bool:
    """True when the command line says the launcher joins nobody (``--standalone``, one node)."""
    nodes = flag(container, *_NODES_FLAGS)
    return has_token(container, "--standalone") or (nodes is not None and nodes.value in ("1", "1:1"))


def _container_endpoint(container: Container, *, with_variables: bool) -> Endpoint | None:
    if single_node(container):
        return None

    def stated(flags: tuple[str, ...], variables: tuple[str, ...]) -> Setting | None:
        return flag(container, *flags) or (_variable(container, variables) if with_variables else None)

    whole = stated(_ENDPOINT_FLAGS, _ENDPOINT_VARS)
    if whole is not None:
        host, port = split_host_port(whole.value)
        bare = whole.value.count(":") > 1 and "[" not in whole.value and "//" not in whole.value
        return Endpoint(host=host, port=port, bare_ipv6=bare, location=whole.location, port_location=whole.location)
    host_part, port_part = stated(_HOST_FLAGS, _HOST_VARS), stated(_PORT_FLAGS, _PORT_VARS)
    first = host_part or port_part
    if first is None:
        return None
    number = port_part.value if port_part else ""
    return Endpoint(
        host=host_part.value if host_part else "",
        port=int(number) if number.isascii() and number.isdigit() and len(number) <= 5 else 0,
        location=first.location,
        port_location=port_part.location if port_part else first.location,
    )


def _variable(container: Container, names: tuple[str, ...]) -> Setting | None:
    return next((s for name in names if (s := setting(container, name)) is not None), None)


_HOST_PORT = re.compile(r"^(?:[a-z0-9+]+://)?(\[[^\]]+\]|[^:/\s]+)(?::(\d{1,5}))?(?:[/?].*)?$")


def split_host_port(text: str) -> tuple[str, int]:
    """``host:port``, ``[v6]:port`` or ``tcp://host:port``; an unreadable text gives an empty host and port 0."""
    match = _HOST_PORT.match(text.strip())
    if match is None:
        return "", 0
    host, number = match.groups()
    return host.strip("[]"), int(number) if number else 0
