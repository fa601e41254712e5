"""STL903: the input holds no training job."""

from __future__ import annotations

from collections.abc import Iterable

from stallscope.findings import Finding, Severity
from stallscope.judge.result import Judgement
from stallscope.model.source import Location
from stallscope.rules.base import Report
from stallscope.rules.support.words import count, label

_REPORT = Report("STL903", "nothing-to-check", Severity.WARNING)


def check(judgement: Judgement) -> Iterable[Finding]:
    inputs = judgement.inputs
    if inputs.jobs:
        return
    places = [*(o.at() for o in inputs.objects), *(p.location for p in inputs.problems)]
    place = places[0] if places else Location(file="")
    what = f"{count(len(inputs.objects), 'object')} in {count(inputs.files, 'file')}" if inputs.files else "nothing"
    yield _REPORT.finding(
        f"no training job found: {what} read, so nothing was judged",
        (label(place, "not a training job", primary=True),) if place.file else (),
        subject="input",
        notes=("a run that judged nothing is not a success: the exit status is 3",),
        help="give the file with the job (PyTorchJob, TrainJob, JobSet, MPIJob, RayJob, ...); see 'stallscope jobs PATH'",
    )


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
