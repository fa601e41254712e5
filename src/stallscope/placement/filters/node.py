"""
Filters that look at the node object alone: NodeUnschedulable, NodeName, TaintToleration, NodeAffinity.

Source: kube-scheduler 1.36 plugins nodeunschedulable, nodename, tainttoleration, nodeaffinity.
"""

from __future__ import annotations

from stallscope.model.topology import Node, Taint
from stallscope.placement.filters.base import Refusal
from stallscope.placement.podspec import PodSpec
from stallscope.placement.tolerations import untolerated

UNSCHEDULABLE = Refusal("NodeUnschedulable", ("node(s) were unschedulable",))
WRONG_NAME = Refusal("NodeName", ("node(s) didn't match the requested node name",))
UNTOLERATED = Refusal("TaintToleration", ("node(s) had untolerated taint(s)",))
NO_AFFINITY = Refusal("NodeAffinity", ("node(s) didn't match Pod's node affinity/selector",))
#: Nodes outside the set that NodeAffinity.PreFilter returned are never filtered (schedule_one.go).
NOT_PREFILTERED = Refusal("NodeAffinity", ("node(s) didn't satisfy plugin(s) [NodeAffinity]",))
#: NodeAffinity.PreFilter, when every term names contradicting nodes.
CONFLICT = "pod affinity terms conflict"

_CORDON = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")


def refuse_node(pod: PodSpec, node: Node, *, comparisons: bool = False) -> Refusal | None:
    """The first of the four filters that refuses `node`, or None."""
    if node.unschedulable and not any(t.tolerates(_CORDON, comparisons=comparisons) for t in pod.tolerations):
        return UNSCHEDULABLE
    if pod.node_name and pod.node_name != node.name:
        return WRONG_NAME
    if untolerated(node.taints, pod.tolerations, comparisons=comparisons) is not None:
        return UNTOLERATED
    if not pod.nodes.matches(node.labels, node.name):
        return NO_AFFINITY
    return None
