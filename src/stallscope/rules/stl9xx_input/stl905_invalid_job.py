"""STL905: a training job with a part that nobody can use."""

from __future__ import annotations

from stallscope.findings import Severity
from stallscope.judge.inputs import ProblemKind
from stallscope.rules.base import Report
from stallscope.rules.support.problems import problem_check

_REPORT = Report("STL905", "invalid-job", Severity.ERROR)

RULE = _REPORT.rule(
    problem_check(_REPORT, ProblemKind.INVALID, help="correct the field the message names"),
    what="A known job kind has a part of the wrong type or without meaning: no replica specs, negative replicas, text where "
    "a number belongs.",
    why="The API server or the controller rejects it, or worse, a default takes its place and fewer ranks start.",
    bad="""\
Worker:
  replicas: "four"
""",
    good="""\
Worker:
  replicas: 4
""",
    fix="Correct the field; the message names it.",
)
