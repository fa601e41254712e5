"""The placements a rehearsal runs: the input as it is, and as `fix` would leave it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stallscope.cli.options import InputOptions
from stallscope.errors import LabError, UsageError

if TYPE_CHECKING:
    from stallscope.judge.result import JobJudgement, Judgement
    from stallscope.lab.run import Scene


def _yaml(file: str, what: str) -> Any:
    """A small YAML file of the user's. Raises UsageError."""
    import yaml

    limit = 1 << 20
    try:
        path = Path(file)
        if path.stat().st_size > limit:
            raise UsageError(f"{file}: larger than a {what} can be")
        return yaml.safe_load(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file}: cannot read the {what}: {getattr(error, 'strerror', None) or error}") from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise UsageError(f"{file}: the {what} is not YAML: {(str(error) or 'too deep').splitlines()[0]}") from error


def scenes_of(
    options: InputOptions,
    paths: Sequence[str],
    judgement: Judgement,
    judged: JobJudgement,
    which: str,
    placement: str,
    ranks: int,
) -> tuple[tuple[Scene, ...], tuple[str, ...]]:
    """The placements to run, and what had to be left out."""
    scenes: list[Scene] = []
    said: list[str] = []
    if which in ("split", "both"):
        scenes.append(_scene("", judgement, judged, placement, ranks))
    if which in ("fixed", "both"):
        fixed, why_not = _fixed(options, paths, judged.job.ref)
        if fixed is not None:
            scenes.append(_scene("fixed", *fixed, "worst" if placement not in ("worst", "likely") else placement, ranks))
        elif which == "fixed":
            raise LabError(f"--fixed: {why_not}")
        else:
            said.append(f"no fixed placement to compare with: {why_not}")
    return tuple(scenes), tuple(said)


def _scene(label: str, judgement: Judgement, judged: JobJudgement, placement: str, ranks: int) -> Scene:
    from stallscope.lab.cast import cast
    from stallscope.lab.run import Scene

    nodes = _placement(judged, placement)
    made = cast(judgement, judged.job, nodes, max_ranks=ranks)
    zones = {made.spec.zones[p.node] for p in made.spec.pods}
    return Scene(label=label or ("split" if len(zones) > 1 else "as is"), cast=made, policies=judgement.policies)


def _placement(judged: JobJudgement, placement: str) -> dict[str, str | None]:
    if placement not in ("worst", "likely"):
        return _placement_file(placement, judged)
    if judged.placement is None or judged.witness is None:
        raise LabError(
            f"{judged.job.ref}: without nodes there is no placement to rehearse",
            hint="add --nodes FILE (kubectl get nodes -o yaml), or name one with --placement FILE",
        )
    if placement == "likely" and judged.placement.likely is not None:
        return dict(judged.placement.likely.nodes)
    return dict(judged.witness.nodes)


def _placement_file(file: str, judged: JobJudgement) -> dict[str, str | None]:
    body = _yaml(file, "placement")
    if not isinstance(body, dict) or not all(isinstance(k, str) and isinstance(v, str) for k, v in body.items()):
        raise UsageError(f"{file}: a placement is a mapping of pod to node", hint="llm-worker-0: gpu-a-1")
    names = {p.name for p in judged.job.pods}
    strange = sorted(set(body) - names)
    if strange:
        raise UsageError(f"{file}: {strange[0]} is no pod of {judged.job.ref}", hint=f"pods: {', '.join(sorted(names)[:8])}")
    return {name: body.get(name) for name in names}


def _fixed(options: InputOptions, paths: Sequence[str], job: str) -> tuple[tuple[Judgement, JobJudgement] | None, str]:
    """The input as `fix` would leave it, judged again; or why there is none."""
    from stallscope.cli import fixrun, pipeline
    from stallscope.remedy.model import Choices

    run = fixrun.run(replace(options, paths=tuple(paths)), pipeline.gate(), Choices())
    if not run.changes:
        left = [u.reason for u in run.fixed.unfixed if u.job == job]
        return None, f"fix has no patch: {left[0]}" if left else "fix has nothing to change"
    after = run.fixed.after.judgement
    return (after, next(j for j in after.jobs if j.job.ref == job)), ""
