"""The small verbs, the help, and calling the program wrongly."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from stallscope import __version__
from stallscope.cli import main


def test_version(stallscope) -> None:
    assert stallscope("--version").out == f"stallscope {__version__}\n"
    assert stallscope("version").out.startswith(f"stallscope {__version__} (Python 3.")


def test_help_is_grouped_and_lists_only_verbs_that_exist(stallscope, monkeypatch) -> None:
    monkeypatch.setitem(main.VERBS, "jobs", main.Verb("stallscope.cli.absent", main.BEFORE, "never shown"))
    done = stallscope("--help")
    assert done.code == 0
    lines = done.out.splitlines()
    assert lines.index("Before the merge:") < lines.index("Understand:") < lines.index("Set up:") < lines.index("Options:")
    assert "never shown" not in done.out and "  helm template chart | stallscope check -" in lines
    assert all(len(line) <= 100 for line in lines)
    assert stallscope("jobs").code == 2


@pytest.mark.parametrize("verb", ["check", "explain", "rules", "completion"])
def test_every_verb_has_examples(stallscope, verb) -> None:
    done = stallscope(verb, "--help")
    assert done.code == 0 and "Examples:" in done.out and f"stallscope {verb}" in done.out
    assert stallscope(verb, "-h").out == done.out


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("chek",), "error: no such command: chek; did you mean `check`?\n"),
        (("job.yaml",), "error: no such command: job.yaml; did you mean `stallscope check job.yaml`?\n"),
        (("xyzzy",), "error: no such command: xyzzy\n"),
    ],
)
def test_wrong_words_get_a_way_on(stallscope, args, says) -> None:
    done = stallscope(*args)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(says) and done.err.endswith("hint: `stallscope --help` shows what it takes\n")


def test_without_a_verb_the_help_is_shown(stallscope) -> None:
    done = stallscope()
    assert (done.code, done.out) == (2, "")  # a script that lost its arguments must not read this as success
    assert done.err == stallscope("--help").out


@pytest.mark.parametrize("word", ["STL201", "stl201", "peer-denied", "[STL201]"])
def test_explain(stallscope, word) -> None:
    done = stallscope("explain", word)
    assert done.code == 0
    assert done.out.startswith(
        "STL201 peer-denied  (error, since 0.1.0, `fix` knows a patch)\n\nWhat\n  What it finds. More.\n"
    )


def test_explain_in_other_formats(stallscope) -> None:
    assert stallscope("explain", "STL201", "-o", "md").out.startswith("# STL201 peer-denied\n")
    assert json.loads(stallscope("explain", "STL201", "-o", "json").out)["slug"] == "peer-denied"


def test_explain_of_something_unknown(stallscope) -> None:
    done = stallscope("explain", "STL202")
    assert (done.code, done.out) == (2, "")
    assert done.err == "error: there is no rule 'STL202'; did you mean STL302?\nhint: `stallscope rules` lists them\n" or (
        done.err == "error: there is no rule 'STL202'; did you mean STL201?\nhint: `stallscope rules` lists them\n"
    )


def test_rules(stallscope) -> None:
    assert stallscope("rules").out.splitlines() == [
        "STL201  error    peer-denied         What it finds",
        "STL302  warning  shm-too-small       What it finds",
        "STL990  warning  unused-suppression  A suppression matches nothing",
    ]
    data = json.loads(stallscope("rules", "--select", "STL3", "-o", "json").out)
    assert [r["id"] for r in data["rules"]] == ["STL302"]
    assert "| [STL302](rules/STL302.md) shm-too-small | warning |  | What it finds |" in stallscope("rules", "-o", "md").out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(stallscope, shell) -> None:
    done = stallscope("completion", shell)
    assert done.code == 0 and "_STALLSCOPE_COMPLETE" in done.out


def test_completion_completes() -> None:
    env = {
        "_STALLSCOPE_COMPLETE": "bash_complete",
        "COMP_WORDS": "stallscope ch",
        "COMP_CWORD": "1",
        "PATH": "/usr/bin:/bin",
    }
    done = subprocess.run([sys.executable, "-m", "stallscope"], env=env, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == ["plain,check"]


@pytest.mark.parametrize(
    ("path", "prog"),
    [
        ("/usr/bin/stallscope", "stallscope"),
        ("/usr/local/bin/kubectl-stallscope", "kubectl stallscope"),
        ("/x/stallscope/__main__.py", "stallscope"),
    ],
)
def test_program_name(path, prog) -> None:
    assert main.program_name(path) == prog
