"""Every job kind in a namespace that denies everything: after the fix all it needs is allowed, and only for the job."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stallscope.model.traffic import Endpoint, FlowKind, Outcome, PeerEdge

KINDS = sorted((Path(__file__).parent / "kinds").glob("*.yaml"))
NETPOL = """\
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: lock, namespace: train}
spec:
  podSelector: {}
  policyTypes: [Ingress, Egress]
"""
CILIUM = """\
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: {name: lock, namespace: train}
spec:
  endpointSelector: {}
  ingress: [{}]
  egress: [{}]
"""
#: A NetworkPolicy has no way to name the API server.
IMPOSSIBLE = {NETPOL: {FlowKind.API_SERVER}, CILIUM: set()}


@pytest.mark.parametrize("policy", [NETPOL, CILIUM], ids=["netpol", "cilium"])
@pytest.mark.parametrize("kind", KINDS, ids=lambda p: p.stem)
def test_all_that_the_job_needs_is_allowed(fix: Any, kind: Path, policy: str) -> None:
    run = fix(kind.read_text(), policy, select=("STL2",))
    assert run.changes
    assert [p.failed for p in run.fixed.proofs] == [()]
    [judged] = run.fixed.after.judgement.jobs
    denied = [f for f in judged.flows if f.verdict.outcome is Outcome.DENIED and f.flow.required]
    assert {f.flow.kind for f in denied} <= IMPOSSIBLE[policy]
    again = fix(*(run.fixed.texts[name] for name in ("0.yaml", "1.yaml")), select=("STL2",))
    assert again.changes == ()


@pytest.mark.parametrize("policy", [NETPOL, CILIUM], ids=["netpol", "cilium"])
@pytest.mark.parametrize("kind", KINDS, ids=lambda p: p.stem)
def test_a_stranger_gets_nothing(fix: Any, kind: Path, policy: str) -> None:
    run = fix(kind.read_text(), policy, select=("STL2",))
    judgement = run.fixed.after.judgement
    [judged] = judgement.jobs
    stranger = Endpoint(name="stranger", namespace="train", labels=(("app", "web"),))
    for pod in judged.job.pods[:1] + judged.job.pods[-1:]:
        own = Endpoint(name=pod.name, namespace=pod.namespace, labels=tuple(sorted(pod.labels.items())))
        for source, destination in ((own, stranger), (stranger, own)):
            edge = PeerEdge(source=source, destination=destination, port=40000)
            assert judgement.policies.evaluate(edge).outcome is Outcome.DENIED
