"""
Every rule on its two examples: it fires on examples/broken/<slug> where the scenario says, and examples/fixed/<slug> is
quiet. The expected lines were marked by hand when the examples were written.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from stallscope.analysis import analyse
from stallscope.collective.links import EGRESS_PRICES
from stallscope.findings import Finding, Severity
from stallscope.judge.inputs import ClusterFacts
from stallscope.judge.price import PriceFacts
from stallscope.load.inputs import LoadRequest, load_inputs
from stallscope.rules.registry import RULES

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[2] / "examples"
#: Produced by the command line after all rules ran; tested with it.
BY_THE_CLI = {"STL990"}
TWINS = [r for r in RULES if r.id not in BY_THE_CLI]


def expected(slug: str) -> dict[str, Any]:
    return json.loads((HERE / f"{slug}.json").read_text(encoding="utf-8"))


def facts(expected: dict[str, Any], side: str) -> ClusterFacts:
    stated = expected["facts"].get(side, expected["facts"])
    return ClusterFacts(
        cni=stated.get("cni", ""),
        cni_version=tuple(stated.get("cni_version", ())),
        cilium_options=tuple(map(tuple, stated.get("cilium_options", ()))),
    )


def findings(slug: str, side: str) -> tuple[Finding, ...]:
    request = LoadRequest(paths=(str(EXAMPLES / side / slug),), facts=facts(expected(slug), side))
    prices = PriceFacts(egress=EGRESS_PRICES.get(expected(slug).get("egress", "")))
    return analyse(replace(load_inputs(request), prices=prices)).findings


def place(finding: Finding, at: Any) -> str:
    return f"{Path(at.file).name}:{at.span.line}" if at.file else ""


def shape(finding: Finding) -> dict[str, Any]:
    labels = sorted({place(finding, x.location) for x in finding.labels})
    file_subject = finding.subject.endswith((".yaml", ".json"))
    return {
        "subject": Path(finding.subject).name if file_subject else finding.subject,
        "severity": str(finding.severity),
        "primary": place(finding, finding.primary) or None,
        "labels": [x for x in labels if x],
    }


@pytest.mark.parametrize("rule", TWINS, ids=lambda r: r.slug)
def test_broken_twin_is_found_where_the_scenario_says(rule: Any) -> None:
    wanted = expected(rule.slug)
    found = [shape(f) for f in findings(rule.slug, "broken") if f.rule == rule.id]
    key = lambda f: (f["primary"] or "", f["subject"])  # noqa: E731
    assert sorted(found, key=key) == sorted(wanted["findings"], key=key)


@pytest.mark.parametrize("rule", TWINS, ids=lambda r: r.slug)
def test_broken_twin_shows_nothing_unrelated(rule: Any) -> None:
    loud = {f.rule for f in findings(rule.slug, "broken") if f.severity is not Severity.INFO}
    assert loud - {rule.id} == set(expected(rule.slug)["also"])


@pytest.mark.parametrize("rule", TWINS, ids=lambda r: r.slug)
def test_fixed_twin_is_quiet(rule: Any) -> None:
    found = findings(rule.slug, "fixed")
    assert [(f.rule, f.message) for f in found if f.severity is not Severity.INFO] == []
    assert rule.id not in {f.rule for f in found}


def test_every_rule_has_both_twins_and_nothing_else_is_there() -> None:
    slugs = {r.slug for r in RULES}
    for side in ("broken", "fixed"):
        assert {p.name for p in (EXAMPLES / side).iterdir() if p.is_dir()} == slugs
