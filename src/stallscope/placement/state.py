"""The cluster as the scheduler's snapshot holds it: nodes with what is used on them. Built once, changed by `bind`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from stallscope.model.topology import Node, Topology
from stallscope.placement.amounts import CPU, EPHEMERAL, MEMORY, PODS, whole
from stallscope.placement.holding import Known
from stallscope.placement.podspec import BoundSpec, PodSpec, compile_bound


@dataclass(slots=True, kw_only=True)
class NodeState:
    """One node: `total` and `used` in the scheduler's integers (`amounts.whole`); `pods` sit on it."""

    node: Node
    index: int
    total: Mapping[str, int]
    used: dict[str, int] = field(default_factory=dict)
    scoring: list[int] = field(default_factory=lambda: [0, 0])
    pods: list[BoundSpec] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def labels(self) -> Mapping[str, str]:
        return self.node.labels

    def free(self, resource: str) -> int:
        return self.total.get(resource, 0) - self.used.get(resource, 0)

    def add(self, pod: BoundSpec) -> None:
        for name, amount in pod.requests.items():
            self.used[name] = self.used.get(name, 0) + amount
        self.scoring[0] += pod.scoring[0]
        self.scoring[1] += pod.scoring[1]
        self.pods.append(pod)


@dataclass(slots=True, kw_only=True)
class Cluster:
    """
    Nodes in order, with the pods bound to them. `unstated` are native resources that no node states at all (a kind
    config, hand-written nodes): they are not judged rather than taken as zero. Where a node states how many pods it
    takes, as every kubelet does, what is absent is zero, as it is to the scheduler.
    """

    nodes: list[NodeState]
    namespaces: Mapping[str, Mapping[str, str]]
    unstated: frozenset[str]
    affine: list[tuple[NodeState, BoundSpec]] = field(default_factory=list)
    by_name: dict[str, NodeState] = field(default_factory=dict)

    def labels_of_namespace(self, namespace: str) -> Mapping[str, str]:
        """A namespace's labels; the API server always adds its own name."""
        return {"kubernetes.io/metadata.name": namespace, **self.namespaces.get(namespace, {})}

    def bind(self, pod: PodSpec, node: str) -> None:
        """Put `pod` on `node`. Raises KeyError when there is no such node."""
        self.place(as_bound(pod, node))

    def place(self, pod: BoundSpec) -> None:
        state = self.by_name[pod.home]
        state.add(pod)
        if pod.anti_affinity:
            self.affine.append((state, pod))


def as_bound(pod: PodSpec, node: str) -> BoundSpec:
    """The pod as the snapshot holds it after binding."""
    return BoundSpec(
        name=pod.name,
        namespace=pod.namespace,
        home=node,
        labels=pod.labels,
        requests=pod.requests,
        scoring=pod.scoring,
        ports=pod.ports,
        anti_affinity=pod.anti_affinity,
        preferred=pod.preferred,
        priority=pod.priority,
    )


def build_cluster(topology: Topology) -> Cluster:
    """The snapshot of `topology`. Bound pods on unknown nodes hold nothing."""
    amounts: dict[tuple[str, Fraction], int] = {}
    nodes = [NodeState(node=n, index=i, total=_totals(n, amounts)) for i, n in enumerate(topology.nodes)]
    cluster = Cluster(
        nodes=nodes,
        namespaces=topology.namespaces,
        unstated=_unstated(topology.nodes, capacity_known=topology.capacity_known),
        by_name={n.name: n for n in nodes},
    )
    known: Known = {}
    for pod in topology.bound_pods:
        if pod.node in cluster.by_name:
            where = {"home": pod.node, "namespace": pod.namespace, "name": pod.name}
            cluster.place(compile_bound(pod.body, **where, labels=pod.labels, known=known))
    return cluster


def _totals(node: Node, amounts: dict[tuple[str, Fraction], int]) -> dict[str, int]:
    totals = {}
    for resource, amount in node.allocatable.items():
        key = (resource, amount)
        if key not in amounts:
            amounts[key] = whole(resource, amount)
        totals[resource] = amounts[key]
    return totals


def _unstated(nodes: Iterable[Node], *, capacity_known: bool) -> frozenset[str]:
    native = {CPU, MEMORY, EPHEMERAL, PODS}
    if not capacity_known:
        return frozenset(native | {"*"})
    for node in nodes:
        native -= node.allocatable.keys()
        if not native or PODS not in native:
            return frozenset()
    return frozenset(native)
