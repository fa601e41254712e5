"""Laws the single-pod and the group judgement must keep, whatever the cluster."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).resolve().parent))

from placement_cases import cluster, group, node, pod, spec

from stallscope.model.topology import HOSTNAME, ZONE, Topology, bound_pods, node_from_body
from stallscope.placement.facts import affinity_facts, affinity_pins_nothing, spread_facts
from stallscope.placement.feasible import feasible
from stallscope.placement.group import PodRequest, judge_group
from stallscope.placement.rooms import zones_that_hold
from stallscope.placement.spec_only import spec_only

CALM = settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
LABELS = st.sampled_from([{"job": "x"}, {"job": "x", "role": "worker"}, {"role": "master"}])


@CALM
@given(spec(terms=False), LABELS, cluster(), st.data())
def test_a_further_node_never_takes_one_away(body: Any, labels: Any, topology: Topology, data: Any) -> None:
    """For pods without terms on others: a node is judged by itself."""
    more = replace(topology, nodes=(*topology.nodes, node_from_body(data.draw(node("extra")))))
    incoming = pod("p", labels, body)
    assert set(feasible(incoming, topology).feasible) <= set(feasible(incoming, more).feasible)


@CALM
@given(spec(), LABELS, cluster())
def test_a_further_toleration_never_takes_a_node_away(body: Any, labels: Any, topology: Topology) -> None:
    """Constraints that honour taints see more domains with more tolerations, so those are left out."""
    spreads = [{k: v for k, v in c.items() if k != "nodeTaintsPolicy"} for c in body.get("topologySpreadConstraints", ())]
    plain = {**body, "topologySpreadConstraints": spreads}
    tolerant = {**plain, "tolerations": [*plain.get("tolerations", ()), {"operator": "Exists"}]}
    before = feasible(pod("p", labels, plain), topology).feasible
    after = feasible(pod("p", labels, tolerant), topology).feasible
    assert set(before) <= set(after)


@CALM
@given(spec(), LABELS, cluster())
def test_each_node_is_feasible_or_has_one_reason(body: Any, labels: Any, topology: Topology) -> None:
    found = feasible(pod("p", labels, body), topology)
    failed = [f.node for f in found.failures]
    assert sorted([*found.feasible, *failed]) == sorted(n.name for n in topology.nodes)
    assert all(f.plugin and f.message for f in found.failures)
    assert (found.message is None) == bool(found.feasible)


def renamed(topology: Topology) -> Topology:
    """Other names for the nodes, in reverse order: what a scheduler may not see."""
    nodes = tuple(
        replace(n, name=f"x-{n.name}", labels={**n.labels, HOSTNAME: f"x-{n.name}"}) for n in reversed(topology.nodes)
    )
    bodies = [{**b.body, "spec": {**b.body["spec"], "nodeName": f"x-{b.node}"}} for b in topology.bound_pods]
    return replace(topology, nodes=nodes, bound_pods=bound_pods(bodies))


@CALM
@given(group(), cluster())
def test_names_and_order_of_nodes_do_not_matter(pods: list[PodRequest], topology: Topology) -> None:
    ours, theirs = judge_group(pods, topology), judge_group(pods, renamed(topology))
    assert ours.zone_sets == theirs.zone_sets
    assert ours.must_start_whole == theirs.must_start_whole
    assert ours.may_start_whole == theirs.may_start_whole
    one = pods[0].body
    assert [f"x-{n}" for n in feasible(one, topology).feasible] == list(feasible(one, renamed(topology)).feasible)


@CALM
@given(group(), cluster(), st.sampled_from(["a", "b"]))
def test_a_hard_pin_holds(pods: list[PodRequest], topology: Topology, zone: str) -> None:
    pinned = [p._replace(body={**p.body, "spec": {**p.body["spec"], "nodeSelector": {ZONE: zone}}}) for p in pods]
    outcome = judge_group(pinned, topology)
    assert all(s <= {zone} for s in outcome.zone_sets)
    assert not outcome.may_split
    assert spec_only(pinned).can_split != "yes"


@CALM
@given(group(), cluster())
def test_no_split_from_the_specs_alone_means_none_on_a_fresh_cluster(pods: list[PodRequest], topology: Topology) -> None:
    if spec_only(pods).can_split == "no":
        assert not judge_group(pods, replace(topology, bound_pods=())).may_split


JUNK: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=True) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
FIELDS = [
    ("affinity",),
    ("affinity", "podAffinity", "requiredDuringSchedulingIgnoredDuringExecution"),
    ("affinity", "podAntiAffinity", "requiredDuringSchedulingIgnoredDuringExecution", 0),
    ("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"),
    ("affinity", "podAffinity", "preferredDuringSchedulingIgnoredDuringExecution", 0, "podAffinityTerm"),
    ("topologySpreadConstraints",),
    ("topologySpreadConstraints", 0, "labelSelector"),
    ("topologySpreadConstraints", 0, "maxSkew"),
    ("topologySpreadConstraints", 0, "matchLabelKeys"),
    ("tolerations",),
    ("tolerations", 0, "key"),
    ("nodeSelector",),
    ("containers",),
    ("containers", 0, "resources"),
    ("containers", 0, "resources", "requests"),
    ("containers", 0, "ports"),
    ("initContainers",),
    ("resources",),
    ("overhead",),
    ("volumes",),
    ("schedulingGates",),
    ("priority",),
    ("nodeName",),
]


def planted(tree: Any, route: tuple[Any, ...], value: Any) -> Any:
    """`tree` with `value` at `route`, containers made where they are missing or of another type."""
    if not route:
        return value
    step, rest = route[0], route[1:]
    if isinstance(step, int):
        return [planted(None, rest, value)]
    inner = tree if isinstance(tree, dict) else {}
    return {**inner, step: planted(inner.get(step), rest, value)}


@CALM
@given(group(), cluster(), st.sampled_from(FIELDS), JUNK, JUNK)
def test_no_manifest_makes_it_raise(
    pods: list[PodRequest], topology: Topology, field: tuple[Any, ...], junk: Any, labels: Any
) -> None:
    broken = [
        p._replace(body={"metadata": {"name": p.name, "labels": labels}, "spec": planted(p.body["spec"], field, junk)})
        for p in pods
    ]
    odd = Topology(
        nodes=(
            *topology.nodes,
            node_from_body({"metadata": junk, "spec": {"taints": junk}, "status": {"allocatable": junk}}),
        ),
        bound_pods=bound_pods([{"metadata": labels, "spec": {**planted({}, field, junk), "nodeName": "n0"}}]),
    )
    judge_group(broken, odd)
    zones_that_hold(broken, odd)
    spec_only(broken)
    spread_facts(broken, odd)
    affinity_facts(broken, odd)
    affinity_pins_nothing(broken)
    for whole in (junk, {"spec": junk}, {"metadata": junk}):
        if isinstance(whole, dict):
            judge_group([PodRequest(name="p", body=whole)], odd)
            feasible(whole, odd)
