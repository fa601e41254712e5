"""What every finding owes its reader, checked on all broken examples at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from stallscope.analysis import analyse
from stallscope.findings import Finding, Severity
from stallscope.load.inputs import LoadRequest, load_inputs
from stallscope.rules.registry import RULES

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
BROKEN = sorted(p for p in (EXAMPLES / "broken").iterdir() if p.is_dir())


def findings(directory: Path) -> tuple[Finding, ...]:
    return analyse(load_inputs(LoadRequest(paths=(str(directory),)))).findings


@pytest.mark.parametrize("directory", BROKEN, ids=lambda p: p.name)
def test_findings_are_readable(directory: Path) -> None:
    for found in findings(directory):
        assert "\n" not in found.message
        assert len(found.message) <= 260
        assert not found.message.endswith(".")
        assert found.subject
        assert [x.primary for x in found.labels].count(True) == 1
        assert all(x.location.file and x.text and "\n" not in x.text for x in found.labels)
        assert found.help


@pytest.mark.parametrize("directory", BROKEN, ids=lambda p: p.name)
def test_fingerprints_hold_no_line_numbers_and_tell_findings_apart(directory: Path) -> None:
    found = findings(directory)
    prints = [(f.rule, f.subject, f.key) for f in found]
    assert len(set(prints)) == len(prints)
    moved = {str(f.primary.span.line) for f in found if f.primary.span.line > 9}
    assert not any(line in f.key.split(":") for f in found for line in moved)


def test_errors_and_warnings_about_jobs_say_what_the_user_will_see() -> None:
    silent = {"STL107", "STL110", "STL205", "STL207", "STL208", "STL209", "STL210", "STL307"}
    for directory in BROKEN:
        for found in findings(directory):
            if found.severity is Severity.INFO or found.rule in silent or found.rule.startswith("STL9"):
                continue
            assert any("what you will see" in note for note in found.notes), (directory.name, found.rule)


def test_fixable_findings_come_from_rules_that_promise_a_fix() -> None:
    fixable = {r.id for r in RULES if r.fixable}
    seen = {f.rule for d in BROKEN for f in findings(d) if f.fixable}
    assert seen <= fixable
