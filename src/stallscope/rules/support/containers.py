"""The containers of a role: which of them run ranks, what they ask for, and where each part is written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from stallscope.model.quantity import parse_quantity
from stallscope.model.source import Location, as_list, as_map, as_str, dig
from stallscope.model.topology import is_accelerator
from stallscope.model.workload import Role, RoleKind, TrainingJob

#: Container names the operators require or document for the container that runs the ranks (placement reference §1).
_RANK_NAMES = frozenset({
    "pytorch", "tensorflow", "xgboost", "paddle", "jax", "mpi", "node", "trainer", "worker", "launcher", "master",
    "ray-worker", "ray-head", "train", "training",
})  # fmt: skip
_NCCL = ("nvidia.com/gpu", "amd.com/gpu")
#: Roles whose pods hold ranks of the collective.
RANKED = frozenset({RoleKind.COORDINATOR, RoleKind.WORKER})


@dataclass(frozen=True, slots=True)
class Container:
    """One container of a role's template. `section` is ``containers`` or ``initContainers``."""

    role: Role
    section: str
    index: int
    body: Mapping[str, Any]

    @property
    def name(self) -> str:
        return as_str(self.body.get("name"))

    def at(self, *route: str | int, key: bool = True) -> Location:
        """Location of a route below this container."""
        return self.role.template.at("spec", self.section, self.index, *route, key=key)

    @property
    def place(self) -> Location:
        """Where a reader looks for this container: its name, or its first line."""
        return self.at("name") if "name" in self.body else self.at()


def containers(role: Role) -> tuple[Container, ...]:
    """The main containers, in order."""
    items = as_list(role.template.spec.get("containers"))
    return tuple(Container(role, "containers", i, c) for i, c in enumerate(items) if isinstance(c, Mapping))


def rank_containers(role: Role) -> tuple[Container, ...]:
    """
    The containers that run ranks: the only one, else those that ask for accelerators, else those with a name an
    operator gives to it, else the first. Sidecars must not be judged as ranks.
    """
    every = containers(role)
    if len(every) <= 1:
        return every
    with_accelerator = tuple(c for c in every if accelerators_of(c.body))
    named = tuple(c for c in every if c.name in _RANK_NAMES)
    return with_accelerator or named or every[:1]


def ranked_roles(job: TrainingJob) -> tuple[Role, ...]:
    """Roles that hold ranks and have at least one pod."""
    return tuple(r for r in job.roles if r.kind in RANKED and r.ranks_per_pod > 0 and r.replicas > 0)


def ranked_pods(job: TrainingJob) -> int:
    """How many pods hold ranks."""
    return sum(r.replicas for r in ranked_roles(job))


def accelerators_of(container: Mapping[str, Any]) -> Fraction:
    """Accelerators one container asks for (limits; requests when it gives no limits)."""
    for section in ("limits", "requests"):
        amounts = as_map(dig(container, "resources", section))
        found = [parse_quantity(v) or Fraction(0) for k, v in amounts.items() if is_accelerator(str(k))]
        if found:
            return sum(found, Fraction(0))
    return Fraction(0)


def gpus_of(container: Mapping[str, Any]) -> Fraction:
    """GPUs driven by NCCL or RCCL that one container asks for; TPUs and other accelerators do not count."""
    for section in ("limits", "requests"):
        amounts = as_map(dig(container, "resources", section))
        found = [parse_quantity(v) or Fraction(0) for k, v in amounts.items() if str(k).startswith(_NCCL)]
        if found:
            return sum(found, Fraction(0))
    return Fraction(0)


def accelerators(role: Role) -> Fraction:
    """Accelerators one pod of the role asks for."""
    return sum((accelerators_of(c.body) for c in containers(role)), Fraction(0))


def accelerator_place(container: Container) -> Location:
    """The line that asks for the accelerator, or the container."""
    for section in ("limits", "requests"):
        for key in as_map(dig(container.body, "resources", section)):
            if is_accelerator(str(key)):
                return container.at("resources", section, str(key))
    return container.place


def declared_ports(role: Role) -> Iterator[tuple[Container, int, Mapping[str, Any]]]:
    """Every container port of the role: container, position, and the port's body."""
    for container in containers(role):
        for i, entry in enumerate(as_list(container.body.get("ports"))):
            if isinstance(entry, Mapping):
                yield container, i, entry


def host_network(role: Role) -> bool:
    """True when the role's pods live in the node's network namespace."""
    return role.template.spec.get("hostNetwork") is True
