"""The policy engine against recorded engines: the sample of this repository always, everything when it is at hand."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

HERE = Path(__file__).resolve().parent
SHARED = HERE.parents[2] / "shared" / "vectors"
SAMPLE = sorted((HERE / "vectors" / "cilium").glob("*.jsonl"))


@pytest.fixture(scope="module")
def load_runner() -> object:
    """Imports a runner module as run.py does."""
    sys.path.insert(0, str(HERE))

    def load(name: str) -> ModuleType:
        return importlib.import_module(name)

    yield load
    sys.path.remove(str(HERE))


def test_the_sample_is_here() -> None:
    assert len(SAMPLE) == 3
    assert sum(p.stat().st_size for p in SAMPLE) < 1_000_000


@pytest.mark.parametrize("path", SAMPLE, ids=lambda p: p.stem)
def test_sample(load_runner, path: Path) -> None:
    result = load_runner("cilium").run_file(path)
    assert result.verdicts > 100
    assert result.wrong == 0, "\n".join(result.first)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "least"), [("cilium", 270_000), ("networkpolicy", 249_000)])
def test_everything(load_runner, kind: str, least: int) -> None:
    files = sorted((SHARED / kind).glob("*.jsonl"))
    if not files:
        pytest.skip(f"the full {kind} vectors are not present beside the repository")
    results = [load_runner(kind).run_file(path) for path in files]
    assert [text for r in results for text in r.first] == []
    assert sum(r.verdicts for r in results) >= least


def test_a_disagreement_is_found_and_named(load_runner, tmp_path: Path) -> None:
    """The runner itself can fail: flip one recorded verdict."""
    line = SAMPLE[-1].read_text(encoding="utf-8").splitlines()[0]
    flipped = line.replace('"verdict":"denied"', '"verdict":"allowed"', 1)
    assert flipped != line
    broken = tmp_path / "cilium" / "random-1.19.jsonl"
    broken.parent.mkdir()
    broken.write_text(flipped + "\n", encoding="utf-8")
    result = load_runner("cilium").run_file(broken)
    assert result.wrong == 1
    assert "engine allowed, we denied" in result.first[0]
    command = [sys.executable, str(HERE / "run.py"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "1 disagreements" in done.stdout


def test_nothing_to_run_is_a_failure(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, str(HERE / "run.py"), str(tmp_path)], capture_output=True, text=True, check=False)
    assert (done.returncode, "no vector files found" in done.stdout) == (1, True)
