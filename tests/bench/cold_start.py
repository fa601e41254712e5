"""
Whole-process times of the command line beside a bare interpreter's: wall and CPU, medians of several runs.

    python tests/bench/cold_start.py [RUNS]

The commands take turns, and the ratio of CPU times is what to trust, for the machine may be busy. Goal: `check` on the
incident: 250 ms where `python -c pass` takes 20. The peer is what no program of these libraries can do without: the
interpreter with click, PyYAML and dataclasses imported.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[2]
INCIDENT = ROOT / "examples" / "incident"
CALL = [sys.executable, "-m", "stallscope"]


def commands() -> list[tuple[str, list[str]]]:
    found = [
        ("python -c pass", [sys.executable, "-c", "pass"]),
        ("python -c 'import click'", [sys.executable, "-c", "import click"]),
        ("… click, yaml, dataclasses", [sys.executable, "-c", "import click, yaml, dataclasses"]),
        ("stallscope --version", [*CALL, "--version"]),
        ("stallscope --help", [*CALL, "--help"]),
        ("stallscope rules", [*CALL, "rules"]),
    ]
    if INCIDENT.is_dir():
        found.append(("stallscope check examples/incident", [*CALL, "check", str(INCIDENT)]))
    return found


def once(command: list[str], env: dict[str, str]) -> tuple[float, float]:
    """Wall and CPU seconds of one run."""
    before, started = cpu_of_children(), time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False, env=env)
    return time.perf_counter() - started, cpu_of_children() - before


def cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    found = {name: list[tuple[float, float]]() for name, _ in commands()}
    with tempfile.TemporaryDirectory() as cache:
        # as installed: with a bytecode cache, which some build machines switch off
        env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"} | {"PYTHONPYCACHEPREFIX": cache}
        for _ in range(runs + 1):
            for name, command in commands():
                found[name].append(once(command, env))
    bare = median(cpu for _, cpu in next(iter(found.values()))[1:])
    print(f"{'median of ' + str(runs):<36} {'wall ms':>8} {'CPU ms':>8} {'least':>8} {'ratio':>6}")
    for name, times in found.items():
        walls, cpus = zip(*times[1:], strict=True)  # the first run fills the bytecode cache
        figures = f"{median(walls) * 1000:8.0f} {median(cpus) * 1000:8.0f} {min(cpus) * 1000:8.0f}"
        print(f"{name:<36} {figures} {median(cpus) / bare:6.1f}")


if __name__ == "__main__":
    main()
