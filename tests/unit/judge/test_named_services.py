"""Services of other people that a job names: found in variables, flags and URLs, judged at the port behind the Service."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from stallscope.analysis import analyse
from stallscope.judge.services import named_services
from stallscope.load.inputs import load_text
from stallscope.model.traffic import Outside

CACHE = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "cache", "namespace": "data"},
    "spec": {"selector": {"app": "cache"}, "ports": [{"port": 80, "targetPort": 9000}]},
}


def service(name: str, app: str, port: int) -> dict[str, Any]:
    spec = {"selector": {"app": app}, "ports": [{"port": port}]}
    return {**CACHE, "metadata": {"name": name, "namespace": "train"}, "spec": spec}


NEAR, OWN = service("tracker", "t", 5000), service("own", "llm", 80)


def job(text: str) -> dict[str, Any]:
    container = {"name": "pytorch", "image": "x", "env": [{"name": "ADDRESS", "value": text}]}
    template = {"metadata": {"labels": {"app": "llm"}}, "spec": {"containers": [container]}}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": "llm", "namespace": "train"},
        "spec": {"pytorchReplicaSpecs": {"Master": {"replicas": 1, "template": template}}},
    }


def named(text: str) -> list[tuple[str, int]]:
    bodies = (job(text), CACHE, NEAR, OWN)
    inputs = load_text({f"{i}.json": json.dumps(b) for i, b in enumerate(bodies)})
    found = named_services(inputs.jobs[0], inputs.objects)
    assert all(f.destination == Outside.SERVICE and not f.required for f in found)
    return [(end.endpoint.name, flow.ports[0].first) for flow, end in found.items() if end.endpoint]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("http://cache.data.svc.cluster.local/shards", [("Service data/cache", 9000)]),
        ("cache.data:80", [("Service data/cache", 9000)]),
        ("cache.data", [("Service data/cache", 9000)]),  # it has one port
        ("cache.data:81", []),  # a port it does not have
        ("cache", []),  # another namespace's Service needs the namespace
        ("tracker:5000", [("Service train/tracker", 5000)]),
        ("http://tracker:5000/api", [("Service train/tracker", 5000)]),
        ("tracker", []),  # a word, not an address
        ("my-tracker:5000", []),
        ("user@cache.data:80", []),
        ("own:80", []),  # the job's own pods stand behind it
        ("a,tracker:5000,cache.data:80", [("Service train/tracker", 5000), ("Service data/cache", 9000)]),
    ],
)
def test_what_counts_as_a_name(text: str, expected: list[tuple[str, int]]) -> None:
    assert sorted(named(text)) == sorted(expected)


def test_long_text_is_read_in_linear_time() -> None:
    start = time.process_time()
    for text in ("a" * 200_000, "a." * 100_000, "a-" * 100_000, "a://" * 50_000):
        assert named(text) == []
    assert time.process_time() - start < 5


def test_nothing_changes_without_policies() -> None:
    inputs = load_text({"j.json": json.dumps(job("cache.data:80")), "s.json": json.dumps(CACHE)})
    judged = analyse(inputs).judgement.jobs[0]
    assert [str(f.verdict.outcome) for f in judged.flows if f.flow.destination == Outside.SERVICE] == ["allowed"]
