"""
Public reports, rebuilt as small inputs of our own design: the finding must name the cause that the thread established.
Names, numbers and addresses are invented; `report` in each expected.json is the thread.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stallscope.analysis import analyse
from stallscope.findings import Finding
from stallscope.load.inputs import LoadRequest, load_inputs

REPORTS = sorted(p for p in (Path(__file__).parent / "reports").iterdir() if p.is_dir())


def place(location: Any) -> str:
    return f"{Path(location.file).name}:{location.span.line}"


def matches(finding: Finding, wanted: dict[str, Any]) -> bool:
    labels = {place(x.location) for x in finding.labels}
    return (
        (finding.rule, str(finding.severity), finding.subject) == (wanted["rule"], wanted["severity"], wanted["subject"])
        and place(finding.primary) == wanted["primary"]
        and labels >= set(wanted["labels"])
        and wanted.get("message", "") in finding.message
    )


@pytest.mark.parametrize("directory", REPORTS, ids=lambda p: p.name)
def test_report_is_explained(directory: Path) -> None:
    wanted = json.loads((directory / "expected.json").read_text(encoding="utf-8"))
    found = analyse(load_inputs(LoadRequest(paths=(str(directory),)))).findings
    shown = [
        (f.rule, str(f.severity), f.subject, place(f.primary), sorted({place(x.location) for x in f.labels})) for f in found
    ]
    assert any(matches(f, wanted) for f in found), shown


def test_enough_reports_are_rebuilt() -> None:
    assert len(REPORTS) >= 25
