"""Load, fix and judge again, for the verb `fix`; and the writing of files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stallscope.analysis import Analysis, analyse
from stallscope.cli import pipeline
from stallscope.cli.options import InputOptions
from stallscope.cli.outputs import replace_file
from stallscope.cli.pipeline import Gate
from stallscope.cli.sources import FileSources
from stallscope.errors import LoadError, UsageError
from stallscope.findings import Finding
from stallscope.judge.result import Judgement
from stallscope.load.inputs import Loaded, LoadRequest, load, load_text
from stallscope.load.stream import parse_stream
from stallscope.model.kube import DEFAULT_NAMESPACE
from stallscope.remedy.diff import FileChange
from stallscope.remedy.model import Choices
from stallscope.remedy.rounds import Fixed, Texts, fix
from stallscope.render.report import Report


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judged:
    judgement: Judgement
    findings: Sequence[Finding]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run: what was read, the report before, what came out. `changes` are the files that differ."""

    loaded: Loaded
    report: Report
    fixed: Fixed
    changes: tuple[FileChange, ...]
    stdin_name: str


def parse(text: str) -> list[Any]:
    """The documents of a text by index; None for empty and for unreadable ones."""
    documents, _ = parse_stream(text)
    found: list[Any] = [None] * (max((d.index for d in documents), default=-1) + 1)
    for document in documents:
        found[document.index] = document.value
    return found


def run(options: InputOptions, gate: Gate, choices: Choices) -> Run:
    request = _request(options)
    loaded = load(request)

    def narrowed(analysis: Analysis, texts: Texts) -> Report:
        return pipeline.narrow(analysis, FileSources(texts), gate)

    def judge(texts: Texts) -> _Judged:
        analysis = analyse(load_text(texts, request, topology=loaded.inputs.topology))
        return _Judged(judgement=analysis.judgement, findings=narrowed(analysis, texts).findings)

    before = analyse(loaded.inputs)
    report = narrowed(before, loaded.texts)
    fixed = fix(loaded.texts, _Judged(judgement=before.judgement, findings=report.findings), judge, parse, choices)
    changes = tuple(
        FileChange(path=file, before=loaded.texts.get(file), after=text)
        for file, text in fixed.texts.items()
        if text != loaded.texts.get(file)
    )
    return Run(loaded=loaded, report=report, fixed=fixed, changes=changes, stdin_name=request.stdin_name)


def _request(options: InputOptions) -> LoadRequest:
    return LoadRequest(
        paths=options.paths,
        nodes_files=options.nodes,
        stdin_name=options.stdin_name or "<stdin>",
        namespace=options.namespace or DEFAULT_NAMESPACE,
        facts=options.facts(),
    )


def write(run: Run) -> None:
    """All files or none: every reason not to write is found before the first is touched."""
    for change in run.changes:
        _check_writable(run, change)
    for change in run.changes:
        replace_file(change.path, change.after)


def _check_writable(run: Run, change: FileChange) -> None:
    if change.path == run.stdin_name:
        raise UsageError("--write cannot change standard input", hint="give the file, or take the diff")
    path = Path(change.path)
    if change.before is None:
        if path.exists():
            raise UsageError(f"{change.path} exists already", hint="read it too, or move it away")
        return
    origin = next((o.rendered_from for o in run.loaded.inputs.objects if o.file == change.path and o.rendered_from), "")
    if origin:
        raise UsageError(
            f"{change.path} is rendered from {origin}; the next rendering would undo the fix",
            hint=f"make the change in {origin}; the diff shows it",
        )
    try:
        unchanged = path.read_bytes() == change.before.encode("utf-8", "surrogatepass")
    except OSError as error:
        raise LoadError(f"{change.path}: cannot be read again: {error.strerror or error}") from error
    if not unchanged:
        raise UsageError(f"{change.path} is not UTF-8, or changed while it was fixed", hint="run it again")
