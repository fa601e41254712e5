from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from stallscope.rules.registry import RULES

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    path = ROOT / "scripts" / "gen_docs.py"
    spec = importlib.util.spec_from_file_location("gen_docs", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_checked_in_pages_are_what_the_rules_say(generator: ModuleType) -> None:
    present = {p.name: p.read_text(encoding="utf-8") for p in (ROOT / "docs" / "rules").glob("*.md")}
    assert present == generator.pages(), "run: make docs"


def test_a_page_for_every_rule_and_an_index_that_links_to_each(generator: ModuleType) -> None:
    pages = generator.pages()
    assert set(pages) == {f"{r.id}.md" for r in RULES} | {"index.md"}
    for rule in RULES:
        assert f"[{rule.id}]({rule.id}.md)" in pages["index.md"]


def test_links_to_examples_lead_somewhere(generator: ModuleType) -> None:
    for rule in RULES:
        for side in ("broken", "fixed"):
            assert (ROOT / "examples" / side / rule.slug).is_dir()
            assert f"../../examples/{side}/{rule.slug}" in generator.pages((rule,))[f"{rule.id}.md"]
