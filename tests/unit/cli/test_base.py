"""The review gate against real git repositories."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from stallscope.cli.main import run

INCIDENT = Path(__file__).parents[3] / "examples" / "incident"


def git(folder, *args):
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.invalid", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *identity, *args], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A repository with the job and its nodes committed, and the policy not yet."""
    folder = tmp_path / "repo"
    folder.mkdir()
    for name in ("nodes.yaml", "job.yaml"):
        shutil.copy(INCIDENT / name, folder)
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "before")
    shutil.copy(INCIDENT / "policy.yaml", folder)
    monkeypatch.chdir(folder)
    return folder


def test_a_policy_that_takes_edges_away_fails_the_gate(repository, capsys):
    assert run(["check", ".", "--base", "HEAD", "-o", "json", "-q"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["worse"] is True
    flows = {(e["after"]["flow"], e["after"]["from"]["role"], e["after"]["to"]["role"]) for e in found["edges"]}
    assert ("rendezvous", "Worker", "Master") in flows
    assert all(e["before"]["verdict"] == "allowed" and e["after"]["verdict"] == "denied" for e in found["edges"])


def test_removing_it_again_passes(repository, capsys):
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "policy")
    (repository / "policy.yaml").unlink()
    assert run(["check", ".", "--base", "HEAD", "-q"]) == 0
    assert "was denied, is now allowed" in capsys.readouterr().out


def test_nothing_changed(repository, capsys):
    (repository / "policy.yaml").unlink()
    assert run(["check", ".", "--base", "HEAD", "-q"]) == 0
    assert "No training job gains or loses" in capsys.readouterr().out


def test_a_policy_repository_against_jobs_kept_elsewhere(repository, capsys):
    """The jobs are outside the repository under review: they are the same on both sides."""
    jobs = repository.parent / "jobs"
    jobs.mkdir()
    for name in ("nodes.yaml", "job.yaml"):
        shutil.move(repository / name, jobs / name)
    policies = repository / "policies"
    policies.mkdir()
    (policies / "README.md").write_text("policies\n")
    shutil.move(repository / "policy.yaml", policies / "policy.yaml")
    git(repository, "add", "policies/README.md")
    git(repository, "commit", "-qm", "empty")
    assert run(["check", "policies", str(jobs), "--base", "HEAD", "-o", "md", "-q"]) == 1
    assert "this change would stall training" in capsys.readouterr().out


def test_a_directory_is_a_base_too(repository, tmp_path, capsys):
    old = tmp_path / "old"
    old.mkdir()
    for name in ("nodes.yaml", "job.yaml"):
        shutil.copy(INCIDENT / name, old)
    assert run(["check", ".", "--base", str(old), "-q"]) == 1
    capsys.readouterr()


@pytest.mark.parametrize("base", ["no-such-branch", "--output=x"])
def test_what_is_no_revision_is_named(repository, capsys, base):
    assert run(["check", ".", f"--base={base}", "-q"]) == 2
    assert "is no revision" in capsys.readouterr().err
