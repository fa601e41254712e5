"""`check` from its arguments to its exit code."""

from __future__ import annotations

import io
import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from stallscope.cli import pipeline
from stallscope.findings import Severity
from stallscope.rules import registry

CLEAN = ("--ignore", "STL")


def test_the_report_is_on_stdout_and_the_summary_on_stderr(stallscope) -> None:
    done = stallscope("check", "job.yaml")
    assert done.code == 1
    assert done.out == (
        "error[STL201]: peer-denied found\n"
        " --> job.yaml:4:3\n"
        "  |\n"
        "4 |   name: llm\n"
        "  |   ^^^^ here\n"
        "  |\n"
        "  = fix: `stallscope fix job.yaml` shows the patch\n"
        "\n"
        "warning[STL302]: shm-too-small found\n"
        "  --> job.yaml:15:5\n"
        "   |\n"
        "15 |     Worker:\n"
        "   |     ^^^^^^ here\n"
        "   |\n"
        "\n"
    )
    summary, hint = done.err.splitlines()
    assert re.fullmatch(
        r"2 findings \(1 fixable\): 1 error, 1 warning\. "
        r"Checked 1 job, 0 policies, \d+ peer edges in \d\.\d\d s(; \d+ unjudged)?",
        summary,
    )
    assert hint == "`stallscope explain STL201` tells why it matters and how to fix it."


def test_a_clean_run(stallscope) -> None:
    done = stallscope("check", "job.yaml", *CLEAN, "-o", "short")
    assert (done.code, done.out) == (0, "")
    assert done.err.startswith("No findings. Checked 1 job, ") and len(done.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("flags", "code"),
    [
        ((), 1),
        (("--fail-on", "never"), 0),
        (("--exit-zero",), 0),
        (("--ignore", "STL201"), 0),
        (("--ignore", "STL201", "--fail-on", "warning"), 1),
        (("--ignore", "STL201", "--fail-on", "info"), 1),
        (("--ignore", "peer-denied,STL3", "--fail-on", "info"), 0),
        (("--select", "STL3"), 0),
        (("--select", "STL3", "--fail-on", "warning"), 1),
        (("--min-severity", "error"), 1),
        (("--ignore", "STL201", "--min-severity", "error", "--fail-on", "warning"), 0),
    ],
)
@pytest.mark.parametrize("format", ["text", "json", "sarif", "junit", "github", "gitlab", "md", "short"])
def test_the_exit_code_follows_the_findings_and_never_the_format(stallscope, flags, code, format) -> None:
    assert stallscope("check", "job.yaml", "-o", format, *flags).code == code


def test_quiet(stallscope) -> None:
    assert stallscope("check", "job.yaml", "-q").err == ""


def test_min_severity_hides(stallscope) -> None:
    assert "STL302" not in stallscope("check", "job.yaml", "--min-severity", "error").out


@pytest.mark.parametrize("paths", [("-f", "job.yaml"), ("--filename", "job.yaml"), (".",), ("job.yaml", "-f", ".")])
def test_ways_to_name_the_input(stallscope, paths) -> None:
    data = json.loads(stallscope("check", *paths, "-o", "json").out)
    assert [j["name"] for j in data["jobs"]] == ["llm"]
    assert data["findings"][0]["locations"][0]["file"] == "job.yaml"


@pytest.mark.parametrize(("flags", "name"), [((), "<stdin>"), (("--stdin-name", "chart/job.yaml"), "chart/job.yaml")])
def test_standard_input_is_quoted_like_a_file(stallscope, monkeypatch, place, flags, name) -> None:
    text = (place / "job.yaml").read_bytes()
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(text)))
    done = stallscope("check", "-", *flags)
    assert f" --> {name}:4:3\n  |\n4 |   name: llm\n" in done.out


def test_no_input_named(stallscope) -> None:
    done = stallscope("check")
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        "error: nothing to read: no PATH given\nhint: `stallscope check .` reads this directory; - is standard input\n"
    )


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("none.yaml", None, "error: none.yaml: no such file or directory\n"),
        ("broken.yaml", b"a: [1\nb: {\n", "broken.yaml:"),
        ("binary.yaml", b"\x7fELF\x00\x01", "binary.yaml:1:"),
    ],
)
def test_bad_input_is_one_clear_error_and_exit_2(stallscope, place, name, content, says) -> None:
    if content is not None:
        (place / name).write_bytes(content)
    done = stallscope("check", name)
    assert done.code == 2
    assert says in done.out + done.err
    assert "Traceback" not in done.out + done.err
    assert (done.out + done.err).count("error") <= 2  # the file's, and that the input is incomplete


