from __future__ import annotations

import importlib
import pkgutil
import re
from typing import Any

import pytest

import stallscope.rules as package
from stallscope.rules.registry import RULES, rule_named

FAMILIES = {
    "STL1": "stl1xx_placement",
    "STL2": "stl2xx_reachability",
    "STL3": "stl3xx_environment",
    "STL4": "stl4xx_observability",
    "STL5": "stl5xx_cost",
    "STL9": "stl9xx_input",
}


def test_ids_and_slugs_are_unique_and_sorted() -> None:
    ids = [r.id for r in RULES]
    assert ids == sorted(set(ids))
    assert len({r.slug for r in RULES}) == len(RULES)


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.id)
def test_a_rule_is_the_only_one_of_a_file_named_by_its_id(rule: Any) -> None:
    assert re.fullmatch(r"STL[1-9]\d\d", rule.id)
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", rule.slug)
    name = f"{package.__name__}.{FAMILIES[rule.id[:4]]}.{rule.id.lower()}_{rule.slug.replace('-', '_')}"
    assert importlib.import_module(name).RULE is rule


def test_every_rule_file_is_registered() -> None:
    files = {m.name.rpartition(".")[2] for m in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")}
    assert len([f for f in files if re.match(r"stl\d\d\d_", f)]) == len(RULES)


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.id)
def test_documentation_is_complete_prose(rule: Any) -> None:
    for text in (rule.what, rule.why, rule.fix):
        assert text.endswith((".", ")"))
        assert text[0].isupper() or text[0] in "'A"
    for excerpt in (rule.bad, rule.good):
        assert excerpt.endswith("\n")
        assert "\t" not in excerpt
        assert max(map(len, excerpt.splitlines())) <= 110


def test_rule_named_takes_ids_and_slugs_in_any_case() -> None:
    found = rule_named("stl203")
    assert found is not None
    assert found.slug == "only-rendezvous-port-open"
    assert rule_named("Only-Rendezvous-Port-Open") is found
    assert rule_named("STL999") is None
