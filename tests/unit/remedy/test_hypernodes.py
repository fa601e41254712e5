"""Volcano HyperNodes: tiers inside one zone, and hostile trees."""

from __future__ import annotations

import time
from typing import Any

from stallscope.model.kube import from_body
from stallscope.model.topology import ZONE, Node
from stallscope.remedy.hypernodes import highest_zonal_tier

NODES = [Node(name=f"{z}-{i}", labels={ZONE: z, "rack": f"{z}{i // 2}"}) for z in "ab" for i in range(4)]


def hyper(name: str, tier: Any, *members: Any, **labels: str) -> Any:
    body = {
        "kind": "HyperNode",
        "metadata": {"name": name, "labels": labels},
        "spec": {"tier": tier, "members": list(members)},
    }
    return from_body(body)


def node(**selector: Any) -> dict[str, Any]:
    return {"type": "Node", "selector": selector}


def child(name: str) -> dict[str, Any]:
    return {"type": "HyperNode", "selector": {"exactMatch": {"name": name}}}


def test_all_three_selectors() -> None:
    racks = [hyper(f"rack-{r}", 1, node(labelMatch={"matchLabels": {"rack": r}})) for r in ("a0", "a1", "b0", "b1")]
    zones = [hyper("a", 2, child("rack-a0"), child("rack-a1")), hyper("b", 2, node(regexMatch={"pattern": "^b-"}))]
    assert highest_zonal_tier([*racks, *zones], NODES) == 2
    everything = hyper("all", 3, child("a"), child("b"))
    assert highest_zonal_tier([*racks, *zones, everything], NODES) == 2
    assert highest_zonal_tier([everything, *zones], NODES) is None, "zone a's racks are not in the input"
    assert (
        highest_zonal_tier([hyper("mixed", 1, node(exactMatch={"name": "a-0"}), node(exactMatch={"name": "b-0"}))], NODES)
        is None
    )


def test_a_tier_without_known_nodes_promises_nothing() -> None:
    assert highest_zonal_tier([hyper("a", 1, node(exactMatch={"name": "elsewhere"}))], NODES) is None
    assert highest_zonal_tier([hyper("a", "1", node(exactMatch={"name": "a-0"}))], NODES) is None


def test_cycles_and_hostile_patterns_end_soon() -> None:
    started = time.process_time()
    loop = [hyper("x", 1, child("y")), hyper("y", 1, child("x"))]
    bad = hyper("z", 1, node(regexMatch={"pattern": "(a+)+$"}), node(regexMatch={"pattern": "["}), "text", None)
    assert highest_zonal_tier([*loop, bad], [Node(name="a" * 60 + "!")]) is None
    chain = [hyper(f"c{i}", 1, child(f"c{i + 1}")) for i in range(2000)]
    assert highest_zonal_tier(chain, NODES) is None
    assert time.process_time() - started < 20
