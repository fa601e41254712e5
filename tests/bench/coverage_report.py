"""
Writes docs/coverage.md: every file of the corpus of real manifests (``../shared/corpus`` beside the repository), what it
holds, and what Stallscope makes of it. Run it after changing a kind: ``python tests/bench/coverage_report.py``.
"""

from __future__ import annotations

import csv
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from stallscope.judge.inputs import Inputs, ProblemKind
from stallscope.load.inputs import LoadRequest, load
from stallscope.load.kinds.registry import KINDS
from stallscope.model.workload import TrainingJob

REPOSITORY = Path(__file__).resolve().parents[2]
CORPUS = REPOSITORY.parent / "shared" / "corpus"
TARGET = REPOSITORY / "docs" / "coverage.md"

#: Kinds of the corpus index that start pods of a training or serving job.
TRAINING = ("PyTorchJob", "TFJob", "XGBoostJob", "PaddleJob", "JAXJob", "MPIJob", "TrainJob", "JobSet", "Job", "StatefulSet",
            "LeaderWorkerSet", "RayCluster", "RayJob", "RayService", "HyperPodPyTorchJob", "AppWrapper", "Workflow",
            "WorkflowTemplate", "PodCliqueSet")  # fmt: skip


_OF_TEXT = {
    ProblemKind.UNRENDERED: "a template or placeholder that was not rendered",
    ProblemKind.UNREADABLE: "not readable as YAML",
}


