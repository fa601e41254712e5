"""The public API of the core: `analyse(inputs)` -> judgement and findings."""

from __future__ import annotations

from dataclasses import dataclass

from stallscope.findings import Finding
from stallscope.judge.inputs import Inputs
from stallscope.judge.joint import judge
from stallscope.judge.result import Judgement
from stallscope.rules.registry import run_rules


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """What was judged and what was found, findings sorted by place and severity."""

    judgement: Judgement
    findings: tuple[Finding, ...]


def analyse(inputs: Inputs) -> Analysis:
    """Judge everything in `inputs` and run every rule. Pure: the same inputs give the same analysis."""
    judgement = judge(inputs)
    return Analysis(judgement=judgement, findings=run_rules(judgement))
