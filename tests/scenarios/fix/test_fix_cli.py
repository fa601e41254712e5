"""The verb itself: streams, exit codes, files."""

from __future__ import annotations

import json
import shutil
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest

from stallscope.cli.main import run

NODES = str(Path(__file__).parent / "nodes.yaml")


@pytest.fixture
def job(fix: Any) -> Path:
    file = Path("job.yaml")
    file.write_text(fix.pytorchjob())
    return file


def call(*args: str) -> int:
    return run(["fix", *args, "--nodes", NODES, "--no-config", "--select", "STL1"])


def test_the_diff_is_on_stdout_and_applies(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    assert call("job.yaml") == 0
    out, err = capsys.readouterr()
    assert out.startswith("# PyTorchJob train/llm\n#   fix: pin Master and Worker to zone-b; toleration for Master")
    assert "#   proved: cannot be split: every placement the scheduler can choose is in zone-b\n" in out
    assert "1 fix for 1 job in 1 file, not written" in err
    subprocess.run(["git", "init", "-q"], check=True)
    subprocess.run(["git", "apply", "-"], input=out.encode(), check=True)
    assert call("job.yaml") == 0
    assert capsys.readouterr() == ("", "nothing to fix\n")


def test_write_changes_the_file_and_keeps_its_mode(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job.chmod(0o640)
    assert call("job.yaml", "--write") == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert "proved: cannot be split" in err and "1 fix for 1 job in 1 file, written" in err
    assert "nodeSelector:" in job.read_text()
    assert stat.S_IMODE(job.stat().st_mode) == 0o640
    assert [p.name for p in Path.cwd().iterdir()] == ["job.yaml"], "no temporary file is left"


def test_write_follows_a_link_and_leaves_it_one(job: Path) -> None:
    Path("link.yaml").symlink_to("job.yaml")
    assert call("link.yaml", "--write", "-q") == 0
    assert Path("link.yaml").is_symlink()
    assert "nodeSelector:" in job.read_text()


def test_check_only_asks(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = job.read_text()
    assert call("job.yaml", "--check") == 1
    assert (job.read_text(), capsys.readouterr().out) == (before, "")
    assert call("job.yaml", "--write", "-q") == 0
    assert call("job.yaml", "--check") == 0


def test_write_and_check_exclude_each_other(job: Path) -> None:
    assert call("job.yaml", "--write", "--check") == 2


def test_standard_input_gets_a_diff_but_is_not_written(
    job: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for extra, code in (((), 0), (("--write",), 2)):
        with job.open() as stream:
            monkeypatch.setattr("sys.stdin", stream)
            assert call("-", "--stdin-name", "chart.yaml", *extra) == code
    out, err = capsys.readouterr()
    assert "--- a/chart.yaml\n+++ b/chart.yaml\n" in out
    assert "--write cannot change standard input" in err


def test_rendered_files_are_not_written(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job.write_text("---\n# Source: chart/templates/job.yaml\n" + job.read_text())
    before = job.read_text()
    assert call("job.yaml", "--write") == 2
    assert job.read_text() == before
    assert "rendered from chart/templates/job.yaml" in capsys.readouterr().err
    assert call("job.yaml") == 0


def test_a_new_file_never_replaces_one_that_was_not_read(fix: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """A JSON dump takes no second document, so the policy would go to a file of its own."""
    Path("in").mkdir()
    Path("in/policy.json").write_text(
        json.dumps(
            {
                "apiVersion": "networking.k8s.io/v1",
                "kind": "NetworkPolicy",
                "metadata": {"name": "lock", "namespace": "train"},
                "spec": {"podSelector": {}, "policyTypes": ["Ingress"]},
            }
        )
    )
    body = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "llm", "namespace": "train"}}
    pod = {"spec": {"containers": [{"name": "pytorch", "image": "x", "command": ["torchrun", "t.py"]}]}}
    body["spec"] = {"pytorchReplicaSpecs": {"Master": {"template": pod}, "Worker": {"replicas": 2, "template": pod}}}
    Path("in/job.json").write_text(json.dumps(body, indent=2))
    args = ["fix", "in/job.json", "in/policy.json", "--no-config", "--select", "STL2"]
    assert run(args) == 0
    assert "--- /dev/null\n+++ b/in/llm-ranks.yaml\n" in capsys.readouterr().out
    assert run([*args, "--write", "-q"]) == 0
    assert Path("in/llm-ranks.yaml").read_text().startswith("# Lets the pods of PyTorchJob train/llm talk")
    assert run([*args, "--write", "-q"]) == 2
    assert "in/llm-ranks.yaml exists already" in capsys.readouterr().err


def test_json_for_programs(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("job.yaml", "-o", "json") == 0
    data = json.loads(capsys.readouterr().out)
    assert data["schemaVersion"] == "1"
    assert data["changed"] == ["job.yaml"]
    assert [(r["slug"], r["rules"]) for r in data["remedies"]] == [("pin-zone", ["STL101", "STL102"])]
    assert data["proofs"][0]["holds"] is True
    assert data["diff"].startswith("--- a/job.yaml")


def test_several_outputs_at_once(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("job.yaml", "-o", "diff=fix.diff", "-o", "kustomize=component", "-o", "jsonpatch") == 0
    assert Path("fix.diff").read_text().count("+++ b/job.yaml") == 1
    assert "kind: Component" in Path("component/kustomization.yaml").read_text()
    assert json.loads(capsys.readouterr().out)["patches"][0]["name"] == "llm"


def test_colours_only_on_request(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("job.yaml") == 0
    assert "\x1b" not in capsys.readouterr().out
    assert call("job.yaml", "--color", "always") == 0
    assert "\x1b[32m+" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("args", "code"), [((), 2), (("missing.yaml",), 2), (("policy.yaml",), 3), (("job.yaml", "--strategy", "magic"), 2)]
)
def test_wrong_turns(job: Path, args: tuple[str, ...], code: int, capsys: pytest.CaptureFixture[str]) -> None:
    Path("policy.yaml").write_text(
        "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: a}\nspec: {podSelector: {}}\n"
    )
    assert call(*args) == code
    assert "Traceback" not in capsys.readouterr().err


def test_an_unreadable_file_beside_a_job_is_an_error_but_the_job_is_fixed(
    job: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("broken.yaml").write_text("apiVersion: v1\nkind: [\n")
    assert call(".") == 2
    assert "+          nodeSelector:" in capsys.readouterr().out


def test_a_suppressed_finding_is_not_fixed(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job.write_text("# stallscope: ignore-file[STL101,STL102] meant\n" + job.read_text())
    assert call("job.yaml") == 0
    assert capsys.readouterr() == ("", "nothing to fix\n")


def test_what_has_no_patch_is_said_with_the_reason(fix: Any, capsys: pytest.CaptureFixture[str]) -> None:
    Path("job.yaml").write_text(fix.pytorchjob(workers=30))
    assert call("job.yaml") == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert "left: PyTorchJob train/llm" in err and "no zone holds the job" in err and err.endswith("no patch\n")
