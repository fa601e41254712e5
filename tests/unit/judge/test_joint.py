"""The joint judgement on the incident's own files: every pair is judged, and the answer follows the placement."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from stallscope.analysis import analyse
from stallscope.judge.ask import ask
from stallscope.judge.compare import compare
from stallscope.judge.facts import complete, parse_version
from stallscope.judge.inputs import ClusterFacts, Inputs
from stallscope.judge.result import Answer
from stallscope.load.inputs import LoadRequest, load_inputs
from stallscope.model.kube import from_body
from stallscope.model.traffic import FlowKind, Outcome, port
from stallscope.render import changes, reach

INCIDENT = Path(__file__).parents[3] / "examples" / "incident"


def load(*names: str, **facts: object) -> Inputs:
    paths = tuple(str(INCIDENT / name) for name in names)
    return load_inputs(LoadRequest(paths=paths, facts=ClusterFacts(**facts)))


@pytest.fixture(scope="module")
def incident():
    return analyse(load("nodes.yaml", "job.yaml", "policy.yaml")).judgement


def pairs(judged, kind):
    return sum(f.pairs for f in judged.flows if f.flow.kind is kind)


def test_every_ordered_pair_is_judged_once(incident):
    (judged,) = incident.jobs
    assert pairs(judged, FlowKind.COLLECTIVE) == 5 * 4  # one coordinator and four workers, both ways
    assert pairs(judged, FlowKind.RENDEZVOUS) == 4  # each worker to rank 0
    assert pairs(judged, FlowKind.DNS) == 5 * 2  # UDP and TCP


def test_exactly_the_edges_between_the_net_zones_are_denied(incident):
    (judged,) = incident.jobs
    denied = judged.with_outcome(Outcome.DENIED)
    assert {(f.source_role, f.destination_role) for f in denied} == {("Worker", "Master"), ("Master", "Worker")}
    assert sum(f.pairs for f in denied if f.flow.kind is FlowKind.COLLECTIVE) == 8
    assert sum(f.pairs for f in denied if f.flow.kind is FlowKind.RENDEZVOUS) == 4


def test_the_witness_is_a_split_across_the_zones_the_nodes_have(incident):
    (judged,) = incident.jobs
    assert judged.can_split is Answer.YES
    assert judged.witness is not None
    zones = {judged.witness.zone_of(p.name) for p in judged.job.pods}
    assert zones == {"zone-a", "zone-b", "zone-c"}
    assert judged.witness.zone_of("llm-master-0") == "zone-c"


def test_without_nodes_the_answer_is_about_the_manifest():
    (judged,) = analyse(load("job.yaml")).judgement.jobs
    assert judged.witness is None
    assert judged.can_split is not Answer.NO
    assert any("--nodes" in c for c in judged.caveats)


def test_without_policies_everything_is_allowed():
    (judged,) = analyse(load("nodes.yaml", "job.yaml")).judgement.jobs
    assert {f.verdict.outcome for f in judged.flows} == {Outcome.ALLOWED}


def test_one_question_about_a_pair(incident):
    (judged,) = incident.jobs
    (answer,) = ask(incident, judged, "worker", "llm-master-0", port(23456))[:1]
    assert answer.verdict.outcome is Outcome.DENIED
    reasoning = reach.explain(answer)
    assert "policy.yaml:9" in reasoning
    assert "needs net-zone=gpu" in reasoning
    allowed = ask(incident, judged, "llm-worker-0", "llm-worker-1", port(40000))
    assert {a.verdict.outcome for a in allowed} == {Outcome.ALLOWED}
    assert all(a.source == "llm-worker-0" and a.destination == "llm-worker-1" for a in allowed)


def test_review_gate_names_the_flows_a_policy_takes_away(incident):
    before = analyse(load("nodes.yaml", "job.yaml")).judgement
    found = compare(before, incident)
    assert found.worse
    assert {(str(e.after.flow.kind), e.after.source_role, e.after.destination_role) for e in found.edges} == {
        ("rendezvous", "Worker", "Master"),
        ("collective", "Worker", "Master"),
        ("collective", "Master", "Worker"),
    }
    assert "policy.yaml:9" in changes.text(found, "main")
    assert not compare(incident, incident)
    back = compare(incident, before)
    assert back and not back.worse


def test_a_zone_boundary_on_topology_labels_depends_on_the_cilium_release():
    """Cilium leaves topology.kubernetes.io/* out of identities from 1.18.7 on; up to 1.18.6 the policy bites."""
    folder = INCIDENT.parent / "incident-topology-label"
    paths = (str(folder), str(INCIDENT / "nodes.yaml"))

    def denied(version):
        facts = ClusterFacts(cni="cilium", cni_version=version)
        (judged,) = analyse(load_inputs(LoadRequest(paths=paths, facts=facts))).judgement.jobs
        return {f.zones for f in judged.with_outcome(Outcome.DENIED) if f.flow.kind is FlowKind.COLLECTIVE}

    assert denied((1, 18, 7)) == set()
    old = denied((1, 18, 6))
    assert ("zone-b", "zone-a") in old
    assert ("zone-a", "zone-a") not in old


@pytest.mark.parametrize(("version", "said"), [((1, 19, 4), True), ((1, 19, 5), False), ((1, 18, 6), False)])
def test_the_release_that_reads_an_ip_block_too_widely_is_named(tmp_path, version, said):
    """cilium#46305: an ingress peer with only an ipBlock also admits the namespace, in 1.19.0 to 1.19.4."""
    policy = """---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: outside, namespace: train}
spec: {podSelector: {}, ingress: [{from: [{ipBlock: {cidr: 192.0.2.0/24}}]}]}
"""
    (tmp_path / "all.yaml").write_text((INCIDENT / "job.yaml").read_text() + policy)
    facts = ClusterFacts(cni="cilium", cni_version=version)
    (judged,) = analyse(load_inputs(LoadRequest(paths=(str(tmp_path),), facts=facts))).judgement.jobs
    assert any("cilium#46305" in c for c in judged.caveats) is said


def test_facts_come_from_the_snapshot_unless_stated():
    node = from_body({"apiVersion": "v1", "kind": "Node", "status": {"nodeInfo": {"kubeletVersion": "v1.34.1"}}})
    agent = {"name": "cilium-agent", "image": "quay.example/cilium/cilium:v1.18.6@sha256:0"}
    daemonset = from_body(
        {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": {"name": "cilium"},
            "spec": {"template": {"spec": {"containers": [agent]}}},
        }
    )
    found = complete(ClusterFacts(), [node, daemonset])
    assert (found.kubernetes_version, found.cni, found.cni_version) == ((1, 34), "cilium", (1, 18, 6))
    assert complete(ClusterFacts(cni="calico"), [daemonset]).cni == "calico"
    assert parse_version("nothing") == ()


def test_labels_of_a_namespace_nobody_described_stay_unknown(tmp_path):
    """Only the API server's own name label is certain; `team` may or may not be there."""
    job = (INCIDENT / "job.yaml").read_text()
    template = """
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {{name: p, namespace: train}}
spec:
  podSelector: {{}}
  ingress:
    - from: [{{namespaceSelector: {{matchLabels: {{{label}}}}}}}]
"""

    def collective(label, namespace=""):
        (tmp_path / "all.yaml").write_text(job + "---" + template.format(label=label) + namespace)
        (judged,) = analyse(load_inputs(LoadRequest(paths=(str(tmp_path),)))).judgement.jobs
        return {f.verdict.outcome for f in judged.flows if f.flow.kind is FlowKind.COLLECTIVE}

    described = "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: train, labels: {team: web}}\n"
    assert collective("kubernetes.io/metadata.name: train") == {Outcome.ALLOWED}
    assert collective("team: ml") == {Outcome.UNJUDGED}
    assert collective("team: ml", described) == {Outcome.DENIED}
    assert collective("team: web", described) == {Outcome.ALLOWED}


def test_renaming_ranks_changes_no_verdict(incident):
    inputs = incident.inputs
    (job,) = inputs.jobs
    renamed = replace(job, pods=tuple(replace(p, name=f"x{i}") for i, p in enumerate(job.pods)))
    again = analyse(replace(inputs, jobs=(renamed,))).judgement

    def essence(judgement):
        return sorted(
            (str(f.flow.kind), f.source_role, f.destination_role, f.zones, str(f.verdict.outcome), f.pairs)
            for f in judgement.jobs[0].flows
        )

    assert essence(again) == essence(incident)
