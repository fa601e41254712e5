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
from stallscope.model.source import as_list, as_map, as_str, dig

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
    return _stored(parse_quantity(value))


def _stored(amount: Fraction | None) -> Fraction | None:
    """The API server rounds every amount up to thousandths before anybody adds them (SetDefaults_ResourceList)."""
    if amount is None or 1000 % amount.denominator == 0:
        return amount
    return Fraction(-(-amount.numerator * 1000 // amount.denominator), 1000)


def amount_of(value: Any) -> Fraction | None:
    """`parse_quantity` as stored, with a memory: manifests repeat the same few texts thousands of times."""
    return _text_amount(value) if isinstance(value, str) else _stored(parse_quantity(value))


def _listed(value: Any, bad: set[str]) -> Amounts:
    amounts: Amounts = {}
    for name, text in as_map(value).items():
        amount = amount_of(text)
        if amount is None or amount < 0 or not isinstance(name, str):
            bad.add(f"resource amount {name}={text!r}"[:120])
        else:
            amounts[name] = amount
    return amounts


def _container(container: Any, bad: set[str], resizing: Mapping[str, Resizing] | None = None) -> Amounts:
    """Requests of one container; a limit without a request is the request (SetDefaults_Pod)."""
    resources = as_map(as_map(container).get("resources"))
    requests = _listed(resources.get("requests"), bad)
    limits = _listed(resources.get("limits"), bad) if resources.get("limits") else {}
    own = {**limits, **requests}
    found = resizing.get(as_str(as_map(container).get("name"))) if resizing else None
    return own if found is None else found.in_force(own)


class Resizing(NamedTuple):
    """What a running container, or pod, has been given so far, and whether its node will never grant what it asks for."""

    given: Amounts
    infeasible: bool

    def in_force(self, wanted: Amounts) -> Amounts:
        """The largest of what is asked for and what is given; the latter alone when the resize cannot be granted."""
        total = dict(self.given)
        if not self.infeasible:
            _raise_to(total, wanted)
        return total


def resizings(status: Mapping[str, Any]) -> dict[str, Resizing]:
    """
    By container name, for a bound pod: resources a resize in place has not taken away yet still hold their room (KEP-1287;
    component-helpers resource determineEffectiveRequests). The key "" is the pod itself (pod-level resources, 1.36).
    """
    pending = [c for c in map(as_map, as_list(status.get("conditions"))) if c.get("type") == "PodResizePending"]
    infeasible = bool(pending) and pending[0].get("reason") == "Infeasible"
    found = {}
    for item in (status, *as_list(status.get("containerStatuses")), *as_list(status.get("initContainerStatuses"))):
        body = as_map(item)
        if isinstance(body.get("resources"), Mapping):
            given = _listed(dig(body, "resources", "requests"), set())
            _raise_to(given, _listed(body.get("allocatedResources"), set()))
            found["" if item is status else as_str(body.get("name"))] = Resizing(given, infeasible)
    return found


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


def _pod_level(spec: Mapping[str, Any], total: Amounts, bad: set[str], live: Resizing | None = None) -> Amounts:
    """
    Pod-level requests, which replace what the containers ask for, `total` (KEP-2837). Where there are pod-level limits,
    what is missing is taken from the containers, else from the limits (v1 defaults.go defaultPodRequests).
    """
    resources = as_map(spec.get("resources"))
    if not resources:
        return {}
    requests, limits = _listed(resources.get("requests"), bad), _listed(resources.get("limits"), bad)
    if requests or limits:  # huge pages of the containers become a pod-level limit (defaultHugePagePodLimits)
        limits |= {n: a for n, a in total.items() if n.startswith("hugepages-") and n not in {**limits, **requests}}
    asked = {name: total[name] for name in (CPU, MEMORY) if limits and name in total}
    requests = {n: a for n, a in {**limits, **asked, **requests}.items() if _pod_level_supported(n)}
    if live is None:
        return requests
    given = live.in_force(requests)
    return {name: given.get(name, Fraction(0)) for name in requests}


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


def asked_by(spec: Mapping[str, Any], status: Mapping[str, Any] | None = None) -> Asked:
    """The resources of a pod spec; with `status`, those a bound pod holds while it is resized in place."""
    bad: set[str] = set()
    live = resizings(status) if status else {}
    containers, starting = _containers(spec, bad, live)
    total = _containers_total(containers, starting)
    asked = _containers_total(*_containers(spec, bad, {})) if live and spec.get("resources") else total
    fixed = _pod_level(spec, asked, bad, live.get(""))
    overhead = _listed(spec.get("overhead"), bad) if spec.get("overhead") else {}
    silent = any(r not in own for own in (*containers, *(o for _, o in starting)) for r in (CPU, MEMORY))
    scored = _containers_total(map(_assumed, containers), ((s, _assumed(o)) for s, o in starting)) if silent else dict(total)
    for amounts in (total, scored):
        amounts.update(fixed)
        _add(amounts, overhead)
    counted = {name: whole(name, amount) for name, amount in total.items() if amount and is_counted(name)}
    counted.pop(PODS, None)
    scoring = (whole(CPU, scored.get(CPU, Fraction(0))), whole(MEMORY, scored.get(MEMORY, Fraction(0))))
    return Asked(counted, scoring, tuple(sorted(bad)))


def _containers(
    spec: Mapping[str, Any], bad: set[str], live: Mapping[str, Resizing]
) -> tuple[list[Amounts], list[tuple[bool, Amounts]]]:
    """What each container asks for, and each init container, with whether it is a sidecar."""
    main = [_container(c, bad, live) for c in as_list(spec.get("containers"))]
    first = [(_stays(c), _container(c, bad, live if _stays(c) else None)) for c in as_list(spec.get("initContainers"))]
    return main, first


def _stays(container: Any) -> bool:
    """Whether an init container is a sidecar."""
    return as_map(container).get("restartPolicy") == "Always"


def _assumed(own: Amounts) -> Amounts:
    """Of each container, init containers too (PodResourcesOptions.NonMissingContainerRequests)."""
    return {CPU: Fraction(DEFAULT_MILLI_CPU, 1000), MEMORY: Fraction(DEFAULT_MEMORY), **own}


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
