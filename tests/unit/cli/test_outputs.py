from __future__ import annotations

import os
import stat

import pytest

from stallscope.cli.outputs import Output, emit, parse_outputs, replace_file
from stallscope.cli.sources import FileSources
from stallscope.errors import UsageError
from stallscope.findings import Finding, Severity
from stallscope.render.report import Report

FOUND = Finding(rule="STL201", slug="peer-denied", severity=Severity.ERROR, message="denied", labels=(), subject="Job a/b")
REPORT = Report(version="0", findings=(FOUND,))


@pytest.mark.parametrize(
    ("specs", "outputs"),
    [
        ((), (Output("text"),)),
        (("json",), (Output("json"),)),
        (("json=-",), (Output("json"),)),
        (("text", "sarif=a=b.sarif"), (Output("text"), Output("sarif", "a=b.sarif"))),
        (("md=r.md",), (Output("md", "r.md"),)),
    ],
)
def test_formats(specs, outputs) -> None:
    assert parse_outputs(specs) == outputs


@pytest.mark.parametrize(
    ("specs", "message"),
    [
        (("jsn",), "-o: unknown format 'jsn'; did you mean 'json'?"),
        (("yaml",), "-o: unknown format 'yaml'"),
        (("json=",), "-o: no file after 'json='"),
        (("text", "json"), "-o: two reports for standard output"),
        (("md=r", "json=r"), "-o: two reports for r"),
    ],
)
def test_what_cannot_be_done(specs, message) -> None:
    with pytest.raises(UsageError) as caught:
        parse_outputs(specs)
    assert caught.value.message == message


def test_files_are_replaced_whole(tmp_path) -> None:
    target = tmp_path / "report.json"
    target.write_text("old")
    target.chmod(0o640)
    kept = target.open()
    replace_file(str(target), "new")
    assert kept.read() == "old"  # whoever has it open still reads the old report whole
    kept.close()
    assert target.read_text() == "new"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert sorted(p.name for p in tmp_path.iterdir()) == ["job.yaml", "report.json"]


def test_new_files_get_usual_permissions_and_links_stay(tmp_path) -> None:
    mask = os.umask(0o022)
    try:
        replace_file(str(tmp_path / "new"), "x")
    finally:
        os.umask(mask)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o644
    (tmp_path / "link").symlink_to("new")
    replace_file(str(tmp_path / "link"), "y")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "new").read_text() == "y"


def test_a_failed_write_says_so_and_leaves_nothing(tmp_path) -> None:
    with pytest.raises(UsageError, match=r"cannot write .*none/report: No such file or directory"):
        replace_file(str(tmp_path / "none" / "report"), "x")
    replace_file("/dev/null", "x")


def test_one_run_writes_several_formats(tmp_path, capsys) -> None:
    outputs = parse_outputs(("short", f"json={tmp_path}/r.json", f"text={tmp_path}/r.txt"))
    emit(outputs, REPORT, FileSources(), color="auto", prog="stallscope")
    assert capsys.readouterr().out == "Job a/b: STL201 denied\n"
    assert '"schemaVersion": "1"' in (tmp_path / "r.json").read_text()
    assert (tmp_path / "r.txt").read_text() == "error[STL201]: denied\n\n"


def test_colour_in_files_only_when_asked_for(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    for color, colored in (("auto", False), ("always", True)):
        emit((Output("text", f"{tmp_path}/r"),), REPORT, FileSources(), color=color, prog="stallscope")
        assert ("\x1b[" in (tmp_path / "r").read_text()) is colored


def test_the_job_summary_of_github_is_added_to(tmp_path, monkeypatch, capsys) -> None:
    (tmp_path / "summary.md").write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    emit((Output("github"),), REPORT, FileSources(), color="auto", prog="stallscope")
    assert capsys.readouterr().out.startswith("::error title=STL201 peer-denied::denied\n")
    assert (tmp_path / "summary.md").read_text().startswith("before\n### Stallscope: 1 error\n")
    emit((Output("text"),), REPORT, FileSources(), color="auto", prog="stallscope")
    assert (tmp_path / "summary.md").read_text().count("###") == 2  # heading and finding, once


def test_sources(tmp_path) -> None:
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbfa: 1\r\nb: 2\rc: 3\n")
    (tmp_path / "bin").write_bytes(b"\x00\xff")
    sources = FileSources({"<stdin>": "x\ny"})
    assert sources.lines(str(tmp_path / "a")) == ["a: 1", "b: 2", "c: 3", ""]
    assert sources.lines("<stdin>") == ["x", "y"]
    for odd in (str(tmp_path / "bin"), str(tmp_path), str(tmp_path / "none"), "", "\x00"):
        assert sources.lines(odd) is None
