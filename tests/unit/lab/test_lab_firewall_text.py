"""Verdicts to nft text: which direction, which ports, which words."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from stallscope.cli.options import InputOptions
from stallscope.cli.pipeline import judged
from stallscope.lab.cast import cast
from stallscope.lab.faults.registry import describe_faults, parse_fault
from stallscope.lab.firewall import Drop, drops_of, ruleset, why
from stallscope.lab.matrix import agrees
from stallscope.lab.reach import Reached
from stallscope.lab.run import unresolved
from stallscope.model.source import Location, Span
from stallscope.model.traffic import (
    Direction,
    DirectionVerdict,
    Endpoint,
    Outcome,
    PeerEdge,
    PortRange,
    RuleRef,
    Verdict,
)

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
RULE = RuleRef(
    policy="NetworkPolicy train/deny",
    section="ingress",
    index=2,
    location=Location(file="p.yaml", span=Span(7, 3, 7, 9, 0, 1)),
)
POD = Endpoint(name="worker-0", namespace="train")


def side(outcome: Outcome, direction: Direction, **more: object) -> DirectionVerdict:
    return DirectionVerdict(outcome=outcome, direction=direction, **more)  # type: ignore[arg-type]


def test_each_denying_end_is_its_own_drop() -> None:
    """Both ends count: a denial of either is enforced where the CNI enforces it."""
    allowed = side(Outcome.ALLOWED, Direction.EGRESS)
    verdict = Verdict(outcome=Outcome.DENIED, egress=allowed, ingress=side(Outcome.DENIED, Direction.INGRESS, rules=(RULE,)))
    open_end = Verdict(outcome=Outcome.ALLOWED, egress=allowed, ingress=side(Outcome.ALLOWED, Direction.INGRESS))

    def segments(source: Endpoint, destination: Endpoint, ports: PortRange) -> list[tuple[PortRange, Verdict]]:
        return [(PortRange(1, 99), verdict if source.name == "a" else open_end)]

    found = drops_of({"a": Endpoint(name="a", namespace="x"), "b": Endpoint(name="b", namespace="x")}, segments)
    assert [(d.source, d.destination, d.direction, d.ports.last) for d in found] == [("a", "b", Direction.INGRESS, 99)]
    assert found[0].reason == "ingress denied by NetworkPolicy train/deny ingress[2] (p.yaml:7:3)"


def test_default_deny_names_the_isolating_policies() -> None:
    policy = RuleRef(policy="NetworkPolicy train/isolate", location=Location(file="q.yaml", span=Span(2, 1, 2, 2, 0, 1)))
    denied = side(Outcome.DENIED, Direction.INGRESS, isolating=(policy,))
    assert why(denied, POD) == "ingress default deny at worker-0: NetworkPolicy train/isolate (q.yaml:2:1)"


def test_the_ruleset_lets_replies_through_and_drops_silently() -> None:
    drop = Drop(
        direction=Direction.INGRESS, source="a", destination="b", ports=PortRange(1, 99), reason='say "hi"\n\x1b[31m'
    )
    again = Drop(direction=Direction.INGRESS, source="a", destination="b", ports=PortRange(100, 200), reason=drop.reason)
    text = ruleset([drop, again], {drop.reason: 4}, {"a": "10.1.1.2", "b": "10.1.1.3"})
    assert "10.1.1.2 . 10.1.1.3 . 1-200" in text  # touching ranges are one element
    rules = [line.strip() for line in text.splitlines()]
    assert rules.index("ct direction reply accept") < next(i for i, r in enumerate(rules) if "@ingress_4_drop" in r)
    comment = next(r for r in rules if "@ingress_4_drop" in r).partition("comment ")[2]
    assert comment.count('"') == 2  # nothing of a manifest can end the comment or move a cursor
    assert "\x1b" not in text
    assert " counter drop " in text


def test_a_long_reason_fits_nfts_comment() -> None:
    drop = Drop(direction=Direction.EGRESS, source="a", destination="b", ports=PortRange(1, 2), reason="é" * 300)
    text = ruleset([drop], {drop.reason: 0}, {"a": "10.1.1.2", "b": "10.1.1.3"})
    comment = text.partition('comment "')[2].partition('"')[0]
    assert 100 < len(comment.encode()) <= 127


def test_unjudged_is_compared_with_nothing() -> None:
    assert agrees(Outcome.UNJUDGED, Reached.OPEN) is None
    assert agrees(Outcome.PROXIED, Reached.OPEN) is True
    assert agrees(Outcome.DENIED, Reached.SILENT) is True
    assert agrees(Outcome.DENIED, Reached.OPEN) is False
    assert agrees(Outcome.ALLOWED, Reached.REFUSED) is False


def test_faults_are_written_by_name_and_arguments() -> None:
    armed = parse_fault("straggler:rank=2,ms=50")
    assert (armed.args.values["rank"], armed.args.values["ms"], armed.args.step()) == ("2", "50", 4)
    assert str(armed) == "straggler:rank=2,ms=50,step=4"
    assert "deny-midrun:from=0,to=1,step=4" in describe_faults()


@pytest.mark.parametrize("example", ["incident", "incident-trainjob", "incident-detour", "incident-topology-label"])
def test_drops_are_the_engines_denials_pair_by_pair_and_port_by_port(example: str) -> None:
    """`evaluate` on single ports is another path through the engine than the segments the compiler uses."""
    paths = (str(EXAMPLES / example), str(EXAMPLES / "incident/nodes.yaml"))
    judgement = judged(InputOptions(paths=paths)).judgement
    job = judgement.jobs[0]
    assert job.witness is not None
    made = cast(judgement, job.job, job.witness.nodes)
    drops = drops_of(made.endpoints, judgement.policies.evaluate_range)
    for source, a in made.endpoints.items():
        for destination, b in made.endpoints.items():
            for port in (1, 22, 53, 1024, 23456, 29500, 32768, 60999, 65535) if source != destination else ():
                covered = any(
                    d.source == source and d.destination == destination and d.ports.first <= port <= d.ports.last
                    for d in drops
                )
                verdict = judgement.policies.evaluate(PeerEdge(source=a, destination=b, port=port))
                assert covered == (verdict.outcome is Outcome.DENIED), (source, destination, port)


NO_DNS = """
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: no-dns, namespace: train}
spec:
  podSelector: {matchLabels: {net-zone: gpu}}
  policyTypes: [Egress]
  egress: [{to: [{podSelector: {}}]}]
"""


def test_pods_whose_dns_a_policy_denies_resolve_nothing(tmp_path: Path) -> None:
    policy = tmp_path / "no-dns.yaml"
    policy.write_text(NO_DNS)
    paths = (str(EXAMPLES / "incident-detour/job.yaml"), str(EXAMPLES / "incident/nodes.yaml"), str(policy))
    judgement = judged(InputOptions(paths=paths)).judgement
    job = judgement.jobs[0]
    assert job.witness is not None
    made = cast(judgement, job.job, job.witness.nodes)
    found = unresolved(made, judgement.policies.evaluate_range)
    assert set(found) == {f"llm-worker-{i}" for i in range(4)}  # the coordinator is not selected
    assert "NetworkPolicy train/no-dns" in found["llm-worker-0"]
    assert unresolved(replace(made, dns=None), judgement.policies.evaluate_range) == {}
