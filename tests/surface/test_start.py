"""What starting imports. The list is tested, not the time: a slow import creeps in by name, not by milliseconds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """\
import sys
from stallscope.cli.main import run
code = run({args!r})
print(*sorted(sys.modules), file=sys.stderr)
sys.exit(code)
"""

#: Not even one of these before it is needed.
HEAVY = ("yaml", "rich", "pathspec", "msgspec", "lightkube", "torch", "tomllib", "json", "hashlib", "difflib", "tempfile")


def modules(*args: str, cwd: Path | None = None) -> set[str]:
    script = SCRIPT.format(args=list(args))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return set(done.stderr.splitlines()[-1].split())


@pytest.mark.parametrize("args", [("--version",), ("--help",), ("version",), ("check", "--help"), ("explain", "--help")])
def test_help_and_version_import_next_to_nothing(args) -> None:
    loaded = modules(*args)
    assert not loaded & set(HEAVY)
    core = {m for m in loaded if m.startswith("stallscope.")}
    assert not {m for m in core if m.split(".")[1] in ("load", "judge", "rules", "policy", "placement", "collective", "lab")}


def test_version_imports_no_verb() -> None:
    assert {m for m in modules("--version") if m.startswith("stallscope")} == {
        "stallscope",
        "stallscope.cli",
        "stallscope.cli.console",
        "stallscope.cli.exitcodes",
        "stallscope.cli.failure",
        "stallscope.cli.main",
        "stallscope.errors",
    }


def test_check_imports_what_it_uses(tmp_path) -> None:
    (tmp_path / "pod.yaml").write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n")
    loaded = modules("check", "pod.yaml", "--allow-empty", "--ignore", "STL", cwd=tmp_path)
    assert "yaml" in loaded
    unwanted = {"rich", "pathspec", "tomllib", "tempfile", "random", "subprocess", "lightkube", "torch"}
    assert not loaded & unwanted
    assert not {m for m in loaded if m.startswith(("stallscope.lab", "stallscope.render.sarif", "stallscope.cli.base"))}


def test_check_imports_the_kinds_and_dialects_it_meets() -> None:
    """The incident: one PyTorchJob, one CiliumNetworkPolicy, nodes, in a repository with a .gitignore."""
    script = SCRIPT.format(args=["check", "examples/incident", "--exit-zero"])
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd=root)
    loaded = set(done.stderr.splitlines()[-1].split())
    assert {"stallscope.load.kinds.pytorchjob", "stallscope.policy.cilium"} <= loaded
    kinds = ("jobset", "trainjob", "raycluster", "mpijob", "volcanojob", "leaderworkerset", "job", "statefulset", "wrappers")
    dialects = ("netpol", "cilium_netpol", "calico", "calico_engine", "adminnetpol", "clusternetpol", "tiered", "generic")
    seldom = {f"stallscope.load.kinds.{k}" for k in kinds} | {f"stallscope.policy.{d}" for d in dialects}
    seldom |= {f"stallscope.placement.{m}" for m in ("spec_only", "coarse", "pools", "bounds", "facts", "rooms")}
    seldom |= {"pathspec", "json", "hashlib", "difflib", "tempfile", "rich"}
    assert not loaded & seldom
