"""The joint judgement."""

from __future__ import annotations

from stallscope.judge.inputs import Inputs
from stallscope.judge.result import Judgement


def judge(inputs: Inputs) -> Judgement:
    """Judge every job of `inputs`."""
    raise NotImplementedError
