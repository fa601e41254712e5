"""Small clusters and jobs for the placement properties, and an independent brute force over them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

from stallscope.model.topology import HOSTNAME, ZONE, Topology, bound_pods, node_from_body
from stallscope.placement.feasible import feasible
from stallscope.placement.group import PodRequest

Body = dict[str, Any]
#: ``(next pod, pod -> node or None)``: None means it waits; absent means not created yet.
RawState = tuple[int, tuple[str | None, ...]]


@st.composite
def nodes(draw: st.DrawFn, *, most: int = 4) -> list[Body]:
    count = draw(st.integers(1, most))
    return [draw(node(f"n{i}")) for i in range(count)]


@st.composite
def node(draw: st.DrawFn, name: str) -> Body:
    labels = {HOSTNAME: name}
    zone = draw(st.sampled_from(["a", "b", "b", "a", "c", ""]))
    if zone:
        labels[ZONE] = zone
    if draw(st.booleans()):
        labels["rack"] = draw(st.sampled_from(["r1", "r2"]))
    allocatable = {"cpu": str(draw(st.integers(1, 4))), "memory": "8Gi", "pods": draw(st.sampled_from(["110", "110", "2"]))}
    gpus = draw(st.integers(0, 2))
    if gpus:
        allocatable["gpu.example/x"] = str(gpus)
    taints = [{"key": "gpu", "value": "", "effect": "NoSchedule"}] if draw(st.integers(0, 3)) == 0 else []
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": taints, "unschedulable": draw(st.integers(0, 9)) == 0},
        "status": {"allocatable": allocatable},
    }


SELECTORS: list[Body] = [
    {"matchLabels": {"job": "x"}},
    {"matchLabels": {"job": "x", "role": "worker"}},
    {"matchLabels": {"role": "master"}},
    {"matchExpressions": [{"key": "role", "operator": "Exists"}]},
    {"matchExpressions": [{"key": "role", "operator": "NotIn", "values": ["master"]}]},
    {},
]
NAMESPACES: dict[str, dict[str, str]] = {"t": {"team": "x"}, "u": {}}
SCOPES: list[Body] = [
    {"namespaces": ["u"]},
    {"namespaceSelector": {}},
    {"namespaceSelector": {"matchLabels": {"team": "x"}}},
    {"namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["x"]}]}},
    {"matchLabelKeys": ["role"]},
    {"mismatchLabelKeys": ["role"]},
]
KEYS = st.sampled_from([ZONE, ZONE, HOSTNAME, "rack"])
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def affinity_terms() -> st.SearchStrategy[list[Body]]:
    plain = st.fixed_dictionaries({"topologyKey": KEYS, "labelSelector": st.sampled_from(SELECTORS)})
    scoped = st.builds(lambda term, scope: {**term, **scope}, plain, st.sampled_from(SCOPES))
    return st.lists(st.one_of(plain, plain, scoped), min_size=1, max_size=2)


@st.composite
def spread(draw: st.DrawFn) -> Body:
    body: Body = {
        "maxSkew": draw(st.integers(1, 2)),
        "topologyKey": draw(KEYS),
        "whenUnsatisfiable": draw(st.sampled_from(["DoNotSchedule", "DoNotSchedule", "ScheduleAnyway"])),
        "labelSelector": draw(st.sampled_from(SELECTORS)),
    }
    if draw(st.integers(0, 4)) == 0:
        body["minDomains"] = draw(st.integers(1, 3))
    if draw(st.integers(0, 4)) == 0:
        body["matchLabelKeys"] = ["role"]
    if draw(st.booleans()):
        body["nodeTaintsPolicy"] = draw(st.sampled_from(["Honor", "Ignore"]))
    if draw(st.booleans()):
        body["nodeAffinityPolicy"] = draw(st.sampled_from(["Honor", "Ignore"]))
    return body


@st.composite
def spec(draw: st.DrawFn, *, terms: bool = True) -> Body:
    requests = {"cpu": draw(st.sampled_from(["500m", "1", "2"]))}
    if draw(st.booleans()):
        requests["gpu.example/x"] = draw(st.sampled_from(["1", "2"]))
    container: Body = {"name": "c", "resources": {"requests": requests}}
    if draw(st.integers(0, 7)) == 0:
        container["ports"] = [{"containerPort": 80, "hostPort": 80}]
        if draw(st.booleans()):
            container["ports"][0]["hostIP"] = draw(st.sampled_from(["10.0.0.1", "10.0.0.2"]))
    body: Body = {"containers": [container]}
    if draw(st.integers(0, 7)) == 0:
        body["initContainers"] = [{"name": "i", "resources": {"requests": {"cpu": "2"}}}]
    if draw(st.booleans()):
        body["tolerations"] = [{"key": "gpu", "operator": "Exists"}]
    choice = draw(st.integers(0, 9))
    if choice == 0:
        body["nodeSelector"] = {ZONE: draw(st.sampled_from(["a", "b"]))}
    affinity: Body = {}
    if choice == 1:
        values = draw(st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=2, unique=True))
        term: Body = {
            "matchExpressions": [{"key": ZONE, "operator": draw(st.sampled_from(["In", "NotIn"])), "values": values}]
        }
        if draw(st.booleans()):
            name = {"key": "metadata.name", "operator": draw(st.sampled_from(["In", "NotIn"])), "values": ["n0"]}
            term["matchFields"] = [name]
        affinity["nodeAffinity"] = {REQUIRED: {"nodeSelectorTerms": [term]}}
    if terms and draw(st.integers(0, 2)) == 0:
        affinity["podAffinity"] = {REQUIRED: draw(affinity_terms())}
    if terms and draw(st.integers(0, 3)) == 0:
        affinity["podAntiAffinity"] = {REQUIRED: draw(affinity_terms())}
    if affinity:
        body["affinity"] = affinity
    if terms and draw(st.integers(0, 2)) == 0:
        body["topologySpreadConstraints"] = draw(st.lists(spread(), min_size=1, max_size=2))
    return body


def pod(name: str, labels: Body, body: Body, **more: Any) -> Body:
    return {"metadata": {"name": name, "namespace": "t", "labels": labels}, "spec": {**body, **more}}


@st.composite
def group(draw: st.DrawFn, *, most: int = 4, terms: bool = True) -> list[PodRequest]:
    templates = {"worker": draw(spec(terms=terms)), "master": draw(spec(terms=terms))}
    roles = draw(st.lists(st.sampled_from(["worker", "worker", "master"]), min_size=1, max_size=most))
    return [
        PodRequest(name=f"p{i}", klass=r, body=pod(f"p{i}", {"job": "x", "role": r}, templates[r]))
        for i, r in enumerate(roles)
    ]


@st.composite
def cluster(draw: st.DrawFn, *, most: int = 4) -> Topology:
    bodies = draw(nodes(most=most))
    count = draw(st.integers(0, 2))
    bound = []
    for i in range(count):
        labels = draw(st.sampled_from([{"job": "x"}, {"job": "x", "role": "worker"}, {"role": "master"}, {}]))
        home = draw(st.sampled_from(bodies))["metadata"]["name"]
        body: Body = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "500m"}}}]}
        if draw(st.integers(0, 2)) == 0:
            body["affinity"] = {"podAntiAffinity": {REQUIRED: draw(affinity_terms())}}
        old = pod(f"old{i}", labels, body, nodeName=home)
        old["metadata"]["namespace"] = draw(st.sampled_from(["t", "t", "u"]))
        bound.append(old)
    return Topology(nodes=tuple(map(node_from_body, bodies)), bound_pods=bound_pods(bound), namespaces=NAMESPACES)


def brute_force(pods: list[PodRequest], topology: Topology, most: int = 4000) -> list[tuple[str | None, ...]] | None:
    """
    Every final assignment, by trying every choice with the single-pod filters on real nodes; no classes, no symmetry.
    None when there are too many states.
    """
    start: RawState = (0, ())
    seen = {start}
    stack = [start]
    finals = set()
    while stack:
        state = stack.pop()
        following = list(_next(pods, topology, state))
        if not following:
            finals.add(state[1])
        for more in following:
            if more not in seen:
                seen.add(more)
                stack.append(more)
        if len(seen) > most:
            return None
    return sorted(finals, key=str)


def _next(pods: list[PodRequest], topology: Topology, state: RawState) -> Iterator[RawState]:
    position, placed = state
    if position < len(pods):
        homes = _homes(pods, topology, placed, position)
        for home in homes or [None]:
            yield position + 1, (*placed, home)
    for waiting, home in enumerate(placed):
        if home is None:
            for found in _homes(pods, topology, placed, waiting):
                yield position, (*placed[:waiting], found, *placed[waiting + 1 :])


def _homes(pods: list[PodRequest], topology: Topology, placed: tuple[str | None, ...], which: int) -> tuple[str, ...]:
    bodies = [b.body for b in topology.bound_pods]
    bodies += [_bound(pods[i].body, home) for i, home in enumerate(placed) if home is not None]
    filled = Topology(nodes=topology.nodes, bound_pods=bound_pods(bodies), namespaces=topology.namespaces)
    return feasible(pods[which].body, filled).feasible


def _bound(body: Any, home: str) -> Body:
    return {**body, "spec": {**body["spec"], "nodeName": home}}