_WHAT_COUNTS = """\
## What counts as a training job

Kinds made for training (PyTorchJob, TrainJob, JobSet, MPIJob, …) always do. A plain Job, StatefulSet or Volcano Job counts
as *distributed* only when something shows that its pods need each other: a launcher in the command (torchrun, mpirun,
deepspeed, …), a variable only collectives read (MASTER_ADDR, NCCL_*, TF_CONFIG, …), accelerators in indexed pods with host
names, or a Kueue or KAI annotation that packs them into one domain. With accelerators alone it is listed as not
distributed: a work queue or the replicas of an inference server never talk to each other, and no peer is claimed. Without
any of these a Job or StatefulSet is not listed. RayService clusters are listed, but not judged as training. Groups of a
LeaderWorkerSet never talk to each other: the first is judged, the others are like it.""".splitlines()


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One file: the training kinds the corpus index lists for it, the jobs found, their pods, and why not where not."""

    project: str
    path: str
    kinds: tuple[str, ...]
    jobs: tuple[tuple[str, int, bool], ...]
    reasons: tuple[str, ...]

    @property
    def pods(self) -> int:
        return sum(pods for _, pods, _ in self.jobs)

    @property
    def outcome(self) -> str:
        if self.jobs:
            return "expanded"
        return "named" if self.reasons else "no training job"


def index_of(corpus: Path) -> list[dict[str, str]]:
    """The corpus index: one entry a file, with the kinds a reader of the text found in it."""
    with (corpus / "MANIFEST.tsv").open(encoding="utf-8") as index:
        return list(csv.DictReader(index, delimiter="\t"))


def rows(corpus: Path) -> tuple[Row, ...]:
    """A row for each file of the index that holds a training kind."""
    found = (_row(corpus, entry) for entry in index_of(corpus))
    return tuple(r for r in found if r.kinds or r.jobs)


def _row(corpus: Path, entry: dict[str, str]) -> Row:
    project = entry["repository"]
    file = corpus / project.replace("/", "__") / entry["path"]
    inputs = load(LoadRequest(paths=(str(file),), allow_empty=True)).inputs
    return Row(
        project=project,
        path=entry["path"],
        kinds=tuple(k for k in (entry["kinds"] or "").split(",") if k in TRAINING),
        jobs=tuple((_title(j.source.group, j.kind), _pods(j), j.distributed) for j in inputs.jobs),
        reasons=_reasons(inputs),
    )


def _pods(job: TrainingJob) -> int:
    return sum(r.replicas for r in job.roles) * job.copies


def _title(group: str, kind: str) -> str:
    return "Job (Volcano)" if group == "batch.volcano.sh" else kind


def _reasons(inputs: Inputs) -> tuple[str, ...]:
    """Why a job is missing: problems of objects, then of text, then plain workloads that are no training."""
    told = [p.message.partition(": ")[2] if p.subject else _OF_TEXT.get(p.kind, "") for p in inputs.problems]
    expanded = {(j.source.file, j.source.document, j.source.prefix) for j in inputs.jobs}
    quiet = [
        f"{o.kind} {o.name}: no accelerator in its resources and no launcher, not a training job"
        for o in inputs.objects
        if (o.group, o.kind) in (("batch", "Job"), ("apps", "StatefulSet"))
        and (o.file, o.document, o.prefix) not in expanded
    ]
    return tuple(dict.fromkeys(line for line in (*told, *quiet) if line))


def report(corpus: Path) -> str:
    """The page."""
    found = rows(corpus)
    index = index_of(corpus)
    projects = len({entry["repository"] for entry in index})
    lines = [
        "# Which real manifests are understood",
        "",
        f"Generated by `tests/bench/coverage_report.py` from {len(index)} manifests of {projects} public projects, each",
        "file read alone; files that hold a training or serving kind are listed. A job counts with the pods its",
        "controller would create at first; a file without a job says why.",
        "",
        *_WHAT_COUNTS,
        "",
        *_by_kind(found),
        "",
        *_by_file(found),
    ]
    return "\n".join(lines) + "\n"


def _by_kind(found: Sequence[Row]) -> list[str]:
    jobs: Counter[str] = Counter()
    pods: Counter[str] = Counter()
    alone: Counter[str] = Counter()
    files: defaultdict[str, set[str]] = defaultdict(set)
    for row in found:
        for kind, count, distributed in row.jobs:
            jobs[kind] += 1
            pods[kind] += count
            alone[kind] += not distributed
            files[kind].add(f"{row.project}/{row.path}")
    kinds = sorted({_title(g, k) for g, k in KINDS})
    lines = ["## By kind", "", "| kind | files | jobs | pods | of these jobs not distributed |", "|---|---|---|---|---|"]
    lines += [f"| {k} | {len(files[k])} | {jobs[k]} | {pods[k]} | {alone[k]} |" for k in kinds]
    total = (len({f for s in files.values() for f in s}), sum(jobs.values()), sum(pods.values()), sum(alone.values()))
    lines.append("| all | {} | {} | {} | {} |".format(*total))
    return lines


def _by_file(found: Sequence[Row]) -> list[str]:
    lines = ["## By file"]
    for project in sorted({r.project for r in found}):
        mine = sorted((r for r in found if r.project == project), key=lambda r: r.path)
        counts = Counter(r.outcome for r in mine)
        summary = ", ".join(f"{n} {o}" for o, n in sorted(counts.items()))
        lines += [
            "",
            f"### {project} ({summary})",
            "",
            "| file | kinds in it | jobs | pods | remarks |",
            "|---|---|---|---|---|",
        ]
        lines += [f"| {r.path} | {', '.join(r.kinds) or '-'} | {_jobs(r)} | {r.pods} | {_cell(r.reasons)} |" for r in mine]
    return lines


def _jobs(row: Row) -> str:
    names = Counter(kind for kind, _, _ in row.jobs)
    return ", ".join(k if n == 1 else f"{n} {k}" for k, n in names.items()) or "-"


def _cell(reasons: Sequence[str]) -> str:
    text = "; ".join(reasons).replace("|", "\\|").replace("`", "'").replace("<", "&lt;")
    return text if len(text) <= 200 else text[:199] + "…"


def main() -> int:
    if not (CORPUS / "MANIFEST.tsv").is_file():
        print(f"no corpus at {CORPUS}", file=sys.stderr)
        return 3
    TARGET.write_text(report(CORPUS), encoding="utf-8")
    found = rows(CORPUS)
    print(f"{TARGET.name}: {len(found)} files, {sum(len(r.jobs) for r in found)} jobs, {sum(r.pods for r in found)} pods")
    return 0


if __name__ == "__main__":
    sys.exit(main())
