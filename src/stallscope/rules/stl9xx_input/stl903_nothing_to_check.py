"""STL903: the input holds no training job."""

from __future__ import annotations

from collections.abc import Iterable

from stallscope.findings import Finding, Severity
from stallscope.judge.inputs import Inputs, ProblemKind
from stallscope.judge.result import Judgement
from stallscope.model.source import Location, Span
from stallscope.rules.base import Report
from stallscope.rules.support.words import count, label, listed

_REPORT = Report("STL903", "nothing-to-check", Severity.WARNING)
_START = Span(1, 1, 1, 1, 0, 0)


#: Problems that say why there is no job; a second finding would only repeat the first.
_REASONS = frozenset({ProblemKind.UNREADABLE, ProblemKind.UNRENDERED, ProblemKind.INVALID, ProblemKind.UNSUPPORTED})


def check(judgement: Judgement) -> Iterable[Finding]:
    inputs = judgement.inputs
    if inputs.jobs or any(p.kind in _REASONS for p in inputs.problems):
        return
    places = [*(o.at("kind") for o in inputs.objects), *(p.location for p in inputs.problems)]
    place = places[0] if places else Location(file=next(iter(inputs.names), ""), span=_START)
    yield _REPORT.finding(
        f"no training job found: {_read(inputs)}, so nothing was judged",
        (label(place, "not a training job", primary=True),) if place.file else (),
        subject="input",
        notes=("a run that judged nothing is no success: the exit status is 3 unless --allow-empty is given",),
        help="give the file with the job (PyTorchJob, TrainJob, JobSet, MPIJob, RayJob, ...)",
    )


def _read(inputs: Inputs) -> str:
    """What was read instead of a job, kinds by name: a kind that is not known here is one of them."""
    if not inputs.objects:
        return f"{count(inputs.files, 'file')} read, without a Kubernetes object" if inputs.files else "nothing read"
    what = f"{count(len(inputs.objects), 'object')} in {count(inputs.files, 'file')}"
    return f"{what} read ({listed(list(dict.fromkeys(o.kind for o in inputs.objects)))})"


RULE = _REPORT.rule(
    check,
    what="The given paths hold no training job that Stallscope knows.",
    why="A gate that says 'clean' without having checked anything hides the job that moved to another directory.",
    bad="""\
$ stallscope check policies/        # only policies, no job
""",
    good="""\
$ stallscope check policies/ jobs/
""",
    fix="Name the job's file too, or the directory that holds both. Exit status 3 says that nothing was checkable.",
)
