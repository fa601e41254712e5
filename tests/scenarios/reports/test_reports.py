"""
Public reports rebuilt as small inputs of our own design and run through the whole pipeline: the finding must name the cause
that the thread established, at its line. Names, numbers and addresses are invented.

`expected.json`: `report` (the thread), `cause` (one sentence from it), `facts` about the cluster where they matter,
`findings` (rule, subject, file, line; and severity, labels, message where they carry the point), `absent` (rules that would
mislead here). docs/reports.md is the list of them.
"""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from stallscope.analysis import analyse
from stallscope.findings import Finding
from stallscope.judge.inputs import ClusterFacts
from stallscope.load.inputs import LoadRequest, load_inputs
from stallscope.rules.registry import RULES

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
REPORTS = sorted(p for p in HERE.iterdir() if (p / "expected.json").is_file())


def expected(directory: Path) -> dict[str, Any]:
    return json.loads((directory / "expected.json").read_text(encoding="utf-8"))


def place(location: Any) -> str:
    return f"{Path(location.file).name}:{location.span.line}"


def matches(finding: Finding, wanted: dict[str, Any]) -> bool:
    labels = {place(x.location) for x in finding.labels}
    return (
        (finding.rule, finding.subject) == (wanted["rule"], wanted["subject"])
        and place(finding.primary) == f"{wanted['file']}:{wanted['line']}"
        and str(finding.severity) == wanted.get("severity", str(finding.severity))
        and labels >= set(wanted.get("labels", ()))
        and wanted.get("message", "") in finding.message
    )


@pytest.mark.parametrize("directory", REPORTS, ids=lambda p: p.name)
def test_report_is_explained(directory: Path) -> None:
    wanted = expected(directory)
    facts = ClusterFacts(**wanted.get("facts", {}))
    found = analyse(load_inputs(LoadRequest(paths=(str(directory / "input"),), facts=facts))).findings
    shown = [
        (f.rule, str(f.severity), f.subject, place(f.primary), sorted({place(x.location) for x in f.labels})) for f in found
    ]
    assert wanted["findings"]
    for one in wanted["findings"]:
        assert any(matches(f, one) for f in found), (one, shown)
    assert {f.rule for f in found}.isdisjoint(wanted["absent"]), shown


@pytest.mark.parametrize("directory", REPORTS, ids=lambda p: p.name)
def test_expectations_are_well_formed(directory: Path) -> None:
    wanted = expected(directory)
    known = {rule.id for rule in RULES}
    assert wanted["report"].startswith("https://")
    assert wanted["cause"].endswith(".")
    assert {f["rule"] for f in wanted["findings"]} | set(wanted["absent"]) <= known
    for one in wanted["findings"]:
        lines = (directory / "input" / one["file"]).read_text(encoding="utf-8").splitlines()
        assert 1 <= one["line"] <= len(lines)


def test_enough_reports_are_rebuilt() -> None:
    families = [p.name.partition("-")[0] for p in REPORTS]
    assert len(REPORTS) >= 30
    assert sum(f in ("NP", "FW", "MESH", "HOST", "RDZV") for f in families) >= 25


def test_the_list_in_the_documentation_is_theirs() -> None:
    spec = importlib.util.spec_from_file_location("gen_reports", ROOT / "scripts" / "gen_reports.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    page = (ROOT / "docs" / "reports.md").read_text(encoding="utf-8")
    assert page == module.page(), "run: make docs"
