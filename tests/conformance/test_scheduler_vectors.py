"""Placement against the real kube-scheduler: the sample in this repository, and the full recording where it is present."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import scheduler

HERE = Path(__file__).resolve().parent
SAMPLE = HERE / "vectors" / "scheduler"
FULL = HERE.parents[2] / "shared" / "vectors" / "scheduler"


def full(name: str) -> Path:
    if not (FULL / name).exists():
        pytest.skip(f"../shared/vectors/scheduler/{name} not present")
    return FULL / name


@pytest.mark.parametrize("name", ["feasibility.jsonl", "groups.jsonl"])
def test_sample_agrees_with_the_scheduler(name: str) -> None:
    result = scheduler.run_file(SAMPLE / name)
    assert result.cases > 30
    assert result.wrong == 0, "\n".join(result.first)


@pytest.mark.parametrize("name", ["feasibility.jsonl", "groups.jsonl"])
def test_full_recording_agrees_with_the_scheduler(name: str) -> None:
    result = scheduler.run_file(full(name))
    assert result.wrong == 0, "\n".join(result.first)


def test_group_claims_are_not_vacuous() -> None:
    counts = scheduler.tightness(full("groups.jsonl"))
    assert counts.no_split >= 0.9 * counts.runs_without_split
    assert counts.must_start >= 0.8 * counts.runs_all_whole
    assert counts.zone_sets <= 3 * counts.observed_sets
