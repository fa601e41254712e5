"""What must hold for any policies: hypothesis makes clusters, the engine must not contradict itself."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stallscope.model.kube import KubeObject, from_body
from stallscope.model.traffic import DirectionVerdict, Endpoint, Outcome, PeerEdge, PortRange, Protocol, RuleRef
from stallscope.policy.engine import EngineOptions, PolicySet, compile_policies

NAMESPACES = {"train": {"team": "ml"}, "other": {"team": "web"}}
LABELS = {"app": ["job", "web"], "zone": ["a", "b"]}
PORTS = (22, 29500, 29501, 40000, 60999)
LIMITS = settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])

label_sets = st.fixed_dictionaries({}, optional={k: st.sampled_from(v) for k, v in LABELS.items()})
expressions = st.one_of(
    st.builds(
        lambda k, o: {"key": k, "operator": o}, st.sampled_from(list(LABELS)), st.sampled_from(["Exists", "DoesNotExist"])
    ),
    st.sampled_from(list(LABELS)).flatmap(
        lambda k: st.builds(
            lambda o, v: {"key": k, "operator": o, "values": v},
            st.sampled_from(["In", "NotIn"]),
            st.lists(st.sampled_from(LABELS[k]), min_size=1, max_size=2, unique=True),
        )
    ),
)
selectors = st.one_of(
    st.builds(lambda m: {"matchLabels": m}, label_sets), st.builds(lambda e: {"matchExpressions": [e]}, expressions)
)
numbers = st.sampled_from([22, 29400, 29500, 32768, 40000])
cilium_port = st.builds(
    lambda p, end, proto: {"port": str(p), "protocol": proto, **({"endPort": p + end} if end else {})},
    numbers,
    st.sampled_from([0, 100, 20000]),
    st.sampled_from(["TCP", "UDP", "ANY"]),
)
kube_port = st.builds(
    lambda p, end: {"port": p, **({"endPort": p + end} if end else {})}, numbers, st.sampled_from([0, 100, 20000])
)
cilium_l3 = st.one_of(
    st.builds(lambda s: {"fromEndpoints": s}, st.lists(selectors, min_size=1, max_size=2)),
    st.builds(
        lambda e: {"fromEntities": e}, st.lists(st.sampled_from(["all", "cluster", "world", "host"]), min_size=1, max_size=2)
    ),
    st.just({"fromCIDR": ["10.0.0.0/8"]}),
    st.just({}),
)
cilium_rule = st.builds(
    lambda l3, ports: {**l3, **({"toPorts": [{"ports": ports}]} if ports else {})},
    cilium_l3,
    st.lists(cilium_port, max_size=2),
)


def body(version: str, kind: str, name: str, namespace: str, spec: dict[str, Any]) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}


cnp = st.builds(
    lambda name, ns, subject, allow, deny: body(
        "cilium.io/v2", "CiliumNetworkPolicy", name, ns, {"endpointSelector": subject, "ingress": allow, "ingressDeny": deny}
    ),
    st.sampled_from("abcdef"),
    st.sampled_from(list(NAMESPACES)),
    selectors,
    st.lists(cilium_rule, min_size=1, max_size=3),
    st.lists(cilium_rule, max_size=2),
)
netpol = st.builds(
    lambda name, ns, subject, peers, ports: body(
        "networking.k8s.io/v1",
        "NetworkPolicy",
        name,
        ns,
        {"podSelector": subject, "policyTypes": ["Ingress"], "ingress": [{"from": peers, "ports": ports}]},
    ),
    st.sampled_from("ghijkl"),
    st.sampled_from(list(NAMESPACES)),
    selectors,
    st.lists(
        st.one_of(
            st.builds(lambda s: {"podSelector": s}, selectors),
            st.builds(lambda s: {"podSelector": s, "namespaceSelector": {}}, selectors),
        ),
        max_size=2,
    ),
    st.lists(kube_port, max_size=2),
)
policy_lists = st.lists(st.one_of(cnp, netpol), max_size=5, unique_by=lambda b: (b["kind"], b["metadata"]["name"]))
pods = st.builds(
    lambda i, ns, labels: Endpoint(name=f"p{i}", namespace=ns, labels=tuple(labels.items())),
    st.integers(0, 99),
    st.sampled_from(list(NAMESPACES)),
    label_sets,
)
ends = st.one_of(pods, st.sampled_from([Endpoint(name="host", reserved=("host",)), Endpoint(name="ext", ip="10.1.2.3")]))
engines = st.sampled_from(["cilium", "generic"])


def objects(bodies: list[dict[str, Any]]) -> list[KubeObject]:
    return [from_body(b, file=f"{b['metadata']['name']}.yaml") for b in bodies]


def build(bodies: list[dict[str, Any]], cni: str = "cilium") -> PolicySet:
    return compile_policies(objects(bodies), EngineOptions(cni=cni, namespaces=NAMESPACES))


def outcome(policy_set: PolicySet, source: Endpoint, destination: Endpoint, port: int) -> Outcome:
    return policy_set.evaluate(PeerEdge(source=source, destination=destination, port=port)).outcome


def added(bodies: list[dict[str, Any]], section: str, rule: dict[str, Any], *, isolate: bool) -> list[dict[str, Any]]:
    spec: dict[str, Any] = {"endpointSelector": {}, section: [rule]}
    if not isolate:
        spec["enableDefaultDeny"] = {"ingress": False}
    return [*bodies, body("cilium.io/v2", "CiliumClusterwideNetworkPolicy", "added", "", spec)]


@LIMITS
@given(policy_lists, cilium_rule, ends, pods, st.sampled_from(PORTS))
def test_adding_an_allow_never_denies(bodies: Any, rule: Any, source: Endpoint, destination: Endpoint, port: int) -> None:
    """In one tier and without switching isolation on, an allow only opens."""
    before = outcome(build(bodies), source, destination, port)
    after = outcome(build(added(bodies, "ingress", rule, isolate=False)), source, destination, port)
    assert not (before is Outcome.ALLOWED and after is Outcome.DENIED)


@LIMITS
@given(policy_lists, cilium_rule, ends, pods, st.sampled_from(PORTS))
def test_adding_a_denial_never_allows(bodies: Any, rule: Any, source: Endpoint, destination: Endpoint, port: int) -> None:
    before = outcome(build(bodies), source, destination, port)
    after = outcome(build(added(bodies, "ingressDeny", rule, isolate=False)), source, destination, port)
    assert not (before is Outcome.DENIED and after is Outcome.ALLOWED)


@LIMITS
@given(policy_lists, ends, pods, st.sampled_from(PORTS))
def test_deny_beats_allow(bodies: Any, source: Endpoint, destination: Endpoint, port: int) -> None:
    everyone = {"fromEntities": ["all"]}
    open_wide = added(bodies, "ingress", everyone, isolate=True)
    shut = [*open_wide, *added([], "ingressDeny", everyone, isolate=True)]
    shut[-1]["metadata"]["name"] = "shut"
    assert outcome(build(shut), source, destination, port) is Outcome.DENIED


@LIMITS
@given(policy_lists, st.lists(pods, min_size=2, max_size=2), st.sampled_from(PORTS), engines)
def test_renaming_endpoints_changes_nothing(bodies: Any, pair: list[Endpoint], port: int, cni: str) -> None:
    renamed = [Endpoint(name=f"x-{p.name}", namespace=p.namespace, labels=p.labels) for p in pair]
    edges = [PeerEdge(source=a, destination=b, port=port) for a, b in (pair, renamed)]
    assert build(bodies, cni).evaluate(edges[0]) == build(bodies, cni).evaluate(edges[1])


@LIMITS
@given(policy_lists, ends, pods, st.sampled_from(PORTS), engines, st.randoms(use_true_random=False))
def test_order_of_files_changes_nothing(
    bodies: Any, source: Endpoint, destination: Endpoint, port: int, cni: str, shuffler: random.Random
) -> None:
    mixed = list(bodies)
    shuffler.shuffle(mixed)
    edge = PeerEdge(source=source, destination=destination, port=port)
    assert build(bodies, cni).evaluate(edge) == build(mixed, cni).evaluate(edge)


@LIMITS
@given(policy_lists, ends, pods, st.sampled_from(PORTS), st.randoms(use_true_random=False))
def test_order_of_rules_changes_no_outcome(
    bodies: Any, source: Endpoint, destination: Endpoint, port: int, shuffler: random.Random
) -> None:
    mixed = []
    for item in bodies:
        spec = {k: shuffler.sample(v, len(v)) if isinstance(v, list) else v for k, v in item["spec"].items()}
        mixed.append({**item, "spec": spec})
    assert outcome(build(bodies), source, destination, port) is outcome(build(mixed), source, destination, port)


@LIMITS
@given(policy_lists, ends, pods, st.sampled_from(PORTS), engines)
def test_a_policy_that_selects_nobody_changes_nothing(
    bodies: Any, source: Endpoint, destination: Endpoint, port: int, cni: str
) -> None:
    nobody = {"matchLabels": {"no-such": "label"}}
    more = [
        *bodies,
        body("networking.k8s.io/v1", "NetworkPolicy", "y", "train", {"podSelector": nobody}),
        body(
            "cilium.io/v2",
            "CiliumNetworkPolicy",
            "z",
            "train",
            {"endpointSelector": nobody, "ingressDeny": [{"fromEntities": ["all"]}]},
        ),
    ]
    edge = PeerEdge(source=source, destination=destination, port=port)
    assert build(bodies, cni).evaluate(edge) == build(more, cni).evaluate(edge)


@LIMITS
@given(policy_lists, st.lists(pods, min_size=2, max_size=6), st.sampled_from(PORTS), engines)
def test_verdict_per_pair_is_verdict_per_identity(bodies: Any, many: list[Endpoint], port: int, cni: str) -> None:
    """A shared set judges classes; a fresh set per edge judges just that pair."""
    shared = build(bodies, cni)
    for source in many:
        for destination in many:
            edge = PeerEdge(source=source, destination=destination, port=port)
            assert shared.evaluate(edge) == build(bodies, cni).evaluate(edge)


def agreeing(verdict: DirectionVerdict) -> set[RuleRef]:
    """Which of several agreeing rules Cilium names changes with the port bits inside a stretch; their set does not."""
    return {*verdict.rules, *verdict.also}


@LIMITS
@given(policy_lists, ends, pods, engines, st.sampled_from([Protocol.TCP, Protocol.UDP]))
def test_ranges_agree_with_single_ports(
    bodies: Any, source: Endpoint, destination: Endpoint, cni: str, protocol: Protocol
) -> None:
    policy_set = build(bodies, cni)
    wanted = PortRange(1, 65535, protocol)
    stretches = policy_set.evaluate_range(source, destination, wanted)
    assert stretches[0][0].first == 1
    assert stretches[-1][0].last == 65535
    for (left, _), (right, _) in pairwise(stretches):
        assert left.last + 1 == right.first
    for stretch, verdict in stretches:
        for port in {stretch.first, (stretch.first + stretch.last) // 2, stretch.last}:
            single = policy_set.evaluate(PeerEdge(source=source, destination=destination, port=port, protocol=protocol))
            assert single.outcome is verdict.outcome
            # Stretches of one answer are joined; what the joined verdict names must hold at every port of it.
            assert agreeing(verdict.ingress) <= agreeing(single.ingress)
            assert agreeing(verdict.egress) <= agreeing(single.egress)
            assert bool(verdict.ingress.rules) == bool(single.ingress.rules)
