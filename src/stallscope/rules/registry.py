"""Every rule, as a literal tuple: nothing is found by import side effect."""

from __future__ import annotations

from stallscope.findings import Finding
from stallscope.judge.result import Judgement
from stallscope.rules.base import Rule

RULES: tuple[Rule, ...] = ()


def run_rules(judgement: Judgement) -> tuple[Finding, ...]:
    """Findings of every rule, ordered by file, line and rule id."""
    found = [f for rule in RULES for f in rule.check(judgement)]
    return tuple(sorted(found, key=lambda f: (f.primary.file, f.primary.span.line, f.rule, f.message)))
