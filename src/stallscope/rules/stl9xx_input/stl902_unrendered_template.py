"""STL902: a template was given instead of what it renders to."""

from __future__ import annotations

from stallscope.findings import Severity
from stallscope.judge.inputs import ProblemKind
from stallscope.rules.base import Report
from stallscope.rules.support.problems import problem_check

_REPORT = Report("STL902", "unrendered-template", Severity.WARNING)

RULE = _REPORT.rule(
    problem_check(_REPORT, ProblemKind.UNRENDERED, help="render it first and check the result"),
    what="A file is a Helm or other template, not a manifest, and was not judged.",
    why="A check that skips it silently reports success for a job it never saw.",
    bad="""\
replicas: {{ .Values.workers }}
""",
    good="""\
$ helm template llm charts/llm -f values-prod.yaml | stallscope check -
""",
    fix="Render first and pipe the result; '# Source:' comments keep findings on the template's own file.",
)
