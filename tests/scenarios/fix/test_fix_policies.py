"""
Policies: the job's own pods may talk, and nobody else gets anything. Outsiders are asked before and after: whatever was
denied between the job and them, or among them, must still be denied.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
import yaml

from stallscope.cli import fixrun
from stallscope.judge.result import Judgement
from stallscope.model.traffic import Endpoint, Outcome, PeerEdge

L1 = "training.kubeflow.org"


def pod(name: str, namespace: str = "train", **labels: str) -> Endpoint:
    keys = {"job": f"{L1}/job-name", "role": f"{L1}/replica-type", "tier": "tier", "app": "app"}
    return Endpoint(name=name, namespace=namespace, labels=tuple(sorted((keys[k], v) for k, v in labels.items())))


JOB = [pod("llm-master-0", job="llm", role="master", tier="cpu"), pod("llm-worker-0", job="llm", role="worker", tier="gpu")]
#: Another job of the namespace, a plain pod, a pod of the protected tier, and the same job name in another namespace.
OUTSIDERS = [
    pod("other-master-0", job="other", role="master", tier="cpu"),
    pod("other-worker-0", job="other", role="worker", tier="gpu"),
    pod("web", app="web"),
    pod("db", tier="gpu", app="db"),
    pod("llm-worker-0", "elsewhere", job="llm", role="worker", tier="gpu"),
]
PORTS = (22, 443, 23456, 40000)


def allowed(judgement: Judgement, source: Endpoint, destination: Endpoint, port: int) -> bool:
    edge = PeerEdge(source=source, destination=destination, port=port)
    return judgement.policies.evaluate(edge).outcome is Outcome.ALLOWED


def nobody_else_gains_or_loses(before: Judgement, after: Judgement) -> None:
    everybody = [*JOB, *OUTSIDERS]
    for source, destination, port in product(everybody, everybody, PORTS):
        if source in JOB and destination in JOB:
            continue
        was, now = (allowed(j, source, destination, port) for j in (before, after))
        assert was == now, f"{source.namespace}/{source.name} -> {destination.namespace}/{destination.name}:{port}"


def the_job_talks(run: fixrun.Run) -> None:
    after = run.fixed.after.judgement
    assert all(allowed(after, a, b, p) for a, b in product(JOB, JOB) if a is not b for p in PORTS)
    assert not [f for j in after.jobs for f in j.flows if f.verdict.outcome is Outcome.DENIED and f.flow.required]
    assert [p.failed for p in run.fixed.proofs] == [()]


def before_of(fix: Any, *texts: str, **options: Any) -> Judgement:
    """The judgement without a fix: nothing is selected."""
    run = fix(*texts, select=("STL4",), **options)
    assert run.changes == ()
    judged: Judgement = run.fixed.after.judgement
    return judged


def job(fix: Any) -> str:
    pinned = "          nodeSelector: {topology.kubernetes.io/zone: zone-b}\n"
    tolerating = "          tolerations: [{key: nvidia.com/gpu, operator: Exists}]\n"
    text = fix.pytorchjob(master=pinned + tolerating, worker=pinned)
    text = text.replace("        spec:\n", "        metadata: {labels: {tier: cpu}}\n        spec:\n", 1)
    head, tail = text.split("    Worker:")
    return (
        head + "    Worker:" + tail.replace("        spec:\n", "        metadata: {labels: {tier: gpu}}\n        spec:\n", 1)
    )


KNP = """\
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: lock, namespace: train}
spec:
  podSelector: {matchLabels: {tier: gpu}}
  policyTypes: [Ingress, Egress]
  ingress:
    - from: [{podSelector: {matchLabels: {app: web}}}]
  egress:
    - to: [{podSelector: {matchLabels: {app: db}}}]
"""
CNP = """\
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: {name: lock, namespace: train}
spec:
  endpointSelector: {matchLabels: {tier: gpu}}
  ingress:
    - fromEndpoints: [{matchLabels: {app: web}}]
  egress:
    - toEndpoints: [{matchLabels: {app: db}}]
