"""Provenance: which rule, where, and for default deny which rule came closest and why it failed."""

from __future__ import annotations

from collections.abc import Callable

from stallscope.model.traffic import Endpoint, PortRange, Verdict
from stallscope.policy.engine import PolicySet

Policies, Ask, Pod = Callable[..., PolicySet], Callable[..., Verdict], Callable[..., Endpoint]

BOUNDARY = """\
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: {name: zone-boundary, namespace: train}
spec:
  endpointSelector:
    matchLabels: {app: llm}
  ingress:
  - fromEndpoints:
    - matchLabels: {zone: a}
  - fromEndpoints: [{}]
    toPorts:
    - ports:
      - {port: "22", protocol: TCP}
      - {port: "29500", protocol: TCP}
  - fromEndpoints:
    - matchLabels: {io.kubernetes.pod.namespace: other, app: x}
  ingressDeny:
  - fromEndpoints:
    - matchLabels: {zone: c}
"""


def test_an_allow_names_its_rule_and_line(policies: Policies, ask: Ask, pod: Pod) -> None:
    verdict = ask(policies(BOUNDARY, "cilium"), pod("b", zone="b"), pod("a", app="llm"), 29500)
    [rule] = verdict.ingress.rules
    assert (str(rule), rule.location.file, rule.location.span.line) == (
        "CiliumNetworkPolicy train/zone-boundary ingress[1]",
        "p.yaml",
        10,
    )
    assert verdict.egress.rules == ()


def test_a_denial_names_its_rule(policies: Policies, ask: Ask, pod: Pod) -> None:
    verdict = ask(policies(BOUNDARY, "cilium"), pod("c", zone="c"), pod("a", app="llm"))
    assert verdict.deciding.direction == "ingress"
    assert [(r.section, r.index, r.location.span.line) for r in verdict.ingress.rules] == [("ingressDeny", 0, 18)]


def test_default_deny_names_who_isolates_and_the_nearest_rules_first(policies: Policies, ask: Ask, pod: Pod) -> None:
    verdict = ask(policies(BOUNDARY, "cilium"), pod("b", zone="b"), pod("a", app="llm"), 40000)
    assert verdict.outcome == "denied"
    assert verdict.ingress.rules == ()
    assert [(i.policy, i.location.span.line) for i in verdict.ingress.isolating] == [
        ("CiliumNetworkPolicy train/zone-boundary", 5)
    ]
    near = verdict.ingress.nearest
    assert [n.rule.index for n in near] == [1, 0, 2]
    assert near[0].why == "it admits this peer, but only on TCP 22, 29500"
    assert near[1].why == "it does not admit this peer: needs zone=a, the peer has zone=b"
    assert near[2].why == (
        "it does not admit this peer: needs namespace=other, the peer is in namespace train; "
        "needs app=x, the peer has no label app"
    )


def test_rules_that_would_decide_alone_are_listed(policies: Policies, ask: Ask, pod: Pod) -> None:
    text = BOUNDARY + "  - fromEntities: [all]\n"
    verdict = ask(policies(text, "cilium"), pod("c", zone="c"), pod("a", app="llm"))
    assert [r.index for r in verdict.ingress.rules] == [1], "the broader denial is what Cilium keeps"
    assert [r.index for r in verdict.ingress.also] == [0]


def test_netpol_near_misses_speak_of_namespaces(policies: Policies, ask: Ask, pod: Pod) -> None:
    text = (
        "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: np, namespace: train}\n"
        "spec:\n  podSelector: {}\n"
        "  ingress:\n  - from: [{podSelector: {}}]\n  - from: [{namespaceSelector: {matchLabels: {team: ml}}}]\n"
    )
    near = ask(policies(text), pod("other/o"), pod("a")).ingress.nearest
    assert [n.why.partition(": ")[2] for n in near] == [
        "the peer is in namespace other, the rule selects pods of train only",
        "needs a namespace with team=ml, the peer's namespace other has team=web",
    ]


def test_ranges_are_cut_where_verdicts_change(policies: Policies, pod: Pod) -> None:
    policy_set = policies(BOUNDARY, "cilium")
    stretches = policy_set.evaluate_range(pod("b", zone="b"), pod("a", app="llm"), PortRange(20, 29501))
    assert [(s.first, s.last, v.outcome.value) for s, v in stretches] == [
        (20, 21, "denied"),
        (22, 22, "allowed"),
        (23, 29499, "denied"),
        (29500, 29500, "allowed"),
        (29501, 29501, "denied"),
    ]


def test_first_denied_port(policies: Policies, pod: Pod) -> None:
    policy_set = policies(BOUNDARY, "cilium")
    found = policy_set.first_denied_port(pod("b", zone="b"), pod("a", app="llm"), PortRange(29500, 60999))
    assert found is not None
    assert (found[0], found[1].outcome) == (29501, "denied")
    assert policy_set.first_denied_port(pod("b", zone="a"), pod("a", app="llm"), PortRange(32768, 60999)) is None


def test_opening_only_the_master_port_does_not_open_the_collective(policies: Policies, pod: Pod) -> None:
    policy_set = policies(BOUNDARY, "cilium")
    [(stretch, verdict)] = policy_set.evaluate_range(pod("b", zone="b"), pod("a", app="llm"), PortRange(32768, 60999))
    assert (stretch, verdict.outcome) == (PortRange(32768, 60999), "denied")


def test_selecting_lists_the_policies_of_both_ends(policies: Policies, pod: Pod) -> None:
    from stallscope.model.traffic import PeerEdge

    policy_set = policies(BOUNDARY, "cilium")
    edge = PeerEdge(source=pod("b"), destination=pod("a", app="llm"), port=1)
    assert [p.name for p in policy_set.selecting(edge)] == ["zone-boundary"]
    assert policy_set.selecting(PeerEdge(source=pod("b"), destination=pod("c"), port=1)) == ()


def test_ranks_that_no_policy_tells_apart_share_a_key(policies: Policies, pod: Pod) -> None:
    policy_set = policies(BOUNDARY, "cilium")
    ranks = [pod(f"r{i}", app="llm", zone="ab"[i % 2], **{"training.kubeflow.org/replica-index": str(i)}) for i in range(64)]
    assert len({policy_set.endpoint_key(r) for r in ranks}) == 2
