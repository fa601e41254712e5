"""STL402: PyTorch's flight recorder is off, or its dumps die with the container."""

from __future__ import annotations

from collections.abc import Iterable

from stallscope.findings import Confidence, Finding, Severity
from stallscope.judge.result import Judgement
from stallscope.model.workload import Role, TrainingJob
from stallscope.rules.base import Report
from stallscope.rules.support.containers import Container, accelerators, rank_containers, ranked_roles
from stallscope.rules.support.settings import command_text, opaque, sets, setting
from stallscope.rules.support.words import label

_REPORT = Report("STL402", "flight-recorder-lost", Severity.INFO)
_SIZE = ("TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE")
_FILE = ("TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE")
_TORCH_WORDS = ("torchrun", "torch.distributed", "accelerate launch", "deepspeed")
_TORCH_KINDS = frozenset({"PyTorchJob", "HyperPodPyTorchJob"})


def check(judgement: Judgement) -> Iterable[Finding]:
    for judged in judgement.jobs:
        job = judged.job
        if len(job.pods) < 2 or not job.distributed:
            continue
        found = next((f for r in ranked_roles(job) for c in rank_containers(r) if (f := _one(job, r, c))), None)
        if found is not None:
            yield found


def _one(job: TrainingJob, role: Role, container: Container) -> Finding | None:
    if not accelerators(role) or not _is_torch(job, container):
        return None
    size = next((s for name in _SIZE if (s := setting(container, name)) is not None), None)
    if size is not None and size.value == "0":
        return _REPORT.finding(
            f"the flight recorder of {job.ref} is switched off",
            (label(size.location, "0 keeps no record of collectives", primary=True),),
            subject=job.ref,
            notes=_NOTES,
            help="remove the variable (the default keeps 2000 entries) or set it to 2000",
        )
    if sets(container, *_FILE) or opaque(container):
        return None
    return _REPORT.finding(
        f"the flight recorder of {job.ref} dumps to /tmp of the container, which a restart deletes",
        (label(container.place, "TORCH_FR_DUMP_TEMP_FILE is not set", primary=True),),
        subject=job.ref,
        confidence=Confidence.DEPENDS,
        notes=(
            *_NOTES,
            "the recorder is on by default in current PyTorch only; before, set TORCH_NCCL_TRACE_BUFFER_SIZE=2000",
        ),
        help="set TORCH_FR_DUMP_TEMP_FILE to a prefix on a volume that outlives the container",
    )


_NOTES = (
    "its dumps tell which rank did not enter which collective, the first question of every stall",
    "what you will see without it: 'Stack trace of the failed collective not found, potentially because FlightRecorder is "
    "disabled.'",
)


def _is_torch(job: TrainingJob, container: Container) -> bool:
    text = command_text(container)
    return job.kind in _TORCH_KINDS or any(word in text for word in _TORCH_WORDS)


RULE = _REPORT.rule(
    check,
    what="PyTorch's flight recorder is disabled, or writes its dumps where a container restart deletes them.",
    why="When the watchdog kills the job, the only record of who waited for whom is gone, and the next night repeats it.",
    bad="""\
env:
  - name: TORCH_FR_BUFFER_SIZE
    value: "0"
""",
    good="""\
env:
  - name: TORCH_FR_DUMP_TEMP_FILE
    value: /checkpoints/fr/rank_      # the rank is appended
""",
    fix="Keep the recorder on and point its dump prefix at a volume that outlives the container.",
    sources=(
        "https://pytorch.org/tutorials/prototype/flight_recorder_tutorial.html",
        "https://github.com/pytorch/pytorch/pull/123023",
    ),
)
