"""
Conformance: ``python tests/conformance/run.py DIR [--limit N]``.

Runs every ``*.jsonl`` below DIR whose kind is known (by folder, else by content), prints cases, verdicts and agreement per
file and the first disagreements, and exits 1 on any. Nothing found is a failure too.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
from pathlib import Path
from types import ModuleType

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parents[1] / "src"))

KINDS = ("cilium", "networkpolicy", "scheduler")


def kind_of(path: Path) -> str:
    """By the nearest folder of that name, else by the keys of the first line; empty when unknown."""
    for part in reversed(path.parts[:-1]):
        if part in KINDS:
            return part
    with path.open(encoding="utf-8") as lines:
        try:
            first = json.loads(next(lines, "{}"))
        except ValueError:
            return ""
    if not isinstance(first, dict):
        return ""
    if "endpoints" in first:
        return "cilium"
    if "matrix" in first and "pods" in first:
        return "networkpolicy"
    return "scheduler" if "nodes" in first else ""


def runner(kind: str) -> ModuleType | None:
    """The module that runs a kind; None when this checkout has none."""
    if not (HERE / f"{kind}.py").exists():
        return None
    return importlib.import_module(kind)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--limit", type=int, default=0, help="only the first N scenarios of each file")
    arguments = parser.parse_args()
    files = sorted(arguments.directory.rglob("*.jsonl"))
    failed = ran = 0
    for path in files:
        kind = kind_of(path)
        module = runner(kind) if kind else None
        if module is None:
            print(f"{path}: no runner for {kind or 'this kind of file'}: NOT RUN")
            failed += 1
            continue
        started = time.perf_counter()
        result = module.run_file(path, arguments.limit)
        ran += 1
        failed += bool(result.wrong)
        seconds = time.perf_counter() - started
        print(
            f"{path}: {kind}: {result.cases} cases, {result.verdicts} verdicts, {result.wrong} disagreements, "
            f"agreement {result.agreement:.4f} % ({seconds:.1f} s)"
        )
        for text in result.first:
            print(f"    {text}")
        for name, reason in result.waived.items():
            print(f"    not counted: {name}: {reason}")
    if not ran:
        print(f"{arguments.directory}: no vector files found")
        return 1
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
