"""
Verdicts against real packets: for every ordered pair and port of each scenario, a TCP connect agrees with the verdict.

Many scenarios share one cluster as "cells" whose pods only probe each other, and rulesets are swapped atomically, so a
round of scenarios costs one connect timeout.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from stallscope.errors import LabError
from stallscope.lab.firewall import Drop, counts, drops_of, install
from stallscope.lab.netns import PocketCluster, build
from stallscope.lab.reach import Reached, measure
from stallscope.lab.topology import LabPod, LabSpec
from stallscope.model.kube import from_body
from stallscope.model.traffic import Direction, Endpoint, Outcome, PortRange, Protocol
from stallscope.policy.engine import EngineOptions, PolicySet, compile_policies

pytestmark = [pytest.mark.root, pytest.mark.usefixtures("needs_nft")]

PORTS = (22, 29500, 40000)


@dataclass(frozen=True)
class Scenario:
    """Pods (endpoints), their policies, and the expected outcome of (source, destination, port) by position."""

    name: str
    endpoints: Sequence[Endpoint]
    policies: PolicySet
    expected: dict[tuple[int, int, int], bool]


def run_round(cluster: PocketCluster, scenarios: Sequence[Scenario]) -> tuple[int, list[str]]:
    """Install and measure one scenario per cell; the number of connects and the disagreements."""
    drops: list[Drop] = []
    wanted: dict[tuple[str, str, int], tuple[str, bool]] = {}
    for cell, scenario in enumerate(scenarios):
        names = {f"c{cell}-{i}": e for i, e in enumerate(scenario.endpoints)}
        drops += drops_of(names, scenario.policies.evaluate_range)
        for (i, j, port), is_open in scenario.expected.items():
            wanted[f"c{cell}-{i}", f"c{cell}-{j}", port] = (scenario.name, is_open)
    firewall = install(cluster, drops)
    found = measure(cluster, list(wanted), expected_open=frozenset(p for p, (_, is_open) in wanted.items() if is_open))
    wrong = [
        f"{name}: {probe} expected {'open' if is_open else 'denied'}, met {found[probe].reached}"
        for probe, (name, is_open) in wanted.items()
        if (found[probe].reached is Reached.OPEN) != is_open
    ]
    denied_pairs = {probe[:2] for probe, (_, is_open) in wanted.items() if not is_open}
    counted = {(c.source, c.destination) for c in counts(cluster, firewall)}
    wrong += [f"denied pair {pair} has no packet on its counter" for pair in denied_pairs - counted]
    return len(wanted), wrong


def cells(count: int, pods: int) -> LabSpec:
    """`count` cells of `pods` pods; every cell uses the same 6 nodes, so same-node and cross-node pairs both occur."""
    return LabSpec(
        pods=tuple(LabPod(name=f"c{c}-{i}", node=f"node-{(c + i) % 6}") for c in range(count) for i in range(pods)),
        zones={f"node-{i}": f"zone-{i % 2}" for i in range(6)},
    )


# --- generated scenarios: 60 Kubernetes, 60 Cilium, judged by our engine -------------------------------------------------

LABELS = ({"app": "train", "role": "master"}, {"app": "train", "role": "worker"}, {"app": "other", "role": "worker"})


def generated(number: int) -> Scenario:
    """Five pods in two namespaces with random policies; the seed is the scenario's number."""
    rng = random.Random(number)
    cilium = number % 2 == 1
    endpoints = [
        Endpoint(
            name=f"pod-{i}",
            namespace=rng.choice(("train", "other")),
            labels=tuple(rng.choice(LABELS).items()),
            named_ports=(("rdzv", Protocol.TCP, 29500),),
        )
        for i in range(5)
    ]
    make = cilium_policy if cilium else network_policy
    objects = [from_body(make(rng, i), file=f"policy-{i}.yaml") for i in range(rng.randint(1, 3))]
    spaces = {n: {"kubernetes.io/metadata.name": n, "team": n} for n in ("train", "other")}
    policies = compile_policies(objects, EngineOptions(cni="cilium" if cilium else "generic", namespaces=spaces))
    expected = {}
    for i, source in enumerate(endpoints):
        for j, destination in enumerate(endpoints):
            for port in PORTS if i != j else ():
                outcome = policies.evaluate_range(source, destination, PortRange(port, port))[0][1].outcome
                if outcome is not Outcome.UNJUDGED:
                    expected[i, j, port] = outcome is not Outcome.DENIED
    return Scenario(f"generated {number}", endpoints, policies, expected)


def selector(rng: random.Random) -> dict[str, Any]:
    return rng.choice(({}, {"matchLabels": {"role": "worker"}}, {"matchLabels": {"app": "train"}}))


