"""Rules on manifests that are wrong anywhere: whatever stands where, no rule raises and every finding stays printable."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stallscope.judge.joint import judge
from stallscope.load.inputs import load_text
from stallscope.rules.registry import RULES

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
JUNK: list[Any] = [None, True, 0, -1, 3.5, "", "x" * 50, "$(A)", "{{x}}", [], {}, [None], {"a": None}, [[]], 10**30, "\x00"]


def _documents(directory: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for file in sorted(directory.glob("*.yaml")):
        try:
            found += [d for d in yaml.safe_load_all(file.read_text(encoding="utf-8")) if isinstance(d, dict)]
        except yaml.YAMLError:
            continue
    return found


SEEDS = [d for p in sorted((EXAMPLES / "broken").iterdir()) if p.is_dir() and (d := _documents(p))]


def _places(tree: Any, route: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [route] if route else []
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in items:
        found += _places(value, (*route, key))
    return found


@st.composite
def damaged(draw: st.DrawFn) -> str:
    documents = copy.deepcopy(draw(st.sampled_from(SEEDS)))
    for _ in range(draw(st.integers(1, 4))):
        places = [(i, r) for i, d in enumerate(documents) for r in _places(d)]
        if not places:
            break
        index, route = draw(st.sampled_from(places))
        holder: Any = documents[index]
        for step in route[:-1]:
            holder = holder[step]
        if draw(st.booleans()) and isinstance(holder, dict):
            del holder[route[-1]]
        else:
            holder[route[-1]] = copy.deepcopy(draw(st.sampled_from(JUNK)))
    return "\n---\n".join(json.dumps(d) for d in documents)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(damaged())
def test_no_rule_minds_damaged_manifests(text: str) -> None:
    judgement = judge(load_text({"in.yaml": text}))
    for rule in RULES:
        for found in rule.check(judgement):
            assert found.rule == rule.id
            assert "\n" not in found.message
            assert found.rule == "STL903" or str(found.primary)  # nothing to check may have no place at all
