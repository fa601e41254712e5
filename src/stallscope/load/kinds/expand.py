"""Every training job among objects, expanded as its controller would."""

from __future__ import annotations

from collections.abc import Sequence

from stallscope.judge.inputs import Problem, ProblemKind
from stallscope.load.kinds.context import ParseBlock, context_of
from stallscope.load.kinds.registry import KINDS
from stallscope.model.kube import KubeObject
from stallscope.model.workload import TrainingJob


def expand(
    objects: Sequence[KubeObject], *, parse: ParseBlock | None = None
) -> tuple[tuple[TrainingJob, ...], tuple[Problem, ...]]:
    """
    The training jobs of `objects`, in their order, and what was wrong with those that could not be expanded.

    Objects of other kinds are context (Services, training runtimes, PodGroups). Never raises on odd manifests: values of
    the wrong type become problems, and other jobs still expand. `parse` reads the manifest of an Argo ``resource`` step.
    """
    ctx = context_of(objects, parse)
    jobs: list[TrainingJob] = []
    for item in objects:
        expander = KINDS.get((item.group, item.kind))
        if expander is None:
            continue
        if not item.name:
            ctx.problem(ProblemKind.INVALID, item, ("metadata",), "has no name", "give it metadata.name")
            continue
        jobs += expander(ctx, item)
    return tuple(jobs), tuple(ctx.problems)
