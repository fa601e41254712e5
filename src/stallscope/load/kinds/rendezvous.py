"""Where ranks meet when the job's own command line or environment says so."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from stallscope.load.kinds.flows import is_ranked
from stallscope.load.kinds.launch import Launch
from stallscope.load.kinds.plan import RolePlan
from stallscope.model.workload import JobService, Rendezvous

#: torchrun's and torch.distributed's default (torch.distributed.run: --master-port).
TORCH_PORT = 29500
#: JAX's coordinator on TPU (jax._src.clusters.cloud_tpu_cluster: coordinator_port).
TPU_PORT = 8476
_LOCAL = ("localhost", "127.0.0.1", "0.0.0.0", "::1")  # noqa: S104 (compared, never bound)
#: Pods compared by name; an address of a higher replica is not resolved further than its role.
_COMPARED = 256


class Address(NamedTuple):
    """A meeting point as written: `how` is the flag or variable that gives it. `port` 0: not written."""

    host: str
    port: int
    how: str
    backend: str = ""


def written_address(launch: Launch) -> Address | None:
    """
    The meeting point a pod states, strongest source first: torchrun's flags, its PET_* variables, then the variables of
    ``env://`` initialisation, JAX and XGBoost. ``None``: nothing is written.
    """
    env = launch.env
    backend = launch.flag("rdzv_backend", "rdzv-backend") or env.get("PET_RDZV_BACKEND", "")
    port = _number(launch.flag("master_port", "master-port")) or _number(env.get("PET_MASTER_PORT", ""))
    candidates = (
        ("--rdzv_endpoint", launch.flag("rdzv_endpoint", "rdzv-endpoint"), 0),
        ("--master_addr", launch.flag("master_addr", "master-addr"), port or _number(env.get("MASTER_PORT", ""))),
        ("PET_RDZV_ENDPOINT", env.get("PET_RDZV_ENDPOINT", ""), 0),
        ("PET_MASTER_ADDR", env.get("PET_MASTER_ADDR", ""), port),
        ("MASTER_ADDR", env.get("MASTER_ADDR", ""), _number(env.get("MASTER_PORT", "")) or port),
        ("JAX_COORDINATOR_ADDRESS", env.get("JAX_COORDINATOR_ADDRESS", ""), _number(env.get("JAX_COORDINATOR_PORT", ""))),
        ("COORDINATOR_ADDRESS", env.get("COORDINATOR_ADDRESS", ""), _number(env.get("COORDINATOR_PORT", ""))),
        ("DMLC_TRACKER_URI", env.get("DMLC_TRACKER_URI", ""), _number(env.get("DMLC_TRACKER_PORT", ""))),
    )
    for how, value, number in candidates:
        if value:
            host, _, tail = value.partition(":") if value.count(":") == 1 else (value, "", "")
            return Address(
                host=host, port=_number(tail) or number, how=how, backend=backend if "rdzv" in how.lower() else ""
            )
    if port:
        return Address(host="", port=port, how="--master_port", backend="")
    return None


def _number(text: str) -> int:
    return int(text) if text.isdecimal() and 0 < int(text) < 65536 else 0


class Found(NamedTuple):
    """A rendezvous and what to say about it."""

    rendezvous: Rendezvous | None
    notes: tuple[str, ...] = ()
    unsupported: tuple[str, ...] = ()


def resolve(
    plans: Sequence[RolePlan],
    namespace: str,
    launches: Mapping[str, Launch],
    default: Rendezvous | None,
    services: Iterable[JobService] = (),
) -> Found:
    """
    The rendezvous the ranks will use: the written one where a role writes one (ranks other than the coordinator first: the
    coordinator may say ``localhost``), else `default`.
    """
    ranked = [p for p in plans if is_ranked(p.role)]
    if not ranked:
        return Found(rendezvous=default)
    speakers = [*ranked[1:], ranked[0]]
    written = ((p, written_address(launches.get(p.role.name, Launch()))) for p in speakers)
    plan, address = next(((p, a) for p, a in written if a is not None), (ranked[0], None))
    if address is None:
        return Found(rendezvous=default)
    if not address.host:
        return Found(rendezvous=replace(default, port=address.port) if default else None)
    return _place(address, plan, ranked, plans, namespace, default, services)


def _place(
    address: Address,
    speaker: RolePlan,
    ranked: Sequence[RolePlan],
    plans: Sequence[RolePlan],
    namespace: str,
    default: Rendezvous | None,
    services: Iterable[JobService],
) -> Found:
    number = address.port or (default.port if default else TORCH_PORT)
    where = speaker.role.template.at("spec", "containers")
    base = Rendezvous(address=address.host, port=number, role="", backend=address.backend, location=where)
    if address.host in _LOCAL:
        alone = sum(p.role.replicas for p in ranked) <= 1
        note = f"{address.how} is {address.host}: every pod meets only itself"
        return Found(rendezvous=base, notes=() if alone else (note,))
    hit = _who(address.host, plans, namespace, services)
    if hit is not None:
        return Found(rendezvous=replace(base, role=hit[0], index=hit[1]))
    if "$" in address.host or "{" in address.host:
        assumed = default or replace(base, role=ranked[0].role.name)
        note = f"{address.how} holds a variable; rank 0 ({assumed.role} 0) is assumed to host the rendezvous"
        return Found(rendezvous=replace(assumed, port=address.port or assumed.port), notes=(note,))
    return Found(rendezvous=base, unsupported=(f"rendezvous at {address.host}:{number} ({address.how}), outside the job",))


def _who(host: str, plans: Sequence[RolePlan], namespace: str, services: Iterable[JobService]) -> tuple[str, int] | None:
    wanted = _short(host, namespace)
    for plan in plans:
        for index in range(min(plan.role.replicas, _COMPARED)):
            identity = plan.identify(index)
            names = {_short(n, namespace) for n in identity.host_names} | {identity.name.removesuffix("-*")}
            if wanted in names:
                return plan.role.name, index
    for service in services:
        if service.name == wanted:
            for plan in plans:
                labels = {**plan.role.template.labels, **plan.role.added_labels}
                for index in range(min(plan.role.replicas, _COMPARED)):
                    if service.selector.items() <= {**labels, **plan.identify(index).labels}.items():
                        return plan.role.name, index
    return None


def _short(host: str, namespace: str) -> str:
    """`host` without the parts every pod of the namespace may leave out."""
    name = host.rstrip(".").lower().removesuffix(".cluster.local").removesuffix(".svc")
    return name.removesuffix(f".{namespace}") if name.count(".") else name
