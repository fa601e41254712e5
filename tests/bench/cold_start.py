"""
Whole-process times of the command line beside a bare interpreter's: wall and CPU, the best of several runs.

    python tests/bench/cold_start.py [RUNS]

Ratios are what to trust, for the machine may be busy. Goal: `check` on the incident:
250 ms where `python -c pass` takes 20.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
INCIDENT = ROOT / "examples" / "incident"
CALL = [sys.executable, "-m", "stallscope"]


def commands() -> list[tuple[str, list[str]]]:
    found = [
        ("python -c pass", [sys.executable, "-c", "pass"]),
        ("python -c 'import click'", [sys.executable, "-c", "import click"]),
        ("python -c 'import rich.console'", [sys.executable, "-c", "import rich.console"]),
        ("stallscope --version", [*CALL, "--version"]),
        ("stallscope --help", [*CALL, "--help"]),
        ("stallscope rules", [*CALL, "rules"]),
    ]
    if INCIDENT.is_dir():
        found.append(("stallscope check examples/incident", [*CALL, "check", str(INCIDENT)]))
    return found


def best(command: list[str], runs: int, env: dict[str, str]) -> tuple[float, float]:
    """Least wall and CPU seconds of `runs` runs, after one that fills the bytecode cache."""
    walls, cpus = [], []
    for _ in range(runs + 1):
        before, started = cpu_of_children(), time.perf_counter()
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False, env=env)
        walls.append(time.perf_counter() - started)
        cpus.append(cpu_of_children() - before)
    return min(walls[1:]), min(cpus[1:])


def cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    base_wall = base_cpu = 0.0
    print(f"{'best of ' + str(runs):<36} {'wall ms':>8} {'ratio':>6} {'cpu ms':>8} {'ratio':>6}")
    with tempfile.TemporaryDirectory() as cache:
        # as installed: with a bytecode cache, which some build machines switch off
        env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"} | {"PYTHONPYCACHEPREFIX": cache}
        for name, command in commands():
            wall, cpu = best(command, runs, env)
            base_wall, base_cpu = base_wall or wall, base_cpu or cpu
            print(f"{name:<36} {wall * 1000:8.0f} {wall / base_wall:6.1f} {cpu * 1000:8.0f} {cpu / base_cpu:6.1f}")


if __name__ == "__main__":
    main()
