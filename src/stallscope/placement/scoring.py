"""
kube-scheduler's scores, as far as nodes and pods determine them: what makes an outcome likely, never what makes it
possible.

Source: kube-scheduler 1.36 plugins noderesources (least_allocated.go, balanced_allocation.go), podtopologyspread
(scoring.go), interpodaffinity (scoring.go), nodeaffinity, tainttoleration; weights of the default profile. ImageLocality
is left out (the images of a job are alike on all its nodes, or on none).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from stallscope.model.topology import Node
from stallscope.placement.amounts import CPU, MEMORY
from stallscope.placement.podspec import PodSpec
from stallscope.placement.state import NodeState
from stallscope.placement.terms import SpreadConstraint

TOP = 100
TAINT_WEIGHT, NODE_AFFINITY_WEIGHT, SPREAD_WEIGHT, POD_AFFINITY_WEIGHT = 3, 2, 2, 2
#: InterPodAffinityArgs.hardPodAffinityWeight: what a *required* term of a bound pod is worth to a pod it matches.
HARD_WEIGHT = 1


def least_allocated(total: tuple[int, int], used: tuple[int, int]) -> int:
    """Mean over cpu and memory of the free share, in whole percent; `used` includes the pod."""
    score = weights = 0
    for have, want in zip(total, used, strict=True):
        if have:
            weights += 1
            score += (have - want) * TOP // have if want <= have else 0
    return score // weights if weights else 0


def balanced_allocation(total: tuple[int, int], used: tuple[int, int]) -> int:
    """100 minus half the distance between the cpu and memory shares; one resource alone is balanced."""
    if not total[0] or not total[1]:
        return TOP
    return int((1 - abs(min(used[0] / total[0], 1.0) - min(used[1] / total[1], 1.0)) / 2) * TOP)


def resource_score(pod: PodSpec, state: NodeState, extra: Sequence[int]) -> int:
    """
    Both resource scores of a node. `extra`: what the job already put there: cpu and memory as requested, then as the
    scores assume them (`PodSpec.scoring`).
    """
    total = (state.total.get(CPU, 0), state.total.get(MEMORY, 0))
    cpu, memory = pod.requests.get(CPU, 0), pod.requests.get(MEMORY, 0)
    assumed, more = state.scoring, pod.scoring
    score = least_allocated(total, (assumed[0] + extra[2] + more[0], assumed[1] + extra[3] + more[1]))
    if cpu or memory:
        used = state.used
        score += balanced_allocation(total, (used.get(CPU, 0) + extra[0] + cpu, used.get(MEMORY, 0) + extra[1] + memory))
    return score


def node_preference(pod: PodSpec, node: Node) -> int:
    """Sum of the weights of preferred node affinity terms that match; an empty preference matches all."""
    total = 0
    for wanted in pod.preferred_nodes:
        empty = not wanted.term.labels and not wanted.term.fields
        if empty or wanted.term.matches(node.labels, node.name):
            total += wanted.weight
    return total


def soft_taints(pod: PodSpec, node: Node) -> int:
    """PreferNoSchedule taints the pod does not tolerate."""
    return sum(
        t.effect == "PreferNoSchedule" and not any(x.tolerates(t) for x in pod.tolerations if x.effect in ("", t.effect))
        for t in node.taints
    )


def spread_share(count: int, constraint: SpreadConstraint, domains: int) -> float:
    """scoreForCount with topologyNormalizingWeight: more matching pods in the domain is worse."""
    return count * math.log(domains + 2) + constraint.max_skew - 1


def normal(raw: Sequence[float], *, reverse: bool = False) -> list[int]:
    """helper.DefaultNormalizeScore: share of the highest, in percent."""
    top = max(raw, default=0)
    if not top:
        return [TOP if reverse else 0] * len(raw)
    return [TOP - int(TOP * r // top) if reverse else int(TOP * r // top) for r in raw]


def normal_spread(raw: Sequence[float]) -> list[int]:
    """PodTopologySpread.NormalizeScore: the fewest pods get 100."""
    whole = [math.floor(r + 0.5) for r in raw]
    top, bottom = max(whole, default=0), min(whole, default=0)
    return [TOP * (top + bottom - w) // top if top else TOP for w in whole]


def normal_affinity(raw: Sequence[float]) -> list[int]:
    """InterPodAffinity.NormalizeScore: between the lowest (0) and the highest (100)."""
    top, bottom = max(raw, default=0), min(raw, default=0)
    return [int(TOP * (r - bottom) / (top - bottom)) if top > bottom else 0 for r in raw]
