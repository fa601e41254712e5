"""Every training job among objects, expanded as its controller would."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from stallscope.judge.inputs import Problem, ProblemKind
from stallscope.load.kinds.context import Context, ParseBlock, context_of
from stallscope.load.kinds.gang import KUEUE_QUEUE
from stallscope.load.kinds.registry import UNSUPPORTED, expander_of, opener_of
from stallscope.model.kube import KubeObject
from stallscope.model.workload import Gang, TrainingJob

#: A wrapper in a wrapper is odd, more is an attack.
_NESTING = 3


def expand(
    objects: Sequence[KubeObject], *, parse: ParseBlock | None = None
) -> tuple[tuple[TrainingJob, ...], tuple[Problem, ...]]:
    """
    The training jobs of `objects`, in their order, and what was wrong with those that could not be expanded.

    Objects of other kinds are context (Services, training runtimes, PodGroups). Never raises on odd manifests: values of
    the wrong type become problems, and other jobs still expand. `parse` replaces the YAML reader for the manifest of an
    Argo ``resource`` step.
    """
    ctx = context_of(objects, parse)
    jobs = [job for item in objects for job in _expand_one(ctx, item, 0)]
    return tuple(jobs), tuple(ctx.problems)


def _expand_one(ctx: Context, item: KubeObject, depth: int) -> tuple[TrainingJob, ...]:
    key = (item.group, item.kind)
    opener = opener_of(key)
    if opener is not None and depth < _NESTING:
        return tuple(
            _within(job, inner.wrapper) for inner in opener(ctx, item) for job in _expand_one(ctx, inner.obj, depth + 1)
        )
    if key in UNSUPPORTED:
        ctx.problem(ProblemKind.UNSUPPORTED, item, ("kind",), f"not judged: {UNSUPPORTED[key]}")
        return ()
    expander = expander_of(key)
    if expander is None:
        return ()
    if not item.name:
        ctx.problem(ProblemKind.INVALID, item, ("metadata",), "has no name", "give it metadata.name")
        return ()
    return expander(ctx, item)


def _within(job: TrainingJob, wrapper: KubeObject) -> TrainingJob:
    """The job, queued by Kueue when its wrapper is."""
    if job.gang is None and KUEUE_QUEUE in wrapper.labels:
        where = wrapper.at("metadata", "labels", KUEUE_QUEUE)
        return replace(job, gang=Gang(system="kueue", location=where))
    return job
