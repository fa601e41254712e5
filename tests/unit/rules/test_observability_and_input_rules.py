from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stallscope.analysis import analyse
from stallscope.findings import Finding, Severity
from stallscope.judge.inputs import Inputs, Problem, ProblemKind
from stallscope.model.source import Location, Span
from stallscope.rules.registry import RULES

Check = Callable[..., list[Finding]]
Build = Callable[..., dict[str, Any]]
Template = Callable[..., dict[str, Any]]
EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


def with_container(template: Template, **fields: Any) -> dict[str, Any]:
    return {"spec": {"containers": template(**fields)["spec"]["containers"]}}


def monitor(labels: dict[str, str], namespace: str = "train") -> dict[str, Any]:
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PodMonitor",
        "metadata": {"name": "training", "namespace": namespace},
        "spec": {"selector": {"matchLabels": labels}},
    }


# -- observability -----------------------------------------------------------------------------------------------


def test_silence_is_advice_never_more(check: Check, pytorch: Build) -> None:
    found = check("", pytorch())
    assert {f.rule for f in found} == {"STL401", "STL402"}
    assert {f.severity for f in found} == {Severity.INFO}


@pytest.mark.parametrize(
    ("fields", "annotations"),
    [
        ({"ports": [{"name": "metrics", "containerPort": 9464}]}, {}),
        ({}, {"prometheus.io/scrape": "true"}),
        ({"command": ["stallscope", "probe", "--", "torchrun", "train.py"]}, {}),
        ({"env": [{"name": "NCCL_PROFILER_PLUGIN", "value": "inspector"}]}, {}),
        ({"env": [{"name": "NCCL_PROFILER_PLUGIN", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}}]}, {}),
    ],
)
def test_what_counts_as_telemetry(
    check: Check, pytorch: Build, template: Template, fields: dict[str, Any], annotations: dict[str, str]
) -> None:
    worker = {**with_container(template, **fields), "metadata": {"annotations": annotations}}
    assert check("STL401", pytorch(worker=worker)) == []


@pytest.mark.parametrize(
    ("scraped", "quiet"),
    [(monitor({"app": "llm"}), True), (monitor({"app": "web"}), False), (monitor({"app": "llm"}, "web"), False)],
)
def test_a_pod_monitor_counts_when_it_selects_the_pods(
    check: Check, pytorch: Build, scraped: dict[str, Any], quiet: bool
) -> None:
    assert (check("STL401", pytorch(), scraped) == []) is quiet


@pytest.mark.parametrize(
    ("env", "fires"),
    [
        ([], True),
        ([{"name": "TORCH_FR_DUMP_TEMP_FILE", "value": "/ckpt/fr_"}], False),
        ([{"name": "TORCH_NCCL_DEBUG_INFO_TEMP_FILE", "value": "/ckpt/fr_"}], False),
        ([{"name": "TORCH_NCCL_TRACE_BUFFER_SIZE", "value": "0"}], True),
    ],
)
def test_flight_recorder(check: Check, pytorch: Build, template: Template, env: list[dict[str, str]], fires: bool) -> None:
    both = with_container(template, env=env)
    assert bool(check("STL402", pytorch(both, both))) is fires


def test_variables_from_elsewhere_are_not_called_missing(check: Check, pytorch: Build, template: Template) -> None:
    both = with_container(template, envFrom=[{"configMapRef": {"name": "nccl"}}])
    assert check("STL402", pytorch(both, both)) == []


# -- input -------------------------------------------------------------------------------------------------------

RULE_OF = {
    ProblemKind.UNREADABLE: "STL901",
    ProblemKind.UNRENDERED: "STL902",
    ProblemKind.DUPLICATE_KEY: "STL904",
    ProblemKind.DUPLICATE_OBJECT: "STL904",
    ProblemKind.INVALID: "STL905",
    ProblemKind.UNSUPPORTED: "STL906",
}


@pytest.mark.parametrize("kind", ProblemKind)
def test_every_kind_of_problem_becomes_one_finding(kind: ProblemKind) -> None:
    place = Location(file="a.yaml", span=Span(3, 5, 3, 9, 0, 4))
    problem = Problem(kind=kind, message="Job default/a: something", location=place, hint="do this", subject="Job default/a")
    found = [f for f in analyse(Inputs(problems=(problem,), files=1)).findings if f.rule != "STL903"]
    assert [(f.rule, f.message, f.help, f.subject) for f in found] == [
        (RULE_OF[kind], "Job default/a: something", "do this", "Job default/a")
    ]
    assert str(found[0].primary) == "a.yaml:3:5"


def test_nothing_at_all_is_a_finding_not_a_success() -> None:
    (found,) = analyse(Inputs()).findings
    assert (found.rule, found.severity) == ("STL903", Severity.WARNING)


def test_no_rule_minds_empty_input() -> None:
    judgement = analyse(Inputs()).judgement
    assert {f.rule for r in RULES for f in r.check(judgement)} == {"STL903"}


def test_unused_suppressions_are_found_by_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    from stallscope.cli.main import run

    codes = {}
    for side in ("broken", "fixed"):
        given = ["check", "-o", "short", "--fail-on", "warning", str(EXAMPLES / side / "unused-suppression")]
        codes[side] = run(given, prog="stallscope")
        text = capsys.readouterr().out
        assert ("STL990" in text) is (side == "broken")
    assert codes == {"broken": 1, "fixed": 0}
