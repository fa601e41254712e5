"""STL305: the collective timeout is shorter than the time one rank spends saving a checkpoint."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from stallscope.findings import Confidence, Finding, Severity
from stallscope.judge.result import Judgement
from stallscope.model.source import Location
from stallscope.model.workload import Role, TrainingJob
from stallscope.rules.base import Report
from stallscope.rules.support.containers import Container, rank_containers, ranked_roles
from stallscope.rules.support.settings import Setting, flag, setting
from stallscope.rules.support.words import label

_REPORT = Report("STL305", "timeout-shorter-than-checkpoint", Severity.WARNING)
#: How long one checkpoint takes, stated by the team on the job or its pod template (``90s``, ``15m``, ``1h``).
CHECKPOINT_ANNOTATION = "stallscope.dev/checkpoint-duration"
#: Flags that set the process group timeout, with seconds per unit (transformers, Megatron-LM, torchtitan, accelerate).
_TIMEOUT_FLAGS: Mapping[str, int] = {
    "--ddp_timeout": 1,
    "--ddp-timeout": 1,
    "--distributed-timeout-seconds": 1,
    "--distributed-timeout-minutes": 60,
    "--comm.train_timeout_seconds": 1,
    "--dist_timeout": 1,
}
#: Variables that end a silent process group (seconds): the heartbeat monitor also fires during a long save.
_TIMEOUT_VARS = ("TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC", "TORCH_NCCL_TIMEOUT_SEC")
#: Nobody saves a checkpoint of a real model in less; 60 s in DATA-06 aborted at step 400.
_SHORT = 120


def check(judgement: Judgement) -> Iterable[Finding]:
    for judged in judgement.jobs:
        if len(judged.job.pods) < 2 or not judged.job.distributed:
            continue
        for role in ranked_roles(judged.job):
            yield from _role(judged.job, role)


def _role(job: TrainingJob, role: Role) -> Iterator[Finding]:
    stated = _checkpoint(job, role)
    for container in rank_containers(role):
        for found, seconds in _timeouts(container):
            if stated is not None and seconds <= stated[0]:
                yield _certain(job, role, found, seconds, stated)
            elif stated is None and 0 < seconds < _SHORT:
                yield _short(job, role, found, seconds)


def _certain(job: TrainingJob, role: Role, found: Setting, seconds: int, stated: tuple[int, Location]) -> Finding:
    duration, place = stated
    return _REPORT.finding(
        f"{role.name} of {job.ref} gives up on a collective after {seconds} s, but a checkpoint takes {duration} s",
        (
            label(found.location, f"{found.name} = {seconds} s", primary=True),
            label(place, f"a checkpoint takes {duration} s"),
        ),
        subject=job.ref,
        key=f"{role.name}:{found.name}",
        notes=_NOTES,
        help=f"set {found.name} well above {duration} s, or save asynchronously from every rank",
    )


def _short(job: TrainingJob, role: Role, found: Setting, seconds: int) -> Finding:
    return _REPORT.finding(
        f"{role.name} of {job.ref} gives up on a collective after {seconds} s, less than a checkpoint usually takes",
        (label(found.location, f"{found.name} = {seconds} s", primary=True),),
        subject=job.ref,
        key=f"{role.name}:{found.name}",
        severity=Severity.INFO,
        confidence=Confidence.DEPENDS,
        notes=(*_NOTES, f"state the real duration with the annotation {CHECKPOINT_ANNOTATION} to have it compared"),
        help="set the timeout above the longest thing one rank does alone (save, evaluation, data cache)",
    )


_NOTES = (
    "while rank 0 saves, the other ranks already wait in the next collective: that wait counts against the timeout",
    "what you will see: 'Watchdog caught collective operation timeout' on all ranks but one, always at a checkpoint step",
)


def _checkpoint(job: TrainingJob, role: Role) -> tuple[int, Location] | None:
    text = role.template.annotations.get(CHECKPOINT_ANNOTATION)
    if text is not None:
        seconds = parse_duration(text)
        place = role.template.at("metadata", "annotations", CHECKPOINT_ANNOTATION)
        return None if seconds is None else (seconds, place)
    text = job.source.annotations.get(CHECKPOINT_ANNOTATION)
    seconds = parse_duration(text) if text is not None else None
    return None if seconds is None else (seconds, job.source.at("metadata", "annotations", CHECKPOINT_ANNOTATION))


def _timeouts(container: Container) -> Iterator[tuple[Setting, int]]:
    for name, unit in _TIMEOUT_FLAGS.items():
        found = flag(container, name)
        if found is not None and (amount := _whole(found.value)) is not None:
            yield found, amount * unit
    for name in _TIMEOUT_VARS:
        variable = setting(container, name)
        if variable is not None and (amount := _whole(variable.value)) is not None:
            yield variable, amount


def _whole(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


_DURATION = re.compile(r"^(?:(\d{1,4})h)?(?:(\d{1,5})m)?(?:(\d{1,6})s?)?$")


def parse_duration(text: str) -> int | None:
    """Seconds of ``90``, ``90s``, ``15m``, ``1h30m``; ``None`` for anything else."""
    match = _DURATION.match(text.strip())
    if match is None or not any(match.groups()):
        return None
    hours, minutes, seconds = (int(g or 0) for g in match.groups())
    return hours * 3600 + minutes * 60 + seconds


RULE = _REPORT.rule(
    check,
    what="The collective timeout the manifest sets is shorter than the stated checkpoint duration "
    f"(annotation {CHECKPOINT_ANNOTATION}), or shorter than two minutes when none is stated (info).",
    why="A healthy job is killed by its own watchdog at the first slow save, and restarts from the checkpoint before it.",
    bad="""\
metadata:
  annotations:
    stallscope.dev/checkpoint-duration: 15m
...
args: [torchrun, train.py, --ddp_timeout=600]
""",
    good="""\
metadata:
  annotations:
    stallscope.dev/checkpoint-duration: 15m
...
args: [torchrun, train.py, --ddp_timeout=3600]
""",
    fix="Raise the timeout above the longest step that one rank does alone, or use an asynchronous sharded checkpoint.",
    sources=(
        "https://github.com/ServiceNow/Fast-LLM/pull/543",
        "https://pytorch.org/docs/stable/torch_nccl_environment_variables.html",
    ),
)
