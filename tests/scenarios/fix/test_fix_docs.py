"""The output shown in docs/fix.md is the output."""

from __future__ import annotations

from pathlib import Path

import pytest

from stallscope.cli.main import run

ROOT = Path(__file__).parents[3]


def test_the_page_shows_what_the_command_prints(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(ROOT)
    assert run(["fix", "examples/incident", "--no-config", "-q"]) == 0
    shown = (ROOT / "docs" / "fix.md").read_text().split("```diff\n")[1].split("```")[0]
    assert shown == capsys.readouterr().out
