"""A rule that says `fixable` is one whose broken example gets a patch that silences it."""

from __future__ import annotations

from pathlib import Path

import pytest

from stallscope.cli import fixrun, pipeline
from stallscope.cli.options import InputOptions
from stallscope.remedy.model import Choices
from stallscope.rules.registry import RULES

BROKEN = Path(__file__).parents[3] / "examples" / "broken"
FIXABLE = [rule for rule in RULES if rule.fixable]


def run(slug: str) -> fixrun.Run:
    folder = BROKEN / slug
    nodes = tuple(str(p) for p in folder.glob("nodes.yaml"))
    paths = tuple(str(p) for p in sorted(folder.iterdir()) if p.name != "nodes.yaml")
    return fixrun.run(InputOptions(paths=paths, nodes=nodes), pipeline.gate(), Choices())


@pytest.mark.parametrize("rule", FIXABLE, ids=lambda r: r.id)
def test_the_broken_example_is_fixed(rule) -> None:
    found = run(rule.slug)
    assert rule.id in {f.rule for f in found.report.findings}
    if rule.id == "STL218" and found.fixed.after.judgement.policies.options.cni != "cilium":
        pytest.skip("a NetworkPolicy cannot name the API server; Cilium is in test_fix_policies")
    assert rule.id in {i for r in found.fixed.remedies for i in r.rules}
    assert rule.id not in {f.rule for f in found.fixed.after.findings}
    assert all(p.holds for p in found.fixed.proofs)


@pytest.mark.parametrize("folder", sorted(p.name for p in (BROKEN.parent / "fixed").iterdir() if p.is_dir()))
def test_a_fixed_example_needs_no_fix(folder: str) -> None:
    files = tuple(str(p) for p in sorted((BROKEN.parent / "fixed" / folder).iterdir()) if p.name != "nodes.yaml")
    nodes = tuple(str(p) for p in (BROKEN.parent / "fixed" / folder).glob("nodes.yaml"))
    found = fixrun.run(InputOptions(paths=files, nodes=nodes), pipeline.gate(), Choices())
    slugs = {r.slug for r in found.fixed.remedies}
    assert slugs <= {"shared-memory"}, "only what the example does not speak of"
