"""What `fix` shows: the diff with its proof, the same as JSON, as JSON patches, as a kustomize component."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from stallscope.errors import UsageError

if TYPE_CHECKING:
    from stallscope.cli.fixrun import Run


def emit(run: Run, outputs: Sequence[Any], color: str) -> None:
    from stallscope.cli.console import say, wants_color, write
    from stallscope.cli.outputs import replace_file

    for output in sorted(outputs, key=lambda o: not o.file):
        if output.format == "kustomize" and not run.changes:  # kustomize refuses a component that is empty
            say(f"no patch, so no component{f' in {output.file}' if output.file else ''}")
        elif output.format == "kustomize" and output.file:
            _write_folder(output.file, component(run))
        elif output.file:
            replace_file(output.file, view(run, output.format))
        else:
            text = view(run, output.format)
            write(_colored(text) if output.format == "diff" and wants_color(color, sys.stdout) else text)


def view(run: Run, form: str) -> str:
    """The run in one of `FIX_FORMATS`."""
    match form:
        case "json":
            return _json_view(run)
        case "jsonpatch":
            return _jsonpatch_view(run)
        case "kustomize":
            return "".join(f"# file: {name}\n{text}---\n" for name, text in component(run).items()).removesuffix("---\n")
    return _diff_view(run)


def _diff_view(run: Run) -> str:
    """The diff between two blocks of comment lines, which `git apply` and `patch` skip."""
    from stallscope.remedy.account import heading, proof_lines
    from stallscope.render.escape import visible

    diff = _diff(run)
    if not diff:
        return ""
    above, below = (
        "".join(f"# {visible(line)}\n" for line in lines) for lines in (heading(run.fixed), proof_lines(run.fixed.proofs))
    )
    return above + diff + below


def _diff(run: Run) -> str:
    from dataclasses import replace

    from stallscope.remedy.diff import unified_diff

    return unified_diff(replace(change, path=_shown(change.path)) for change in run.changes)


def _shown(path: str) -> str:
    """The path from here, so that the diff applies where the command was run."""
    from pathlib import Path

    here = Path.cwd()
    try:
        return str(Path(path).absolute().relative_to(here)) if Path(path).is_absolute() else path
    except ValueError:
        return path


def _json_view(run: Run) -> str:
    import json

    from stallscope.remedy.account import as_data

    data = as_data(run.fixed, _diff(run), [change.path for change in run.changes])
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def _patches(run: Run) -> tuple[list[Any], list[Mapping[str, Any]]]:
    from stallscope.cli.fixrun import parse
    from stallscope.remedy.jsonpatch import added_documents, object_patches

    patches: list[Any] = []
    added: list[Mapping[str, Any]] = []
    for change in run.changes:
        before, after = parse(change.before or ""), parse(change.after)
        patches += object_patches(change.path, before, after)
        added += added_documents(before, after)
    return patches, added


def _jsonpatch_view(run: Run) -> str:
    import json

    patches, added = _patches(run)
    data = {
        "patches": [
            {
                "file": p.file,
                "apiVersion": p.api_version,
                "kind": p.kind,
                "name": p.name,
                "namespace": p.namespace,
                "patch": list(p.operations),
            }
            for p in patches
        ],
        "create": added,
    }
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def component(run: Run) -> Mapping[str, str]:
    """The files of a kustomize component, by name."""
    from stallscope.remedy import kustomize

    return kustomize.component(*_patches(run))


def _write_folder(folder: str, files: Mapping[str, str]) -> None:
    from pathlib import Path

    from stallscope.cli.outputs import replace_file

    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot make {folder}: {error.strerror or error}") from error
    for name, text in files.items():
        replace_file(str(Path(folder) / name), text)


def _colored(text: str) -> str:
    colors = {"+": "\x1b[32m", "-": "\x1b[31m", "@": "\x1b[36m", "#": "\x1b[2m"}
    lines = text.splitlines(keepends=True)
    return "".join(f"{colors[x[0]]}{x.rstrip()}\x1b[0m\n" if x[0] in colors else x for x in lines)
