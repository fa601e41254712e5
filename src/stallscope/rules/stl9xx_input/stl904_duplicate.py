"""STL904: a key or an object is given twice, and only one of them counts."""

from __future__ import annotations

from stallscope.findings import Severity
from stallscope.judge.inputs import ProblemKind
from stallscope.rules.base import Report
from stallscope.rules.support.problems import problem_check

_REPORT = Report("STL904", "duplicate", Severity.WARNING)

RULE = _REPORT.rule(
    problem_check(_REPORT, ProblemKind.DUPLICATE_KEY, ProblemKind.DUPLICATE_OBJECT, help="keep one of them"),
    what="One mapping has a key twice, or two objects of one kind have the same name and namespace.",
    why="The last one wins silently: the toleration or the ports you see in the file may not be the ones that apply.",
    bad="""\
spec:
  tolerations: [{key: nvidia.com/gpu, operator: Exists}]
  containers: [...]
  tolerations: []            # wins
""",
    good="""\
spec:
  tolerations: [{key: nvidia.com/gpu, operator: Exists}]
  containers: [...]
""",
    fix="Keep one. Overlays that patch one object belong to kustomize, not to two files in one directory.",
)