def network_policy(rng: random.Random, number: int) -> dict[str, Any]:
    def rule(peers: str) -> dict[str, Any]:
        made: dict[str, Any] = {}
        if rng.random() < 0.8:
            peer: dict[str, Any] = {"podSelector": selector(rng)}
            if rng.random() < 0.4:
                peer["namespaceSelector"] = rng.choice(({}, {"matchLabels": {"team": "train"}}))
            made[peers] = [peer]
        if rng.random() < 0.5:
            port: dict[str, Any] = rng.choice(({"port": 29500}, {"port": "rdzv"}, {"port": 30000, "endPort": 60999}))
            made["ports"] = [{"protocol": "TCP", **port}]
        return made

    types = rng.choice((["Ingress"], ["Egress"], ["Ingress", "Egress"]))
    spec: dict[str, Any] = {"podSelector": selector(rng), "policyTypes": types}
    if "Ingress" in types:
        spec["ingress"] = [rule("from") for _ in range(rng.randint(0, 2))]
    if "Egress" in types:
        spec["egress"] = [rule("to") for _ in range(rng.randint(0, 2))]
    meta = {"name": f"np-{number}", "namespace": rng.choice(("train", "other"))}
    return {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": meta, "spec": spec}


def cilium_policy(rng: random.Random, number: int) -> dict[str, Any]:
    def rule(peers: str) -> dict[str, Any]:
        made: dict[str, Any] = {peers: [selector(rng)]}
        if rng.random() < 0.5:
            port = rng.choice(({"port": "29500"}, {"port": "rdzv"}, {"port": "30000", "endPort": 60999}))
            made["toPorts"] = [{"ports": [{**port, "protocol": "TCP"}]}]
        return made

    spec: dict[str, Any] = {"endpointSelector": selector(rng)}
    for section, peers in (("ingress", "fromEndpoints"), ("egress", "toEndpoints")):
        if rng.random() < 0.7:
            spec[section] = [rule(peers) for _ in range(rng.randint(1, 2))]
        if rng.random() < 0.3:
            spec[f"{section}Deny"] = [rule(peers)]
    if len(spec) == 1:
        spec["ingress"] = [{}]
    meta = {"name": f"cnp-{number}", "namespace": rng.choice(("train", "other"))}
    return {"apiVersion": "cilium.io/v2", "kind": "CiliumNetworkPolicy", "metadata": meta, "spec": spec}


def test_real_connects_agree_with_the_engine_in_120_scenarios() -> None:
    scenarios = [generated(i) for i in range(120)]
    denied = sum(not is_open for s in scenarios for is_open in s.expected.values())
    total, wrong = 0, []
    with build(cells(12, 5)) as cluster:
        for group in chunks(scenarios, 12):
            count, bad = run_round(cluster, group)
            total += count
            wrong += bad
    assert wrong == []
    assert total > 6000
    assert 0.2 * total < denied < 0.8 * total  # a generator that denies everything or nothing would prove little


# --- the public suite's cases: expected verdicts are the suite's, not ours ------------------------------------------------


def vector_scenarios(path: Path) -> list[Scenario]:
    found = []
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            case = json.loads(line)
            objects = [
                from_body({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", **p}, file="p.yaml")
                for p in case.get("policies") or ()
            ]
            endpoints = [
                Endpoint(
                    name=p["name"],
                    namespace=p["namespace"],
                    labels=tuple(p["labels"].items()),
                    named_ports=tuple((x["name"], Protocol(x["proto"]), x["port"]) for x in p["ports"]),
                    ip=p["ip"],
                )
                for p in case["pods"]
            ]
            expected = {
                (i, j, table["port"]): letter == "a"
                for table in case["matrix"]
                if table["proto"] == "TCP"
                for i, row in enumerate(table["combined"])
                for j, letter in enumerate(row)
                if letter != "-"
            }
            policies = compile_policies(objects, EngineOptions(cni="generic", namespaces=case["namespaces"]))
            found.append(Scenario(case["name"], endpoints, policies, expected))
    return found


@pytest.mark.slow
def test_real_connects_agree_with_the_public_suite(shared_file: Callable[[str], Path]) -> None:
    scenarios = vector_scenarios(shared_file("vectors/networkpolicy/cyclonus.jsonl"))
    assert len(scenarios) >= 100
    wrong: list[str] = []
    with build(cells(10, max(len(s.endpoints) for s in scenarios))) as cluster:
        for group in chunks(scenarios, 10):
            wrong += run_round(cluster, group)[1]
    assert wrong == []


def chunks(items: Sequence[Scenario], size: int) -> list[Sequence[Scenario]]:
    return [items[i : i + size] for i in range(0, len(items), size)]


# --- the firewall's own behaviour ----------------------------------------------------------------------------------------


def drop(source: str, destination: str, first: int, last: int, **more: Any) -> Drop:
    fields = {"direction": Direction.INGRESS, "reason": 'rule "x" (policy.yaml:7:5)'} | more
    return Drop(source=source, destination=destination, ports=PortRange(first, last), **fields)


def test_only_the_denied_pair_and_ports_are_dropped_and_counted() -> None:
    with build(cells(1, 3)) as cluster:
        firewall = install(cluster, [drop("c0-0", "c0-1", 29000, 29999)])
        probes = [
            (a, b, p) for a in ("c0-0", "c0-1") for b in ("c0-1", "c0-0") if a != b for p in (28999, 29000, 29999, 30000)
        ]
        found = measure(cluster, probes, expected_open=frozenset())
        counted = counts(cluster, firewall)
    silent = {probe for probe, m in found.items() if m.reached is not Reached.OPEN}
    assert silent == {("c0-0", "c0-1", 29000), ("c0-0", "c0-1", 29999)}
    assert [(c.source, c.destination, c.packets) for c in counted] == [("c0-0", "c0-1", 2)]
    assert counted[0].reason == 'rule "x" (policy.yaml:7:5)'


def test_a_missing_nft_is_one_line_with_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with build(cells(1, 2)) as cluster, pytest.raises(LabError, match="the program nft is missing") as caught:
        assert install(cluster, []).drops == ()  # nothing to enforce: not needed
        install(cluster, [drop("c0-0", "c0-1", 1, 2)])
    assert caught.value.hint == "install the package nftables"


def test_reject_answers_at_once_and_swapping_rules_opens_again() -> None:
    with build(cells(1, 2)) as cluster:
        install(cluster, [drop("c0-0", "c0-1", 1, 65535, action="reject", direction=Direction.EGRESS)])
        rejected = measure(cluster, [("c0-0", "c0-1", 29500)])
        install(cluster, [])
        opened = measure(cluster, [("c0-0", "c0-1", 29500)])
    assert [m.reached for m in rejected.values()] == [Reached.REFUSED]
    assert [m.reached for m in opened.values()] == [Reached.OPEN]
