"""Why pods wait in an outcome: the scheduler's own words at that moment, as ``kubectl describe pod`` would show them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from stallscope.placement.feasible import Feasibility, judge_pod
from stallscope.placement.outcome import Placement
from stallscope.placement.problem import Problem
from stallscope.placement.state import Cluster, NodeState


def why_waiting(problem: Problem, placement: Placement, names: Sequence[str]) -> dict[str, Feasibility]:
    """The first waiting pod of each class, judged against the cluster with the bound pods of `placement` on it."""
    cluster = _copy(problem.cluster, {h for h in placement.nodes.values() if h is not None})
    first: dict[int, str] = {}
    for name, chosen in zip(names, problem.order, strict=True):
        home = placement.nodes[name]
        if home is not None:
            cluster.bind(problem.classes[chosen].spec, home)
        else:
            first.setdefault(chosen, name)
    return {name: judge_pod(problem.classes[c].spec, cluster, problem.settings) for c, name in first.items()}


def _copy(cluster: Cluster, touched: set[str]) -> Cluster:
    """The same snapshot, with own copies of the nodes that will change."""
    nodes = [_copied(n) if n.name in touched else n for n in cluster.nodes]
    by_name = {n.name: n for n in nodes}
    affine = [(by_name[s.name], p) for s, p in cluster.affine]
    return replace(cluster, nodes=nodes, affine=affine, by_name=by_name)


def _copied(state: NodeState) -> NodeState:
    return replace(state, used=dict(state.used), scoring=list(state.scoring), pods=list(state.pods))