"""


@pytest.mark.parametrize(
    ("policy", "cni"),
    [(KNP, ""), (KNP, "cilium@1.19"), (CNP, "cilium@1.19"), (CNP, "cilium@1.15"), (CNP, "")],
    ids=["netpol", "netpol-on-cilium", "cilium-1.19", "cilium-1.15", "cilium"],
)
def test_default_deny_of_one_role(fix: Any, policy: str, cni: str) -> None:
    before = before_of(fix, job(fix), policy, cni=cni)
    run = fix(job(fix), policy, cni=cni)
    the_job_talks(run)
    nobody_else_gains_or_loses(before, run.fixed.after.judgement)


def added(run: fixrun.Run, name: str = "1.yaml") -> list[Any]:
    return list(yaml.safe_load_all(run.fixed.texts[name]))[1:]


def test_network_policy_selects_only_the_role_that_is_isolated(fix: Any) -> None:
    """A NetworkPolicy isolates whom it selects: the master, open until now, must not be selected."""
    [made] = added(fix(job(fix), KNP))
    own = {"podSelector": {"matchLabels": {f"{L1}/job-name": "llm"}}}
    dns = {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}},
        "podSelector": {"matchLabels": {"k8s-app": "kube-dns"}},
    }
    assert made == {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": "llm-ranks", "namespace": "train"},
        "spec": {
            "podSelector": {"matchLabels": {f"{L1}/job-name": "llm", f"{L1}/replica-type": "worker"}},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [{"from": [own], "ports": [{"protocol": "TCP"}]}],
            "egress": [
                {"to": [own], "ports": [{"protocol": "TCP"}]},
                {"to": [dns], "ports": [{"protocol": "TCP", "port": 53}, {"protocol": "UDP", "port": 53}]},
            ],
        },
    }


def test_current_cilium_says_that_the_allow_does_not_isolate(fix: Any) -> None:
    [made] = added(fix(job(fix), CNP, cni="cilium@1.19"))
    assert made["kind"] == "CiliumNetworkPolicy"
    assert made["spec"]["enableDefaultDeny"] == {"ingress": False, "egress": False}
    assert made["spec"]["endpointSelector"] == {"matchLabels": {f"{L1}/job-name": "llm"}}
    [ingress] = made["spec"]["ingress"]
    assert ingress == {
        "fromEndpoints": [{"matchLabels": {f"{L1}/job-name": "llm"}}],
        "toPorts": [{"ports": [{"port": "1", "endPort": 65535, "protocol": "TCP"}]}],
    }


def test_old_cilium_gets_a_policy_it_knows(fix: Any) -> None:
    [made] = added(fix(job(fix), CNP, cni="cilium@1.15"))
    assert "enableDefaultDeny" not in made["spec"]
    assert made["spec"]["endpointSelector"]["matchLabels"][f"{L1}/replica-type"] == "worker"
    assert made["spec"]["ingress"][0]["toPorts"] == [{"ports": [{"port": "0", "protocol": "TCP"}]}]


DENY = """\
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: {name: boundary, namespace: train}
spec:
  endpointSelector: {matchLabels: {tier: gpu}}   # the GPU tier
  enableDefaultDeny: {ingress: false}
  ingressDeny:
    - fromEndpoints:
        - matchLabels: {tier: cpu}
"""


EXCEPT_JOB = "{key: training.kubeflow.org/job-name, operator: NotIn, values: [llm]}"
NARROWED = DENY.replace("{tier: gpu}}", "{tier: gpu}, matchExpressions: [" + EXCEPT_JOB + "]}")
NARROWED += """\
---
# boundary for the pods of PyTorchJob train/llm: the same rules, but they may reach each other.
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata:
  name: boundary-llm
  namespace: train
spec:
  endpointSelector:
    matchLabels:
      tier: gpu
      training.kubeflow.org/job-name: llm
  enableDefaultDeny:
    ingress: false
  ingressDeny:
    - fromEndpoints:
        - matchLabels:
            tier: cpu
          matchExpressions:
            - key: training.kubeflow.org/job-name
              operator: NotIn
              values:
                - llm
