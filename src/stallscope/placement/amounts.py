"""
Resource amounts as kube-scheduler counts them: whole numbers, CPU in thousandths, everything else in units, rounded up.

Source: kube-scheduler framework.Resource.Add (MilliValue/Value round up); component-helpers resource.PodRequests and
AggregateContainerRequests; core/v1 defaults (SetDefaults_Pod, defaultPodRequests); KEP-753 (sidecars), KEP-2837.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

from stallscope.model.quantity import parse_quantity
from stallscope.model.source import as_list, as_map, dig

Amounts = dict[str, Fraction]

CPU = "cpu"
MEMORY = "memory"
EPHEMERAL = "ephemeral-storage"
PODS = "pods"
NATIVE = frozenset({CPU, MEMORY, EPHEMERAL, PODS})


def whole(resource: str, amount: Fraction) -> int:
    """The scheduler's integer for `amount` of `resource`: CPU in milli-units, others in units, rounded up."""
    scaled = amount * 1000 if resource == CPU else amount
    return -(-scaled.numerator // scaled.denominator)


def is_counted(resource: str) -> bool:
    """
    Whether NodeResourcesFit looks at the resource: cpu, memory, ephemeral-storage, and scalar resources (extended
    resources, huge pages, attachable volumes). Other names are ignored (schedutil.IsScalarResourceName).
    """
    if resource in NATIVE:
        return True
    if resource.startswith(("hugepages-", "attachable-volumes-")):
        return True
    return "/" in resource and not resource.startswith("requests.")


@lru_cache(maxsize=4096)
def _text_amount(value: str) -> Fraction | None:
    return parse_quantity(value)


def amount_of(value: Any) -> Fraction | None:
    """`parse_quantity` with a memory: manifests repeat the same few texts thousands of times."""
    return _text_amount(value) if isinstance(value, str) else parse_quantity(value)


def _listed(value: Any, bad: set[str]) -> Amounts:
    amounts: Amounts = {}
    for name, text in as_map(value).items():
        amount = amount_of(text)
        if amount is None or amount < 0 or not isinstance(name, str):
            bad.add(f"resource amount {name}={text!r}"[:120])
        else:
            amounts[name] = amount
    return amounts


def _container(container: Any, bad: set[str]) -> Amounts:
    """Requests of one container; a limit without a request is the request (SetDefaults_Pod)."""
    resources = as_map(as_map(container).get("resources"))
    requests = _listed(resources.get("requests"), bad)
    limits = _listed(resources.get("limits"), bad) if resources.get("limits") else {}
    return {**limits, **requests}


def _add(into: Amounts, more: Mapping[str, Fraction]) -> None:
    for name, amount in more.items():
        into[name] = into[name] + amount if name in into else amount


def _raise_to(into: Amounts, other: Mapping[str, Fraction]) -> None:
    for name, amount in other.items():
        if name not in into or into[name] < amount:
            into[name] = amount


def _containers_total(containers: Iterable[Amounts], starting: Iterable[tuple[bool, Amounts]]) -> Amounts:
    """Sum of containers and sidecars, or the peak while init containers run, whichever is larger per resource."""
    total: Amounts = {}
    for own in containers:
        _add(total, own)
    sidecars: Amounts = {}
    peak: Amounts = {}
    for stays, own in starting:
        needed = dict(own)
        if stays:
            _add(total, own)
            _add(sidecars, own)
            needed = dict(sidecars)
        else:
            _add(needed, sidecars)
        _raise_to(peak, needed)
    _raise_to(total, peak)
    return total


def _pod_level_supported(name: str) -> bool:
    return name in (CPU, MEMORY) or name.startswith("hugepages-")


def _pod_level(spec: Mapping[str, Any], total: Amounts, bad: set[str]) -> None:
    """Pod-level resources replace the containers' sum (KEP-2837); limits alone become requests where nobody asks."""
    resources = as_map(spec.get("resources"))
    if not resources:
        return
    requests = _listed(resources.get("requests"), bad)
    for name, amount in _listed(resources.get("limits"), bad).items():
        if name not in requests and (name not in total or name.startswith("hugepages-")):
            requests[name] = amount
    total.update({name: amount for name, amount in requests.items() if _pod_level_supported(name)})


#: util.GetNonzeroRequests: what the *scores* assume for a container that asks for nothing (100 mCPU, 200 MB).
DEFAULT_MILLI_CPU = 100
DEFAULT_MEMORY = 200 * 1024 * 1024


class Asked(NamedTuple):
    """
    `requests`: what NodeResourcesFit asks of a node (integers, see `whole`; zero ones are left out, the scheduler never
    fails on them). `scoring`: cpu (milli) and memory (bytes) the scores assume, with defaults for silent containers.
    `unreadable`: amounts nobody can read.
    """

    requests: dict[str, int]
    scoring: tuple[int, int]
    unreadable: tuple[str, ...] = ()


def asked_by(spec: Mapping[str, Any]) -> Asked:
    """The resources of a pod spec."""
    bad: set[str] = set()
    containers = [_container(c, bad) for c in as_list(spec.get("containers"))]
    starting = [(_stays(c), _container(c, bad)) for c in as_list(spec.get("initContainers"))]
    total = _containers_total(containers, starting)
    _pod_level(spec, total, bad)
    if spec.get("overhead"):
        _add(total, _listed(spec.get("overhead"), bad))
    counted = {name: whole(name, amount) for name, amount in total.items() if amount and is_counted(name)}
    counted.pop(PODS, None)
    running = [*containers, *(own for stays, own in starting if stays)]
    return Asked(counted, _assumed(running), tuple(sorted(bad)))


def _stays(container: Any) -> bool:
    """Whether an init container is a sidecar."""
    return as_map(container).get("restartPolicy") == "Always"


def _assumed(running: Iterable[Amounts]) -> tuple[int, int]:
    cpu = memory = 0
    for own in running:
        cpu += whole(CPU, own[CPU]) if CPU in own else DEFAULT_MILLI_CPU
        memory += whole(MEMORY, own[MEMORY]) if MEMORY in own else DEFAULT_MEMORY
    return cpu, memory


def host_ports(spec: Mapping[str, Any]) -> tuple[tuple[str, str, int], ...]:
    """
    ``(ip, protocol, port)`` the pod occupies on its node: hostPorts of containers and sidecars; on the host network every
    container port is one (core/v1 defaultHostNetworkPorts).
    """
    on_host = dig(spec, "hostNetwork") is True
    found: list[tuple[str, str, int]] = []
    for container in _long_running(spec):
        for entry in map(as_map, as_list(as_map(container).get("ports"))):
            port = entry.get("hostPort") or (entry.get("containerPort") if on_host else None)
            if isinstance(port, int) and not isinstance(port, bool) and port > 0:
                protocol = entry.get("protocol") or "TCP"
                address = entry.get("hostIP") or "0.0.0.0"  # noqa: S104 - the API's own word for "any address"
                found.append((str(address), str(protocol), port))
    return tuple(found)


def _long_running(spec: Mapping[str, Any]) -> Iterable[Any]:
    yield from as_list(spec.get("containers"))
    yield from (c for c in as_list(spec.get("initContainers")) if _stays(c))
