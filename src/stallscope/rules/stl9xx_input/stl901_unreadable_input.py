"""STL901: a file could not be read."""

from __future__ import annotations

from stallscope.findings import Severity
from stallscope.judge.inputs import ProblemKind
from stallscope.rules.base import Report
from stallscope.rules.support.problems import problem_check

_REPORT = Report("STL901", "unreadable-input", Severity.ERROR)

RULE = _REPORT.rule(
    problem_check(_REPORT, ProblemKind.UNREADABLE, help="repair the file, or leave it out"),
    what="A file that was named or found is missing, is not text, is too large, or is not YAML or JSON.",
    why="What is not read is not judged: the policy that denies the job may be in this very file.",
    bad="""\
metadata:
  name: llm
   namespace: train       # one space too many
""",
    good="""\
metadata:
  name: llm
  namespace: train
""",
    fix="Repair the file, or leave it out with an ignore pattern if it is no manifest.",
)
