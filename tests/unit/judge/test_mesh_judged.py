"""The mesh in the joint judgement: policies first, then STRICT mTLS, AuthorizationPolicy, proxies and missing facts."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from stallscope.analysis import analyse
from stallscope.judge.ask import ask
from stallscope.judge.network import find_mesh
from stallscope.judge.result import FlowJudgement, Judgement
from stallscope.load.inputs import load_text
from stallscope.model.traffic import FlowKind, Outcome, PortRange, port
from stallscope.render import reach

JOB = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: llm, namespace: train}
spec:
  pytorchReplicaSpecs:
    Master: {replicas: 1, template: {metadata: MASTER, spec: {containers: [{name: pytorch, image: x}]}}}
    Worker: {replicas: 3, template: {metadata: WORKER, spec: {containers: [{name: pytorch, image: x}]}}}
"""
SIDECARS = "apiVersion: v1\nkind: Namespace\nmetadata: {name: train, labels: {istio-injection: enabled}}\n"
AMBIENT = SIDECARS.replace("istio-injection: enabled", "istio.io/dataplane-mode: ambient")
STRICT = """\
apiVersion: security.istio.io/v1
kind: PeerAuthentication
metadata: {name: strict, namespace: train}
spec: {mtls: {mode: STRICT}}
"""
OUT = '{labels: {sidecar.istio.io/inject: "false"}}'


def judged(*documents: str, master: str = "{}", worker: str = "{}") -> Judgement:
    job = JOB.replace("MASTER", master).replace("WORKER", worker)
    return analyse(load_text({f"{i}.yaml": text for i, text in enumerate((job, *documents))})).judgement


def outcomes(judgement: Judgement, kind: FlowKind) -> dict[tuple[str, str], set[str]]:
    found: dict[tuple[str, str], set[str]] = {}
    for flow in judgement.jobs[0].flows:
        if flow.flow.kind is kind:
            found.setdefault((flow.source_role, flow.destination_role), set()).add(str(flow.verdict.outcome))
    return found


def first(judgement: Judgement, outcome: Outcome) -> FlowJudgement:
    return judgement.jobs[0].with_outcome(outcome)[0]


def test_a_sidecar_is_proxied_with_its_reason() -> None:
    judgement = judged(SIDECARS)
    assert outcomes(judgement, FlowKind.RENDEZVOUS) == {("Worker", "Master"): {"proxied"}}
    flow = first(judgement, Outcome.PROXIED)
    assert flow.verdict.by_mesh
    assert "namespace train has istio-injection=enabled" in flow.verdict.reason


def test_strict_refuses_pod_addresses_and_admits_the_declared_port_of_a_service() -> None:
    """The operator's headless Service declares 23456, so a sidecar can use mTLS there (reference: policy.md, section 6)."""
    judgement = judged(SIDECARS, STRICT)
    assert outcomes(judgement, FlowKind.RENDEZVOUS) == {("Worker", "Master"): {"proxied"}}
    assert set.union(*outcomes(judgement, FlowKind.COLLECTIVE).values()) == {"denied"}
    side = first(judgement, Outcome.DENIED).verdict.deciding
    assert [(r.policy, r.location.file, r.location.span.line) for r in side.rules] == [
        ("PeerAuthentication train/strict", "2.yaml", 4)
    ]


def test_one_end_that_opts_out_is_refused_by_the_other_only() -> None:
    """A plain caller meets STRICT at the workers; nothing stands before a destination without sidecar."""
    found = outcomes(judged(SIDECARS, STRICT, master=OUT), FlowKind.COLLECTIVE)
    assert found[("Master", "Worker")] == {"denied"}
    assert found[("Worker", "Master")] == {"proxied"}, "the worker's own sidecar carries it away"


def test_both_opted_out_is_plainly_allowed_even_under_strict() -> None:
    judgement = judged(SIDECARS, STRICT, master=OUT, worker=OUT)
    assert judgement.jobs[0].with_outcome(Outcome.DENIED, Outcome.PROXIED, Outcome.UNJUDGED) == ()


def test_a_policy_denial_stands() -> None:
    deny = (
        "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: d, namespace: train}\n"
        "spec: {podSelector: {}, policyTypes: [Ingress]}\n"
    )
    judgement = judged(SIDECARS, STRICT, deny)
    flow = first(judgement, Outcome.DENIED)
    assert not flow.verdict.by_mesh
    assert [r.policy for r in flow.verdict.deciding.isolating] == ["NetworkPolicy train/d"]


