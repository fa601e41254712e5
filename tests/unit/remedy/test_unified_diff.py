"""Diffs are judged by the tools that read them: git apply and patch."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from stallscope.remedy.diff import FileChange, unified_diff


def test_one_line_added() -> None:
    change = FileChange(path="x/job.yaml", before="a: 1\nb: 2\n", after="a: 1\nb: 2\nc: 3\n")
    assert unified_diff([change]) == "--- a/x/job.yaml\n+++ b/x/job.yaml\n@@ -1,2 +1,3 @@\n a: 1\n b: 2\n+c: 3\n"


def test_new_file_and_open_last_line() -> None:
    change = FileChange(path="./new.yaml", before=None, after="a: 1\nb: 2")
    assert unified_diff([change]) == (
        "--- /dev/null\n+++ b/new.yaml\n@@ -0,0 +1,2 @@\n+a: 1\n+b: 2\n\\ No newline at end of file\n"
    )


def test_unchanged_file_is_silent() -> None:
    assert unified_diff([FileChange(path="x", before="a\n", after="a\n")]) == ""


CHANGES = [
    FileChange(path="plain.yaml", before="a: 1\nb: 2\n", after="a: 1\nx: 9\nb: 2\n"),
    FileChange(path="deep/with space.yaml", before="a: 1\n", after="a: 1\nb: 2\n"),
    FileChange(path='quo"te.yaml', before="a: 1\n", after="a: 1\nb: 2\n"),
    FileChange(path="crlf.yaml", before="a: 1\r\nb: 2\r\n", after="a: 1\r\nx: 9\r\nb: 2\r\n"),
    FileChange(path="open.yaml", before="a: 1", after="a: 1\nb: 2"),
    FileChange(path="odd\u2028line.yaml", before="a: \u2028 1\n", after="a: \u2028 1\nb: \x0c2\n"),
    FileChange(path="made/new.yaml", before=None, after="a: 1\n"),
]


def _write(root: Path) -> None:
    for change in CHANGES:
        path = root / change.path
        path.parent.mkdir(parents=True, exist_ok=True)
        if change.before is not None:
            path.write_bytes(change.before.encode())


def _check(root: Path) -> None:
    for change in CHANGES:
        assert (root / change.path).read_bytes() == change.after.encode(), change.path


def test_git_apply_reads_it(tmp_path: Path) -> None:
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    _write(tmp_path)
    text = "# a proof in comment lines\n# - of the patch\n" + unified_diff(CHANGES) + "# behind it as well\n"
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    subprocess.run(["git", "apply", "--whitespace=nowarn", "-"], cwd=tmp_path, input=text.encode(), check=True)
    _check(tmp_path)


def test_patch_reads_it(tmp_path: Path) -> None:
    if shutil.which("patch") is None:
        pytest.skip("patch is not installed")
    _write(tmp_path)
    text = "# a proof in comment lines\n" + unified_diff(CHANGES) + "# behind it as well\n"
    subprocess.run(["patch", "-p1", "--binary", "-s"], cwd=tmp_path, input=text.encode(), check=True)
    _check(tmp_path)
