"""
The engines' own answers for reports whose cause is a policy or a mesh: more questions than one job's flows ask.

`engine.yaml` is our own design. `engine.json`: `says` (the cause), `cni`, `pods` and `asks` for network policy (a port,
or a range of which every port must have the outcome, or `first` = the first port that is not allowed), `mesh` for Istio,
`selects_nothing`, `ignored`, `findings`; `also` repeats with another engine, mesh or input.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stallscope.analysis import analyse
from stallscope.load.inputs import load_text
from stallscope.model.traffic import DirectionVerdict, Endpoint, PortRange, Protocol, Verdict
from stallscope.policy.engine import EngineOptions, PolicySet, compile_policies
from stallscope.policy.insight import selects_nothing
from stallscope.policy.istio import MeshPod, membership, mesh_facts
from stallscope.policy.istio_path import mesh_path

HERE = Path(__file__).resolve().parent
CASES = sorted(p.parent.name for p in HERE.glob("*/engine.json"))
NAMESPACES = {n: {} for n in ("train", "other", "data", "kube-system", "kubeflow", "monitoring", "hub", "dask")}


def endpoint(name: str, body: dict[str, Any]) -> Endpoint:
    return Endpoint(
        name=name,
        namespace=body.get("namespace", ""),
        labels=tuple(body.get("labels", {}).items()),
        named_ports=tuple((n, Protocol.TCP, p) for n, p in body.get("namedPorts", {}).items()),
        host_network=body.get("hostNetwork", False),
        node=body.get("node", ""),
        ip=body.get("ip", ""),
        reserved=tuple(body.get("reserved", ())),
    )


@pytest.mark.parametrize("case", CASES)
def test_report(case: str) -> None:
    expected = json.loads((HERE / case / "engine.json").read_text(encoding="utf-8"))
    assert expected["says"]
    check(case, expected)
    for other in expected.get("also", ()):
        check(case, {"pods": expected.get("pods", {}), **other})


def check(case: str, expected: dict[str, Any]) -> None:
    name = expected.get("input", "engine.yaml")
    inputs = load_text({name: (HERE / case / name).read_text(encoding="utf-8")})
    options = EngineOptions(cni=expected.get("cni", "generic"), namespaces=NAMESPACES)
    policy_set = compile_policies(inputs.objects, options)
    ends = {n: endpoint(n, b) for n, b in expected.get("pods", {}).items()}
    for question in expected.get("asks", ()):
        check_ask(policy_set, ends, question)
    if "selects_nothing" in expected:
        assert [f.policy.name for f in selects_nothing(policy_set, ends.values())] == expected["selects_nothing"]
    if "ignored" in expected:
        assert [w in i.reason for i, w in zip(policy_set.ignored, expected["ignored"], strict=True)] == [True]
    for question in expected.get("mesh", {}).get("asks", ()):
        check_mesh(inputs.objects, expected["mesh"]["pods"], question)
    if "findings" in expected:
        found = {f.rule for f in analyse(inputs).findings}
        assert set(expected["findings"]) <= found


def check_ask(policy_set: PolicySet, ends: dict[str, Endpoint], question: dict[str, Any]) -> None:
    source, destination = ends[question["from"]], ends[question["to"]]
    first, _, last = str(question["port"]).partition("-")
    ports = PortRange(int(first), int(last or first), Protocol(question.get("protocol", "TCP")))
    stretches = policy_set.evaluate_range(source, destination, ports)
    if "first" in question:
        denied = policy_set.first_denied_port(source, destination, ports)
        assert denied is not None
        assert (denied[0], denied[1].outcome) == (question["first"], question["outcome"]), question
        check_words(denied[1], question)
        return
    assert {v.outcome.value for _, v in stretches} == {question["outcome"]}, question
    check_words(stretches[0][1], question)


def check_words(verdict: Verdict, question: dict[str, Any]) -> None:
    deciding: DirectionVerdict = verdict.deciding
    if "side" in question:
        assert deciding.direction == question["side"]
    if "nearest" in question:
        assert any(question["nearest"] in near.why for near in deciding.nearest), deciding.nearest
    if "isolating" in question:
        assert question["isolating"] in [r.policy for r in deciding.isolating]
    if "reason" in question:
        assert question["reason"] in verdict.reason


def check_mesh(objects: Any, pods: dict[str, Any], question: dict[str, Any]) -> None:
    facts = mesh_facts(objects, {})
    source, destination = (MeshPod(**pods[question[end]]) for end in ("from", "to"))
    verdict = mesh_path(objects, facts, source, destination, question["port"], by_service=question.get("by_service", False))
    assert verdict.outcome == question["outcome"], (question, verdict.reason)
    assert question.get("reason", "") in verdict.reason
    if "path" in question:
        assert verdict.destination.path == question["path"]
    if "weak" in question:
        assert membership(source, facts).weak is question["weak"]
    if "rule" in question:
        assert [r.policy for r in verdict.rules] == [question["rule"]]