"""


def test_a_deny_rule_is_narrowed_for_the_job_alone(fix: Any) -> None:
    before = before_of(fix, job(fix), DENY)
    run = fix(job(fix), DENY)
    the_job_talks(run)
    nobody_else_gains_or_loses(before, run.fixed.after.judgement)
    assert run.fixed.texts["1.yaml"] == NARROWED


def test_a_deny_rule_under_default_deny_needs_both(fix: Any) -> None:
    """Narrowing the deny leaves the default deny, so an allow is needed as well."""
    policy = DENY.replace("  enableDefaultDeny: {ingress: false}\n", "")
    before = before_of(fix, job(fix), policy)
    run = fix(job(fix), policy)
    the_job_talks(run)
    nobody_else_gains_or_loses(before, run.fixed.after.judgement)
    assert {r.slug for r in run.fixed.remedies} == {"narrow-deny", "allow-peers"}


@pytest.mark.parametrize(
    "policy",
    [
        DENY.replace("CiliumNetworkPolicy", "CiliumClusterwideNetworkPolicy").replace(", namespace: train", ""),
        DENY.replace("fromEndpoints:\n        - matchLabels: {tier: cpu}", "fromEntities: [cluster]"),
        DENY.replace(
            "fromEndpoints:\n        - matchLabels: {tier: cpu}", "toPorts: [{ports: [{port: '40000', protocol: TCP}]}]"
        ),
    ],
    ids=["cluster-wide", "entities", "any-peer"],
)
def test_a_deny_that_cannot_be_narrowed_exactly_is_left_to_its_owner(fix: Any, policy: str) -> None:
    run = fix(job(fix), policy)
    assert run.changes == ()
    assert run.fixed.unfixed
    assert "boundary" in run.fixed.unfixed[0].reason


def test_the_api_server_is_an_entity_for_cilium_only(fix: Any) -> None:
    text = job(fix).replace("kind: PyTorchJob", "kind: MPIJob").replace("pytorchReplicaSpecs", "mpiReplicaSpecs")
    text = text.replace("    Master:", "    Launcher:").replace("tier: cpu", "tier: gpu")
    policy = CNP + "    - toEndpoints: [{}]\n"
    run = fix(text, policy)
    rules = [r for made in added(run) for r in made["spec"].get("egress", ()) if "toEntities" in r]
    assert rules == [
        {
            "toEntities": ["kube-apiserver"],
            "toPorts": [{"ports": [{"port": "443", "protocol": "TCP"}, {"port": "6443", "protocol": "TCP"}]}],
        }
    ]


def test_the_policy_goes_beside_the_job_when_the_blocker_is_in_no_file_of_its_namespace(fix: Any) -> None:
    cluster = CNP.replace("CiliumNetworkPolicy", "CiliumClusterwideNetworkPolicy").replace(", namespace: train", "")
    run = fix(job(fix), cluster)
    assert [c.path for c in run.changes] == ["0.yaml"]
    the_job_talks(run)


def test_co_location_comes_first_and_may_make_the_policy_no_obstacle(fix: Any) -> None:
    """A boundary on the zone label that Kubernetes 1.35+ copies: once the job is in one zone nothing is denied."""
    boundary = """\
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: zone-b-only, namespace: train}
spec:
  podSelector: {matchLabels: {topology.kubernetes.io/zone: zone-b}}
  policyTypes: [Ingress]
  ingress:
    - from: [{podSelector: {matchLabels: {topology.kubernetes.io/zone: zone-b}}}]
"""
    run = fix(fix.pytorchjob(), boundary)
    assert [r.slug for r in run.fixed.remedies] == ["pin-zone"]
    assert [c.path for c in run.changes] == ["0.yaml"]
    assert any("denied peer edges are allowed now" in t for p in run.fixed.proofs for t in p.proved)


def test_a_second_run_finds_nothing(fix: Any) -> None:
    first = fix(job(fix), KNP)
    again = fix(first.fixed.texts["0.yaml"], first.fixed.texts["1.yaml"])
    assert again.changes == ()


def test_a_name_that_is_taken_is_not_used_again(fix: Any) -> None:
    taken = KNP.replace("name: lock", "name: llm-ranks")
    [made] = added(fix(job(fix), taken))
    assert made["metadata"]["name"] == "llm-ranks-2"
