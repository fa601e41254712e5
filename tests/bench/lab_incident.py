"""The incident, measured: the split run against the fixed one, three repetitions. Prints ratios, asserts nothing."""

from __future__ import annotations

import sys
from pathlib import Path

from stallscope.cli.main import run

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

if __name__ == "__main__":
    words = ["rehearse", str(EXAMPLES / "incident-detour"), "--nodes", str(EXAMPLES / "incident/nodes.yaml"), "--quiet"]
    code = run(words)
    if code not in (0, 1):
        print("skipped: the lab does not run here")
    sys.exit(0)
