"""What the input itself hides from a verb whose report is not a list of findings: said on stderr, never passed over."""

from __future__ import annotations

from collections.abc import Sequence

from stallscope.cli.console import say
from stallscope.cli.failure import report
from stallscope.errors import LoadError, NothingToCheck, StallscopeError
from stallscope.judge.inputs import Inputs, Problem, ProblemKind

_SAID = 10
_FATAL = (ProblemKind.UNREADABLE, ProblemKind.INVALID)


def tell(problems: Sequence[Problem]) -> bool:
    """
    Say which inputs could not be read and which jobs are invalid, ``file:line:col: what`` and a hint each. True when
    something could not be read: what was not read was not judged, so the verb must end with ERROR.
    """
    told = [p for p in problems if p.kind in _FATAL]
    for problem in told[:_SAID]:
        report(f"{problem.location}: {problem.message}", problem.hint)
    if len(told) > _SAID:
        say(f"and {len(told) - _SAID} more: `stallscope check` lists them")
    return any(p.kind is ProblemKind.UNREADABLE for p in told)


def refuse_unread(inputs: Inputs) -> None:
    """Raise LoadError for the first input that could not be read: for verbs that cannot do half of their work."""
    problem = next((p for p in inputs.problems if p.kind is ProblemKind.UNREADABLE), None)
    if problem is not None:
        raise LoadError(f"{problem.location}: {problem.message}", hint=problem.hint)


def no_job(inputs: Inputs, wanted: str = "") -> StallscopeError:
    """Why there is no job called `wanted` (or none at all): the input is broken, not understood, or holds others."""
    known = ", ".join(dict.fromkeys(j.ref for j in inputs.jobs))
    if wanted and known:
        return NothingToCheck(f"no job named {wanted!r}", hint=f"jobs: {known}")
    for kind in (*_FATAL, ProblemKind.UNRENDERED, ProblemKind.UNSUPPORTED):
        problem = next((p for p in inputs.problems if p.kind is kind), None)
        if problem is not None:
            error = LoadError if kind in _FATAL else NothingToCheck
            return error(f"{problem.location}: {problem.message}", hint=problem.hint)
    read = "1 file" if inputs.files == 1 else f"{inputs.files} files"
    return NothingToCheck(f"no training job in {read}", hint="name the manifests of the job too")
