from __future__ import annotations

import json
from dataclasses import replace

import jsonschema
import pytest

from stallscope.errors import UsageError
from stallscope.findings import Finding, Label, Severity, SuppressedBy
from stallscope.load.baseline import apply_baseline, dump_baseline, read_baseline
from stallscope.model.source import Location, Span
from stallscope.render import schema


def finding(rule: str = "STL201", subject: str = "Job a/b", key: str = "k", line: int = 1) -> Finding:
    label = Label(location=Location(file="a.yaml", span=Span(line, 1, line, 2, 0, 0)), text="", primary=True)
    return Finding(rule=rule, slug="s", severity=Severity.ERROR, message="m", labels=(label,), subject=subject, key=key)


@pytest.fixture
def saved(tmp_path):
    def save(*findings: Finding):
        path = tmp_path / "baseline.json"
        path.write_text(dump_baseline(findings))
        return read_baseline(path)

    return save


def test_accepted_findings_stay_accepted_when_lines_move(saved) -> None:
    accepted = saved(finding(line=1), finding(rule="STL101"))
    moved, new = finding(line=80), finding(subject="Job a/c")
    result = apply_baseline([moved, new], accepted)
    assert result.kept == (new,)
    assert [(s.finding, s.by) for s in result.suppressed] == [(moved, SuppressedBy.BASELINE)]
    assert result.stale == 1


def test_one_more_of_an_accepted_kind_is_new(saved) -> None:
    accepted = saved(finding(), finding())
    result = apply_baseline([finding()] * 3, accepted)
    assert (len(result.kept), len(result.suppressed), result.stale) == (1, 2, 0)


def test_entries_of_rules_that_did_not_run_are_not_stale(saved) -> None:
    accepted = saved(finding(), finding(rule="STL101"))
    assert apply_baseline([], accepted, enabled=lambda rule: rule == "STL101").stale == 1


def test_the_file_is_sorted_and_follows_its_schema() -> None:
    findings = [finding("STL201", "b"), finding("STL101", "z"), finding("STL201", "a"), finding("STL201", "a", line=9)]
    text = dump_baseline(findings)
    assert text == dump_baseline(reversed(findings))
    data = json.loads(text)
    jsonschema.validate(data, json.loads(schema.read("baseline-1")))
    assert [(e["rule"], e["subject"], e["count"]) for e in data["findings"]] == [
        ("STL101", "z", 1),
        ("STL201", "a", 2),
        ("STL201", "b", 1),
    ]


def test_fingerprints_see_rule_subject_and_key_only() -> None:
    base = finding()
    assert base.fingerprint == replace(base, message="x", labels=(), severity=Severity.INFO, notes=("n",)).fingerprint
    changed = [replace(base, rule="STL202"), replace(base, subject="Job a/bk", key=""), replace(base, key="l")]
    assert len({f.fingerprint for f in [base, *changed]}) == 4
    # sha256 of "STL201\0Job a/b\0k", first 32 hex digits: a change here would orphan every committed baseline
    assert base.fingerprint == FINGERPRINT


FINGERPRINT = "c70e279adabc63a9908d67c87f2c42c9"


ENTRIES = ("3", "{}", '{"fingerprint": 3}', '{"fingerprint": "a", "count": 0}')


@pytest.mark.parametrize(
    "text",
    [
        *("", "[]", "{}", '{"findings": []}', '{"schemaVersion": "2", "findings": []}', "[" * 100_000, "\x00", "\xff"),
        *(f'{{"schemaVersion": "1", "findings": [{entry}]}}' for entry in ENTRIES),
    ],
)
def test_a_wrong_file_is_one_clear_error(tmp_path, text) -> None:
    path = tmp_path / "b.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(UsageError, match=r"^baseline .*b\.json: ") as caught:
        read_baseline(path)
    assert caught.value.hint == "write one with --write-baseline"


def test_a_missing_file(tmp_path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        read_baseline(tmp_path / "none.json")