def test_unknown_namespace_labels_are_named_not_assumed() -> None:
    judgement = judged(STRICT)
    assert outcomes(judgement, FlowKind.RENDEZVOUS) == {("Worker", "Master"): {"unjudged"}}
    assert judgement.unjudged == ("not known: labels of namespace train (is istio-injection set?)",)


def test_an_excluded_port_is_cut_out_of_the_range() -> None:
    """excludeInboundPorts takes 40000 out of the sidecar's path; its neighbours stay refused."""
    notes = '{annotations: {traffic.sidecar.istio.io/excludeInboundPorts: "40000"}}'
    judgement = judged(SIDECARS, STRICT, worker=notes)
    answers = {
        number: ask(judgement, judgement.jobs[0], "Master", "Worker", port(number))[0].verdict.outcome
        for number in (39999, 40000, 40001)
    }
    assert answers == {39999: "denied", 40000: "proxied", 40001: "denied"}


@pytest.mark.parametrize(
    ("ports", "expected"),
    [("[{port: 15008}]", "proxied"), ("[{port: 1024, endPort: 15007}, {port: 15009, endPort: 65535}]", "denied")],
)
def test_policies_see_hbone_between_ambient_pods(ports: str, expected: str) -> None:
    policy = (
        "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: p, namespace: train}\n"
        f"spec: {{podSelector: {{}}, policyTypes: [Ingress], ingress: [{{ports: {ports}}}]}}\n"
    )
    judgement = judged(AMBIENT, policy)
    assert set.union(*outcomes(judgement, FlowKind.COLLECTIVE).values()) == {expected}
    assert set.union(*outcomes(judgement, FlowKind.DNS).values()) == {"allowed"}, "UDP does not go through ztunnel"


def test_pods_in_and_out_of_the_mesh_are_different_classes() -> None:
    judgement = judged(SIDECARS, STRICT, master=OUT)
    roles = {f.source_role: f.source for f in judgement.jobs[0].flows}
    assert judgement.mesh is not None
    assert {"Master", "Worker"} <= roles.keys()
    counted = sum(f.pairs for f in judgement.jobs[0].flows if f.flow.kind is FlowKind.COLLECTIVE)
    assert counted == 4 * 3


def test_reach_shows_the_mesh_as_a_third_step() -> None:
    judgement = judged(SIDECARS, STRICT)
    text = reach.explain(ask(judgement, judgement.jobs[0], "Worker", "Master", PortRange(40000, 40000))[0])
    assert "  3. through the mesh: denied\n" in text
    assert "denied by PeerAuthentication train/strict at 2.yaml:4" in text


def test_without_a_mesh_that_part_of_the_program_is_never_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [n for n in sys.modules if n.startswith(("stallscope.judge.mesh", "stallscope.policy.istio"))]:
        monkeypatch.delitem(sys.modules, name)
    judgement = judged("apiVersion: v1\nkind: Namespace\nmetadata: {name: train, labels: {team: nlp}}\n")
    assert judgement.mesh is None
    assert all(f.verdict.mesh is None for f in judgement.jobs[0].flows)
    assert not [n for n in sys.modules if n.startswith(("stallscope.judge.mesh", "stallscope.policy.istio"))]


@pytest.mark.parametrize("value", [None, [], "x", 7, {"labels": 3}])
def test_hostile_security_objects_do_no_harm(value: Any) -> None:
    import json

    body = {"apiVersion": "security.istio.io/v1", "metadata": {"name": "x", "namespace": "train"}, "spec": value}
    documents = [json.dumps({**body, "kind": k}) for k in ("PeerAuthentication", "AuthorizationPolicy")]
    deep = {"rules": value, "portLevelMtls": value, "selector": value, "mtls": value}
    documents += [json.dumps({**body, "kind": k, "spec": deep}) for k in ("PeerAuthentication", "AuthorizationPolicy")]
    assert judged(SIDECARS, *documents).jobs[0].flows


def test_find_mesh_needs_a_sign() -> None:
    assert find_mesh((), {"train": {"team": "nlp"}}, ()) is None
    assert find_mesh((), {"train": {"istio-injection": "enabled"}}, ()) is not None
