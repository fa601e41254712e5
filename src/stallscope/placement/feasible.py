"""
Which nodes can take a pod, and why the others cannot: kube-scheduler's filters in order, its words, its summary.

Source: kube-scheduler 1.36 schedule_one.go (findNodesThatFitPod), framework.FitError, preemption.Evaluator,
default plugin order (apis/config/v1/default_plugins.go).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from stallscope.model.topology import Topology
from stallscope.placement.filters.base import Refusal
from stallscope.placement.filters.interpod import interpod_state, refuse_interpod
from stallscope.placement.filters.node import CONFLICT, NOT_PREFILTERED, refuse_node
from stallscope.placement.filters.ports import TAKEN, ports_conflict
from stallscope.placement.filters.resources import is_judged, refuse_resources
from stallscope.placement.filters.spread import refuse_spread, spread_state
from stallscope.placement.filters.volumes import refuse_volumes, volume_state
from stallscope.placement.podspec import PodSpec, compile_pod
from stallscope.placement.settings import DEFAULT_SETTINGS, Settings, spread_of
from stallscope.placement.snapshot import snapshot_of
from stallscope.placement.state import Cluster

GATED = "Scheduling is blocked due to non-empty scheduling gates"
NOT_HELPFUL = "Preemption is not helpful for scheduling"
#: DynamicResources.PostFilter, the first to run, misses what its PreFilter would have left (CycleState ErrNotFound).
NO_STATE = "not found"
NO_VICTIMS = "No preemption victims found for incoming pod"


class NodeFailure(NamedTuple):
    """Why a node cannot take a pod: the first failing filter and the scheduler's words (`reasons` one by one)."""

    node: str
    plugin: str
    message: str
    reasons: tuple[str, ...] = ()
    resolvable: bool = False


class Feasibility(NamedTuple):
    """
    `feasible` node names (sorted) and one failure for each other node; `unjudged` names constructs not modelled.
    `gates` keep the pod from being looked at; `prefilter` is set when the scheduler gives up before looking at nodes.
    """

    feasible: tuple[str, ...]
    failures: tuple[NodeFailure, ...] = ()
    unjudged: tuple[str, ...] = ()
    gates: tuple[str, ...] = ()
    prefilter: str = ""
    may_preempt: bool = True

    @property
    def message(self) -> str | None:
        """kube-scheduler's own summary when nothing is feasible, else None."""
        if self.gates:
            return GATED
        if self.feasible:
            return None
        total = len(self.failures)
        head = f"0/{total} nodes are available:"
        if not total:
            return "no nodes available to schedule pods"
        if self.prefilter:
            return f"{head} {self.prefilter}. {NO_STATE}"
        return f"{head} {_histogram(self._reasons())}. no new claims to deallocate, preemption: {self._preemption(head)}"

    def _reasons(self) -> Counter[str]:
        return Counter(reason for f in self.failures for reason in (f.reasons or (f.message,)))

    def _preemption(self, head: str) -> str:
        """Nobody is evicted (pods of one priority): nodes where evicting might have helped are counted apart."""
        if not self.may_preempt:
            return "not eligible due to preemptionPolicy=Never."
        helped = sum(f.resolvable for f in self.failures)
        counts = Counter({NO_VICTIMS: helped, NOT_HELPFUL: len(self.failures) - helped})
        return f"{head} {_histogram(counts)}."


def _histogram(counts: Mapping[str, int]) -> str:
    """``N reason`` texts sorted as text, hence ``10 x`` before ``2 y`` (FitError.Error)."""
    return ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items() if count))


def feasible(pod_body: Mapping[str, Any], topology: Topology, settings: Settings = DEFAULT_SETTINGS) -> Feasibility:
    """The nodes of `topology` that can take the pod now, and the first failing filter of each other node."""
    return judge_pod(compile_pod(pod_body), snapshot_of(topology), settings)


def judge_pod(pod: PodSpec, cluster: Cluster, settings: Settings = DEFAULT_SETTINGS) -> Feasibility:
    """`feasible` on compiled values."""
    if pod.gates:
        return Feasibility(feasible=(), gates=pod.gates, unjudged=pod.unjudged)
    pinned = pod.nodes.pinned_names()
    conflict = CONFLICT if pinned is not None and not pinned else ""
    good: list[str] = []
    failures: list[NodeFailure] = []
    volumes = volume_state(pod, settings)
    if conflict:
        refused = Refusal("NodeAffinity", (conflict,))
        failures = [_failure(n.name, refused) for n in cluster.nodes]
    else:
        judge = _filters(pod, cluster, settings, pinned)
        for index, state in enumerate(cluster.nodes):
            refusal = judge(index)
            if refusal is None:
                good.append(state.name)
            else:
                failures.append(_failure(state.name, refusal))
    return Feasibility(
        feasible=tuple(sorted(good)),
        failures=tuple(failures),
        unjudged=pod.unjudged + tuple(volumes.unjudged) + unjudged_resources(pod, cluster),
        prefilter=conflict,
        may_preempt=pod.may_preempt,
    )


def _filters(pod: PodSpec, cluster: Cluster, settings: Settings, pinned: frozenset[str] | None) -> Any:
    spread = spread_state(pod, spread_of(pod, settings), cluster.nodes, comparisons=settings.comparisons)
    interpod = interpod_state(pod, cluster)
    volumes = volume_state(pod, settings)

    def judge(index: int) -> Refusal | None:
        state = cluster.nodes[index]
        node = state.node
        if pinned is not None and node.name not in pinned:
            return NOT_PREFILTERED
        refusal = refuse_node(pod, node, comparisons=settings.comparisons)
        if refusal is None and pod.ports and ports_conflict(pod.ports, (p for b in state.pods for p in b.ports)):
            refusal = TAKEN
        return (
            refusal
            or refuse_resources(pod.requests, state, cluster.unstated)
            or refuse_volumes(volumes, node)
            or refuse_spread(spread, node)
            or refuse_interpod(interpod, node)
        )

    return judge


def _failure(node: str, refusal: Refusal) -> NodeFailure:
    return NodeFailure(
        node=node, plugin=refusal.plugin, message=refusal.message, reasons=refusal.reasons, resolvable=refusal.resolvable
    )


def unjudged_resources(pod: PodSpec, cluster: Cluster) -> tuple[str, ...]:
    """Requests that no node answers because none states the resource at all."""
    missing = [r for r in pod.requests if not is_judged(r, cluster.unstated)]
    return tuple(f"{r} (no node states its allocatable {r})" for r in sorted(missing))


def first_failures_summary(found: Feasibility) -> str:
    """The first failing filters as the scheduler counts them: ``2 Insufficient cpu, 3 node(s) had untolerated taint(s)``."""
    return _histogram(Counter(reason for f in found.failures for reason in (f.reasons or (f.message,))))


def feasible_by_class(
    pods: Iterable[tuple[str, Mapping[str, Any]]], topology: Topology, settings: Settings = DEFAULT_SETTINGS
) -> dict[str, Feasibility]:
    """`feasible` for the first pod of each class, given as ``(class, body)``; the snapshot is built once."""
    cluster = snapshot_of(topology)
    found: dict[str, Feasibility] = {}
    for klass, body in pods:
        if klass not in found:
            found[klass] = judge_pod(compile_pod(body), cluster, settings)
    return found
