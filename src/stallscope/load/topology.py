"""The cluster a job would run on, from what was read: Node objects, bound pods and namespaces, or a kind config."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from stallscope.load.kindcluster import is_kind_cluster, nodes_of_kind
from stallscope.model.kube import KubeObject
from stallscope.model.source import as_str
from stallscope.model.topology import Node, Topology, bound_pods, node_from_body

#: The API server puts this label on every namespace (KEP-2161).
NAMESPACE_NAME = "kubernetes.io/metadata.name"


def topology_from(objects: Iterable[KubeObject]) -> Topology | None:
    """
    The topology among `objects`; None without a node. Node objects count before a kind config (which has labels and taints
    but no capacity). Capacity is known when every node says what it can allocate. `Node.location` is the node's own place.
    """
    objects = tuple(objects)
    bodies = [o for o in objects if o.kind == "Node" and not o.group and o.name]
    if bodies:
        nodes = tuple(node_from_body(o.body, o.at()) for o in bodies)
        known = all(n.allocatable for n in nodes)
        files = [o.file for o in bodies]
    else:
        clusters = [o for o in objects if is_kind_cluster(o)]
        nodes = tuple(n for o in clusters for n in nodes_of_kind(o))
        known = False
        files = [o.file for o in clusters]
    if not nodes:
        return None
    return Topology(
        nodes=nodes,
        bound_pods=bound_pods(o.body for o in objects if o.kind == "Pod" and not o.group),
        namespaces=namespaces_of(objects),
        capacity_known=known,
        source=_source(nodes, files, kind=not bodies),
    )


def namespaces_of(objects: Iterable[KubeObject]) -> Mapping[str, Mapping[str, str]]:
    """The labels of the Namespace objects by name, the one that the API server adds included."""
    return {
        o.name: {NAMESPACE_NAME: o.name, **o.labels} for o in objects if o.kind == "Namespace" and not o.group and o.name
    }


def _source(nodes: tuple[Node, ...], files: list[str], *, kind: bool) -> str:
    count = f"{len(nodes)} node{'' if len(nodes) == 1 else 's'}"
    distinct = list(dict.fromkeys(as_str(f) for f in files if f))
    where = distinct[0] if len(distinct) == 1 else f"{len(distinct)} files"
    return f"{count} of the kind config {where}" if kind else f"{count} from {where}" if distinct else count