def test_bad_input_beside_good_does_not_hide_the_good(stallscope, place) -> None:
    (place / "broken.yaml").write_text("apiVersion: v1\nkind: [\n")
    done = stallscope("check", ".", "--exit-zero")
    assert done.code == 2
    assert "error[STL201]" in done.out and "broken.yaml:" in done.out


def test_unreadable_input_can_be_accepted_on_purpose(stallscope, place, monkeypatch) -> None:
    from stallscope.rules.stl9xx_input.stl901_unreadable_input import RULE

    monkeypatch.setattr(registry, "RULES", (*registry.RULES, RULE))
    (place / "broken.yaml").write_text("apiVersion: v1\nkind: [\n")
    args = ("check", ".", "--ignore", "STL2,STL3")
    assert stallscope(*args).code == 2
    assert stallscope(*args, "--ignore", "STL901").code == 0
    with (place / "broken.yaml").open("a") as file:
        file.write("# stallscope: ignore-file[STL901] a fixture that must not parse\n")
    done = stallscope(*args)
    assert done.code == 0 and "; 1 suppressed" in done.err


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({"t.yaml": "apiVersion: v1\nkind: Job\nmetadata:\n  name: {{ .Values.name }}\n"}, "only unrendered templates"),
        ({"p.yaml": "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: p}\nspec: {podSelector: {}}\n"},
         "no training job in 1 file (1 policy, but no job they could stall)"),
        ({"c.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n"}, "no training job in 1 file"),
        ({}, "no YAML or JSON files in sub"),
    ],
)  # fmt: skip
def test_nothing_to_check_is_no_success(stallscope, place, files, says) -> None:
    (place / "sub").mkdir()
    for name, text in files.items():
        (place / "sub" / name).write_text(text)
    done = stallscope("check", "sub")
    assert done.code == 3
    assert done.err.startswith("error: ") and says in done.err
    assert stallscope("check", "sub", "--allow-empty").code == 0


def test_strict_fails_on_what_is_not_judged(stallscope, monkeypatch) -> None:
    from dataclasses import replace

    whole = pipeline.analyse

    def analyse(inputs):
        analysis = whole(inputs)
        return replace(analysis, judgement=replace(analysis.judgement, unjudged=("a secondary network",)))

    monkeypatch.setattr(pipeline, "analyse", analyse)
    assert stallscope("check", "job.yaml", *CLEAN).code == 0
    done = stallscope("check", "job.yaml", *CLEAN, "--strict")
    assert done.code == 1
    assert "note: not judged (1 verdict)\n  - a secondary network\n" in done.out
    assert "; 1 unjudged" in done.err


def test_suppressions(stallscope, place) -> None:
    text = (place / "job.yaml").read_text()
    (place / "job.yaml").write_text(text.replace("name: llm", "name: llm  # stallscope: ignore[STL201,STL302] known"))
    done = stallscope("check", "job.yaml", "-o", "json")
    data = json.loads(done.out)
    assert [f["rule"] for f in data["findings"]] == ["STL990", "STL302"]
    assert [(s["rule"], s["suppression"]["reason"]) for s in data["suppressed"]] == [("STL201", "known")]
    assert done.code == 0 and "; 1 suppressed" in done.err


def test_a_baseline_accepts_what_is_there_and_nothing_new(stallscope, monkeypatch) -> None:
    assert stallscope("check", "job.yaml", "--write-baseline", "b.json").code == 0
    done = stallscope("check", "job.yaml", "--baseline", "b.json", "-o", "json")
    assert done.code == 0
    assert json.loads(done.out)["summary"]["baselined"] == 2
    assert "; 2 in the baseline" in done.err
    Path("job.yaml").write_text(Path("job.yaml").read_text().replace("name: llm", "name: other"))
    done = stallscope("check", "job.yaml", "--baseline", "b.json")
    assert done.code == 1
    assert "; 2 stale baseline entries" in done.err


