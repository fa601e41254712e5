"""Every real manifest of the corpus beside the repository is read: no exception, in seconds, raw templates told as such."""

from __future__ import annotations

import csv
import time
from pathlib import Path

import pytest

from stallscope.judge.inputs import ProblemKind
from stallscope.load.inputs import LoadRequest, load_inputs
from stallscope.load.stream import parse_stream

CORPUS = Path(__file__).resolve().parents[4] / "shared" / "corpus"


@pytest.fixture(scope="module")
def rows() -> list[dict[str, str]]:
    if not (CORPUS / "MANIFEST.tsv").exists():
        pytest.skip("the corpus of real manifests is not present beside the repository")
    with (CORPUS / "MANIFEST.tsv").open(newline="") as table:
        return list(csv.DictReader(table, delimiter="\t"))


def file_of(row: dict[str, str]) -> Path:
    return CORPUS / row["repository"].replace("/", "__") / row["path"]


def test_all_of_it_at_once_within_ten_seconds(rows: list[dict[str, str]]) -> None:
    started = time.process_time()
    inputs = load_inputs(LoadRequest(paths=(str(CORPUS),)))
    assert time.process_time() - started < 10
    assert inputs.files == len(rows)
    assert not [p for p in inputs.problems if p.kind is ProblemKind.UNREADABLE]


def test_each_file_gives_the_kinds_the_manifest_lists(rows: list[dict[str, str]]) -> None:
    for row in rows:
        inputs = load_inputs(LoadRequest(paths=(str(file_of(row)),)))
        kinds = set(filter(None, row["kinds"].split(",")))
        if row["note"] == "raw-template" and not kinds & {"Workflow", "WorkflowTemplate"}:  # {{…}} is Argo's own
            assert ProblemKind.UNRENDERED in {p.kind for p in inputs.problems}, row["path"]
        elif ProblemKind.UNRENDERED not in {p.kind for p in inputs.problems}:
            assert kinds <= {o.kind for o in inputs.objects}, row["path"]


def test_each_file_reads_the_same_with_windows_line_ends(rows: list[dict[str, str]]) -> None:
    for row in rows:
        text = file_of(row).read_text()
        documents, problems = parse_stream(text)
        there, problems_there = parse_stream(text.replace("\n", "\r\n"))
        assert [d.value for d in there] == [d.value for d in documents], row["path"]
        assert [p.location.span[:2] for p in problems_there] == [p.location.span[:2] for p in problems], row["path"]
