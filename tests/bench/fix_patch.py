"""
What a fix costs: patching one job in a 5 MB file, and the whole process beside `check`. Prints times and ratios; asserts
nothing. Run: ``python tests/bench/fix_patch.py``.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from stallscope.cli.fixrun import parse
from stallscope.remedy.diff import FileChange, unified_diff
from stallscope.remedy.ops import SetKey
from stallscope.remedy.patch import patch_text

ROOT = Path(__file__).parents[2]
SPEC = ("spec", "pytorchReplicaSpecs", "Worker", "template", "spec", "nodeSelector", "topology.kubernetes.io/zone")


def cpu(work: Callable[[], Any], rounds: int = 3) -> float:
    """Best CPU seconds of a few rounds."""
    best = float("inf")
    for _ in range(rounds):
        started = time.process_time()
        work()
        best = min(best, time.process_time() - started)
    return best


def wall(*args: str, rounds: int = 5) -> float:
    best = float("inf")
    for _ in range(rounds):
        started = time.perf_counter()
        subprocess.run([sys.executable, "-m", "stallscope", *args], cwd=ROOT, capture_output=True, check=False)
        best = min(best, time.perf_counter() - started)
    return best


def main() -> None:
    one = (ROOT / "examples" / "incident" / "job.yaml").read_text()
    text = "---\n".join([one] * (5_000_000 // len(one)))
    documents = text.count("kind: PyTorchJob")
    ops = [SetKey(file="f", document=documents // 2, route=SPEC, value="zone-a", first="nodeSelector")]
    reading = cpu(lambda: parse(text))
    patching = cpu(lambda: patch_text(text, ops, parse))
    after = patch_text(text, ops, parse)
    differing = cpu(lambda: unified_diff([FileChange(path="f", before=text, after=after)]))
    print(f"one job in {len(text) / 1e6:.1f} MB, {documents} documents")
    print(
        f"  read {reading:.2f} s, patch and prove {patching:.2f} s ({patching / reading:.1f} times reading), "
        f"diff {differing:.2f} s"
    )
    checked, fixed = wall("check", "examples/incident"), wall("fix", "examples/incident")
    print(f"examples/incident, whole process: check {checked:.2f} s, fix {fixed:.2f} s ({fixed / checked:.1f} times)")


if __name__ == "__main__":
    main()