def test_low_severities_are_in_a_written_baseline(stallscope) -> None:
    stallscope("check", "job.yaml", "--write-baseline", "b.json", "--min-severity", "error")
    assert [e["rule"] for e in json.loads(Path("b.json").read_text())["findings"]] == ["STL201", "STL302"]


def test_flags_win_over_the_environment_and_that_over_the_file(stallscope, place, monkeypatch) -> None:
    (place / "stallscope.yaml").write_text("fail-on: never\nignore: [STL302]\n")
    done = stallscope("check", "job.yaml")
    assert done.code == 0 and "STL302" not in done.out
    monkeypatch.setenv("STALLSCOPE_FAIL_ON", "error")
    assert stallscope("check", "job.yaml").code == 1
    assert stallscope("check", "job.yaml", "--fail-on", "never").code == 0
    monkeypatch.delenv("STALLSCOPE_FAIL_ON")
    assert stallscope("check", "job.yaml", "--no-config").code == 1
    (place / "other.yaml").write_text("select: STL3\n")
    assert stallscope("check", "job.yaml", "--config", "other.yaml").code == 0
    monkeypatch.setenv("STALLSCOPE_CONFIG", "other.yaml")
    assert "STL201" not in stallscope("check", "job.yaml").out


def test_a_wrong_config_file_stops_the_run(stallscope, place) -> None:
    (place / "stallscope.yaml").write_text("fail_on: never\n")
    done = stallscope("check", "job.yaml")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: stallscope.yaml:1:1: unknown option 'fail_on'; did you mean 'fail-on'?\nhint: ")
    assert stallscope("check", "--config", "none.yaml", ".").err.startswith("error: config file none.yaml: No such file")


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("--output", "xml"), "-o: unknown format 'xml'"),
        (("--fail-on", "high"), "invalid value for '--fail-on'"),
        (("--cni", "weave"), "--cni: unknown network plugin 'weave'"),
        (("--nodes", "none.yaml"), "none.yaml: no such file or directory"),
        (("--baseline", "none.json"), "baseline none.json: No such file or directory"),
        (("--select", "STL8"), "--select: no rule begins with 'STL8'"),
        (("--colour", "never"), "no such option '--colour'"),
        (("-o", "text=none/x"), "cannot write none/x: No such file or directory"),
    ],
)
def test_usage_errors_exit_2_with_a_hint_or_reason(stallscope, args, says) -> None:
    done = stallscope("check", "job.yaml", *args)
    assert done.code == 2
    assert done.err.splitlines()[0].lower().startswith(f"error: {says}".lower())


def test_colour(stallscope, monkeypatch) -> None:
    assert "\x1b" not in stallscope("check", "job.yaml").out
    assert "\x1b[1;31merror[STL201]" in stallscope("check", "job.yaml", "--color", "always").out
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[1;31merror[STL201]" in stallscope("check", "job.yaml").out
    assert "\x1b]8" not in stallscope("check", "job.yaml").out  # links only where a terminal can follow them


def test_kubectl_plugin(stallscope) -> None:
    done = stallscope("check", "job.yaml", prog="kubectl stallscope")
    assert "= fix: `kubectl stallscope fix job.yaml` shows the patch" in done.out
    assert "Usage: kubectl stallscope check" in stallscope("check", "--help", prog="kubectl stallscope").out


def test_a_bug_in_a_rule_is_no_traceback(stallscope, monkeypatch, tmp_path) -> None:
    import tempfile
    from dataclasses import replace

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    broken = replace(registry.RULES[0], check=lambda _: 1 / 0)
    monkeypatch.setattr(registry, "RULES", (broken,))
    done = stallscope("check", "job.yaml")
    assert done.code == 2
    assert done.err.startswith(
        "error: this is a bug in Stallscope: ZeroDivisionError: division by zero\nhint: please report"
    )


def test_the_words_of_the_flags_are_those_of_the_program() -> None:
    from stallscope.cli import options
    from stallscope.load import config
    from stallscope.render import formats

    assert options.SEVERITIES == config.SEVERITY == tuple(Severity)
    assert options.FORMATS == formats.FORMATS
