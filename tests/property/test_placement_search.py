"""The group judgement against brute force on clusters small enough to enumerate."""

from __future__ import annotations

import sys
from pathlib import Path

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).resolve().parent))

from placement_cases import brute_force, cluster, group

from stallscope.model.topology import Topology
from stallscope.placement.coarse import explore_coarsely
from stallscope.placement.group import PodRequest, judge_group
from stallscope.placement.podspec import compile_pod
from stallscope.placement.pools import make_pools
from stallscope.placement.problem import build_problem
from stallscope.placement.reach import reach
from stallscope.placement.settings import Settings
from stallscope.placement.state import build_cluster
from stallscope.placement.witness import zones_used

CALM = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))


def truth(pods: list[PodRequest], topology: Topology) -> tuple[set[frozenset[str]], set[int]]:
    """Zone sets and numbers of waiting pods of every final state."""
    finals = brute_force(pods, topology)
    assume(finals is not None)
    zone = {n.name: n.zone for n in topology.nodes}
    return {frozenset(zone[h] for h in f if h) for f in finals or ()}, {f.count(None) for f in finals or ()}


@CALM
@given(group(), cluster())
def test_judgement_is_what_enumeration_finds(pods: list[PodRequest], topology: Topology) -> None:
    sets, waiting = truth(pods, topology)
    outcome = judge_group(pods, topology)
    assert outcome.exhaustive
    assert set(outcome.zone_sets) == sets
    assert outcome.may_split == any(len(s) > 1 for s in sets)
    assert outcome.may_start_whole == (0 in waiting)
    assert outcome.must_start_whole == (waiting == {0})


@CALM
@given(group(), cluster())
def test_coarse_search_leaves_nothing_out(pods: list[PodRequest], topology: Topology) -> None:
    sets, waiting = truth(pods, topology)
    problem = build_problem([compile_pod(p.body) for p in pods], build_cluster(topology), Settings())
    found = explore_coarsely(make_pools(problem), 50_000)
    assume(found.complete)
    assert sets <= {f.zones for f in found.finals}
    for count in waiting:
        assert any(f.low <= len(pods) - count <= f.high for f in found.finals)


@CALM
@given(group(), cluster())
def test_witnesses_are_outcomes(pods: list[PodRequest], topology: Topology) -> None:
    finals = brute_force(pods, topology)
    assume(finals is not None)
    outcome = judge_group(pods, topology)
    for placement in (outcome.worst, outcome.locked, outcome.likely):
        if placement is not None:
            assert tuple(placement.nodes[p.name] for p in pods) in (finals or ())


@CALM
@given(group(most=6), cluster(most=7), st.sampled_from([0, 10_000]))
def test_proofs_leave_nothing_out_on_larger_clusters(pods: list[PodRequest], topology: Topology, coarse: int) -> None:
    """The closed form, the coarse search and the bounds against the exact search."""
    names = [p.name for p in pods]
    problem = build_problem([compile_pod(p.body) for p in pods], build_cluster(topology), Settings())
    exact = reach(problem, names, exact=400_000)
    proved = reach(problem, names, exact=0, coarse=coarse)
    assert exact.exhaustive
    assert {e.zones for e in exact.ends} <= {e.zones for e in proved.ends}
    for end in exact.ends:
        assert any(e.zones == end.zones and e.low <= end.low and end.high <= e.high for e in proved.ends)
    assert exact.may_start_whole <= proved.may_start_whole
    assert proved.must_start_whole <= exact.must_start_whole
    seen = {(zones_used(problem, w, names), len(names) - len(w.pending)) for w in proved.witnesses}
    assert seen <= {(e.zones, e.low) for e in exact.ends}
