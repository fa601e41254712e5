"""No manifest makes expansion raise: every value of every scenario is replaced by values of every other type."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stallscope.load.kinds import expand
from stallscope.load.stream import parse_stream
from stallscope.model.kube import from_body

ROOT = Path(__file__).parents[2] / "scenarios" / "kinds"
JUNK: tuple[Any, ...] = (None, True, -7, 2**40, "x y", [], [None, 3], {"a": {"b": [1]}}, [{"name": 5}])


def plain(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {k: plain(v) for k, v in tree.items()}
    return [plain(v) for v in tree] if isinstance(tree, list) else tree


def routes(tree: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    steps = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for step, value in steps:
        yield (*above, step)
        yield from routes(value, (*above, step))


def replaced(tree: Any, route: tuple[Any, ...], value: Any) -> Any:
    result = copy.deepcopy(tree)
    node = result
    for step in route[:-1]:
        node = node[step]
    node[route[-1]] = value
    return result


@pytest.mark.parametrize("name", sorted(p.parent.name for p in ROOT.glob("*/input.yaml")))
def test_any_value_may_have_any_type(name: str) -> None:
    text = (ROOT / name / "input.yaml").read_text(encoding="utf-8")
    bodies = [plain(d.value) for d in parse_stream(text)[0]]
    for at, body in enumerate(bodies):
        for route in routes(body):
            for value in JUNK:
                changed = [*bodies[:at], replaced(body, route, value), *bodies[at + 1 :]]
                jobs, problems = expand([from_body(b) for b in changed])
                assert all("\n" not in p.message for p in problems)
                assert all(sum(r.replicas for r in j.roles) < 20_001 or not j.pods for j in jobs)


def test_missing_parts_never_raise() -> None:
    text = (ROOT / "pytorchjob" / "input.yaml").read_text(encoding="utf-8")
    body = plain(parse_stream(text)[0][0].value)
    for route in routes(body):
        changed = copy.deepcopy(body)
        node = changed
        for step in route[:-1]:
            node = node[step]
        del node[route[-1]]
        expand([from_body(changed)])


@pytest.mark.parametrize("kind", ["Job", "PyTorchJob", "Workflow", "AppWrapper", "RayJob", "TrainJob"])
@pytest.mark.parametrize(
    "group", ["kubeflow.org/v1", "batch/v1", "ray.io/v1", "argoproj.io/v1alpha1", "workload.codeflare.dev/v1beta2"]
)
def test_bodies_of_nothing(kind: str, group: str) -> None:
    for spec in JUNK:
        expand([from_body({"apiVersion": group, "kind": kind, "metadata": {"name": "x"}, "spec": spec})])


def test_wrappers_in_wrappers_end() -> None:
    body: dict[str, Any] = {"apiVersion": "kubeflow.org/v1", "kind": "JAXJob", "metadata": {"name": "deep"}}
    for depth in range(50):
        body = {
            "apiVersion": "workload.codeflare.dev/v1beta2",
            "kind": "AppWrapper",
            "metadata": {"name": f"w{depth}"},
            "spec": {"components": [{"template": body}]},
        }
    assert expand([from_body(body)]) == ((), ())
