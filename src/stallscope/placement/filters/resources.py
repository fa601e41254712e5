"""NodeResourcesFit. Source: kube-scheduler 1.36 plugin noderesources/fit.go (fitsRequest)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from stallscope.placement.amounts import CPU, EPHEMERAL, MEMORY, PODS
from stallscope.placement.filters.base import Refusal
from stallscope.placement.state import NodeState

_FIRST = (CPU, MEMORY, EPHEMERAL)


def ordered(requests: Mapping[str, int]) -> list[str]:
    """cpu, memory, ephemeral-storage, then the rest: the order in which reasons are collected."""
    return [r for r in _FIRST if r in requests] + sorted(r for r in requests if r not in _FIRST)


def is_judged(resource: str, unstated: Iterable[str]) -> bool:
    """False for a native resource no node states, and for all of them when no capacity is known at all."""
    return resource not in unstated and "*" not in unstated


def refuse_resources(
    requests: Mapping[str, int], state: NodeState, unstated: frozenset[str] = frozenset()
) -> Refusal | None:
    """
    Every resource that is short, in the scheduler's words. A request above the node's whole allocatable cannot be
    resolved by evicting pods.
    """
    reasons = []
    resolvable = True
    if is_judged(PODS, unstated) and len(state.pods) + 1 > state.total.get(PODS, 0):
        reasons.append("Too many pods")
    for resource in ordered(requests):
        if not is_judged(resource, unstated):
            continue
        wanted = requests[resource]
        if wanted > state.free(resource):
            reasons.append(f"Insufficient {resource}")
            resolvable = resolvable and wanted <= state.total.get(resource, 0)
    return Refusal("NodeResourcesFit", tuple(reasons), resolvable=resolvable) if reasons else None
