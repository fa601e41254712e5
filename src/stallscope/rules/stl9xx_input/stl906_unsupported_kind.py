"""STL906: a training job, or a part of one, that is not judged."""

from __future__ import annotations

from collections.abc import Iterator

from stallscope.findings import Finding, Severity
from stallscope.judge.inputs import ProblemKind
from stallscope.judge.result import Judgement
from stallscope.rules.base import Report
from stallscope.rules.support.problems import problem_check
from stallscope.rules.support.words import label, listed

_REPORT = Report("STL906", "unsupported-kind", Severity.WARNING)
_problems = problem_check(
    _REPORT,
    ProblemKind.UNSUPPORTED,
    help="check the objects its controller creates instead: kubectl get jobs,pods -o yaml | stallscope check -",
)


def check(judgement: Judgement) -> Iterator[Finding]:
    yield from _problems(judgement)
    for judged in judgement.jobs:
        job = judged.job
        if job.unsupported:
            yield _REPORT.finding(
                f"parts of {job.ref} are not judged: {listed(job.unsupported)}",
                (label(job.source.at("kind"), "judged without these parts", primary=True),),
                subject=job.ref,
                severity=Severity.INFO,
                notes=("verdicts that depend on them are 'unjudged', never 'allowed'",),
                help="give the missing objects too, or read dependent verdicts as open",
            )


RULE = _REPORT.rule(
    check,
    what="An object that starts training is of a kind, version or form that Stallscope does not understand (warning), or a "
    "part of a job is not modelled (info).",
    why="It was not judged. Saying nothing would read as 'clean'.",
    bad="""\
apiVersion: example.com/v1alpha1
kind: SuperTrainingJob
""",
    good="""\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
""",
    fix="Check the objects its controller creates instead (kubectl get jobs,pods -o yaml | stallscope check -), and tell us "
    "which kind you use.",
)
