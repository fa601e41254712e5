"""The engine against a naive reading of Cilium's rules, on random policies of the less usual forms."""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
from policy_forms import ENDS, NAMESPACES, PORTS, Body, Naive, make

from stallscope.model.kube import from_body
from stallscope.model.traffic import DirectionVerdict, Outcome, PeerEdge, PortRange, Protocol, RuleRef
from stallscope.policy.engine import EngineOptions, PolicySet, compile_policies

SEEDS = range(60)
EACH = 5


def build(bodies: list[Body], options: dict[str, str]) -> PolicySet:
    objects = [from_body(b, file=f"{b['metadata']['name']}.yaml") for b in bodies]
    return compile_policies(objects, EngineOptions(cni="cilium", options=options, namespaces=NAMESPACES))


def edges(random: Random, count: int) -> list[PeerEdge]:
    return [
        PeerEdge(
            source=random.choice(ENDS),
            destination=random.choice(ENDS),
            port=random.choice(PORTS),
            protocol=random.choice([Protocol.TCP, Protocol.TCP, *Protocol]),
        )
        for _ in range(count)
    ]


@pytest.mark.parametrize("seed", SEEDS)
def test_verdicts_are_those_of_the_naive_reading(seed: int) -> None:
    random = Random(seed)
    for _ in range(EACH):
        bodies, options = make(random)
        policy_set = build(bodies, options)
        bad = [b["metadata"]["name"] for b in bodies if b["metadata"]["name"].startswith("bad")]
        assert [r.policy.name for r in policy_set.rejected] == bad, [r.reason for r in policy_set.rejected]
        naive = Naive([b for b in bodies if b["metadata"]["name"] not in bad], options)
        for edge in edges(random, 150):
            expected = naive.outcome(edge.source, edge.destination, edge.port, edge.protocol)
            verdict = policy_set.evaluate(edge)
            assert verdict.outcome == expected, (seed, options, bodies, edge)
            for side in (verdict.egress, verdict.ingress):
                assert side.enforced or (side.outcome is Outcome.ALLOWED and not side.rules)


@pytest.mark.parametrize("seed", SEEDS)
def test_order_and_refused_objects_change_nothing(seed: int) -> None:
    random = Random(seed)
    bodies, options = make(random)
    whole = build(bodies, options)
    shuffled = build(random.sample(bodies, len(bodies)), options)
    kept = build([b for b in bodies if not b["metadata"]["name"].startswith("bad")], options)
    for edge in edges(random, 100):
        assert whole.evaluate(edge) == shuffled.evaluate(edge) == kept.evaluate(edge)


def agreeing(verdict: DirectionVerdict) -> set[RuleRef]:
    """Which of several agreeing rules Cilium names changes with the port bits inside a stretch; their set does not."""
    return {*verdict.rules, *verdict.also}


@pytest.mark.parametrize("seed", SEEDS)
def test_stretches_of_ports_agree_with_single_ports(seed: int) -> None:
    random = Random(seed)
    bodies, options = make(random)
    policy_set = build(bodies, options)
    for edge in edges(random, 25):
        stretches = policy_set.evaluate_range(edge.source, edge.destination, PortRange(1, 65535, edge.protocol))
        assert (stretches[0][0].first, stretches[-1][0].last) == (1, 65535)
        assert all(left.last + 1 == right.first for (left, _), (right, _) in pairwise(stretches))
        for stretch, verdict in stretches:
            for port in {stretch.first, (stretch.first + stretch.last) // 2, stretch.last}:
                single = policy_set.evaluate(
                    PeerEdge(source=edge.source, destination=edge.destination, port=port, protocol=edge.protocol)
                )
                assert single.outcome is verdict.outcome
                assert agreeing(single.ingress) == agreeing(verdict.ingress)
                assert agreeing(single.egress) == agreeing(verdict.egress)
