"""
What people hand over by mistake, with the real rules: one clear line with file:line:col and a hint each, the right exit
code, no traceback, nothing half written. The list is that of the issue ("Bad input"), and what else was met.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import NamedTuple

import pytest

from stallscope.cli.main import run

JOB = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {{name: {name}, namespace: t}}
spec:
  pytorchReplicaSpecs:
    Worker:
      {replicas}
      template:
        spec:
          containers:
            - {{name: pytorch, image: x}}
"""
NODE = "apiVersion: v1\nkind: Node\nmetadata: {name: %s}\nstatus: {allocatable: {cpu: 4, memory: 4Gi, pods: 110}}\n"
NODES = "".join("---\n" + NODE % name for name in ("n1", "n2"))


def job(replicas: str = "replicas: 2", name: str = "a") -> str:
    return JOB.format(replicas=replicas, name=name)


@pytest.fixture(autouse=True)
def rules() -> None:
    """The real rules, unlike the other tests of this directory."""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


class Met(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def tell(capsys: pytest.CaptureFixture[str]):
    def call(*words: str) -> Met:
        code = run([*words])
        met = Met(code, *capsys.readouterr())
        assert "Traceback" not in met.out + met.err
        assert "this is a bug" not in met.err
        return met

    return call


#: file text, exit code of check, message, place, hint
INPUTS = {
    "broken": ("a: [1, 2\nb: {", 2, "not YAML: did not find expected ',' or ']'", "x.yaml:2:2", "close the [ that"),
    "tab": ("\tkind: a\n", 2, "a tab stands where only spaces may indent", "x.yaml:1:1", "replace the tab by spaces"),
    "binary": (b"\x7fELF\x00\x01\x02", 2, "not text: a NUL byte at offset 4", "x.yaml:1:5", "looks like a binary file"),
    "NUL": (b"apiVersion: v1\nkind: Pod\nmeta\0data: {}\n", 2, "a NUL byte at offset 29", "x.yaml:3:5", "binary file"),
    "latin-1": (b"name: caf\xe9\n", 2, "not UTF-8: byte 0xe9 at offset 9", "x.yaml:1:10", "save the file as UTF-8"),
    "empty": ("", 3, "no training job found: 1 file read, without a Kubernetes object", "x.yaml:1:1", "give the file"),
    "comments": ("# only\n# this\n", 3, "without a Kubernetes object", "x.yaml:1:1", "give the file with the job"),
    "dashes": ("---\n---\n", 3, "without a Kubernetes object", "x.yaml:1:1", "give the file with the job"),
    "unknown kind": (
        "apiVersion: foo.io/v1\nkind: FooJob\nmetadata: {name: a}\n",
        3, "no training job found: 1 object in 1 file read (FooJob)", "x.yaml:2:1", "give the file with the job",
    ),
    "template": ("replicas: {{ .Values.n }}\n", 3, "a Helm template that was not rendered", "x.yaml:1:11", "helm template"),
    "negative replicas": (job("replicas: -2"), 1, "Worker.replicas must be at least 0, found -2", "x.yaml:7:7", "correct"),
    "text replicas": (job('replicas: "4"'), 1, 'must be a whole number, found the text "4"', "x.yaml:7:7", "without quotes"),
    "word replicas": (job("replicas: four"), 1, 'must be a whole number, found the text "four"', "x.yaml:7:7", "correct"),
    "half a replica": (job("replicas: 2.5"), 1, "must be a whole number, found the number 2.5", "x.yaml:7:7", "correct"),
    "list of replicas": (job("replicas: [1]"), 1, "must be a whole number, found a list", "x.yaml:7:7", "correct"),
    "too many replicas": (job("replicas: 99999999999"), 1, "must be at most 2147483647", "x.yaml:7:7", "correct"),
    "no replicas": (job("restartPolicy: Never"), 0, "", "", ""),  # the API server's default, one
    "duplicate key": (
        job("replicas: 2\n      replicas: 3"), 0, "the key 'replicas' is given twice, first at line 7; the last one counts",
        "x.yaml:8:7", "remove one of them",
    ),
    "two jobs of one name": (
        job() + "---\n" + job("replicas: 3"), 0, "PyTorchJob t/a is defined twice, first at x.yaml:3:18", "x.yaml:15:18",
        "rename or remove one of them",
    ),
    "nodes without zones": (job() + NODES, 0, "no node carries a zone label", "x.yaml:13:1", "label the nodes"),
    "a List that is none": ("kind: List\napiVersion: v1\nitems: 3\n", 1, "items of a List must be", "x.yaml:3:1", "correct"),
    "types anywhere": ("apiVersion: 1\nkind: [a]\nmetadata: 4\n", 1, "apiVersion must be text", "x.yaml:1:1", "quote it"),
}  # fmt: skip


@pytest.mark.parametrize("case", INPUTS)
def test_a_bad_file(case: str, here: Path, tell) -> None:
    text, code, message, place, hint = INPUTS[case]
    (here / "x.yaml").write_bytes(text if isinstance(text, bytes) else text.encode())
    met = tell("check", "x.yaml", "-o", "text", "-o", "short=short.txt")
    assert met.code == code
    assert message in " ".join(met.out.split())
    assert hint in " ".join(met.out.split())
    told = [line for line in (here / "short.txt").read_text().splitlines() if message in line]
    assert told if place else not message
    assert all(line.startswith(f"{place}: ") for line in told)
    assert len(told) <= 1  # one line for one cause


@pytest.mark.parametrize(
    "case", ["broken", "binary", "negative replicas", "text replicas", "template", "empty", "unknown kind"]
)
@pytest.mark.parametrize("verb", ["reach", "map", "fix", "rehearse"])
def test_no_other_verb_calls_it_empty_or_fine(verb: str, case: str, here: Path, tell) -> None:
    text, _, message, place, hint = INPUTS[case]
    (here / "x.yaml").write_bytes(text if isinstance(text, bytes) else text.encode())
    met = tell(verb, "x.yaml")
    assert met.out == ""
    assert met.code == (3 if case in ("template", "empty", "unknown kind") else 2)
    if case in ("empty", "unknown kind"):
        assert met.err == "error: no training job in 1 file\nhint: name the manifests of the job too\n"
    else:
        assert met.err.startswith(f"error: {place}: ")
        assert message in met.err
        assert hint == "correct" or hint in met.err


def test_a_policy_that_cannot_be_read_is_never_passed_over(here: Path, tell) -> None:
    """What was not read was not judged: the verbs that go on say so and fail, a rehearsal of half the policies is none."""
    (here / "job.yaml").write_text(job())
    (here / "policy.yaml").write_text("kind: NetworkPolicy\napiVersion: networking.k8s.io/v1\n spec: {}\n")
    said = "error: policy.yaml:3:6: not YAML: mapping values are not allowed in this context\nhint: check the indentation"
    for verb in ("reach", "fix"):
        met = tell(verb, ".")
        assert met.code == 2, verb
        assert said in met.err
        assert met.out
    met = tell("rehearse", ".", "--split")
    assert met == (2, "", met.err)
    assert met.err.startswith(said)
    (here / "then").mkdir()
    (here / "then" / "job.yaml").write_text(job())
    met = tell("check", ".", "--base", "then")
    assert met.code == 2
    assert said in met.err


def test_files_beyond_64_mib_are_not_read(here: Path, tell) -> None:
    with (here / "x.yaml").open("wb") as file:
        file.write(b"#" * ((64 << 20) + 1))
    met = tell("check", "x.yaml", "-o", "short")
    assert met.code == 2
    assert met.out == "x.yaml:1:1: STL901 too large: 64.0 MiB, more than the 64 MiB that are read of one file\n"


def test_the_same_name_in_two_directories_is_no_warning(here: Path, tell) -> None:
    """Overlays and examples repeat names and are applied apart."""
    for name in ("dev", "prod"):
        (here / name).mkdir()
        (here / name / "job.yaml").write_text(job())
    met = tell("check", ".", "--select", "STL904")
    assert met.code == 0
    assert met.out.startswith("info[STL904]: PyTorchJob t/a is defined twice, first at dev/job.yaml:3:18")
    assert "check the directories apart" in met.out


COMMANDS = {
    "missing file": (["check", "jbo.yaml"], 2, "jbo.yaml: no such file or directory", "did you mean job.yaml?"),
    "directory without YAML": (["check", "docs"], 3, "no YAML or JSON files in docs", "name the manifests"),
    "empty path": (["check", ""], 2, "a PATH is empty", "is a variable of the script unset?"),
    "no path": (["check"], 2, "nothing to read: no PATH given", "`stallscope check .` reads this directory"),
    "link to nothing": (["check", "link"], 2, "link: a symbolic link to nothing", "check where it points"),
    "unknown flag": (["check", "job.yaml", "--strikt"], 2, "no such option '--strikt'. Did you mean '--strict'?", "--help"),
    "unknown verb": (["chek", "job.yaml"], 2, "no such command: chek; did you mean `check`?", "--help"),
    "unknown rule": (["check", "job.yaml", "--select", "STL2O1"], 2, "no rule begins with 'STL2O1'", "`stallscope rules`"),
    "unknown slug": (["explain", "peer-deneid"], 2, "there is no rule 'peer-deneid'; did you mean peer-denied?", "rules"),
    "unknown format": (["check", "job.yaml", "-o", "jsn"], 2, "unknown format 'jsn'; did you mean 'json'?", "formats: text"),
    "format of another verb": (["map", "job.yaml", "-o", "sarif"], 2, "unknown format 'sarif'", "formats: text, svg, html"),
    "no file of a format": (["check", "job.yaml", "-o", "json="], 2, "no file after 'json='", "-o json=FILE"),
    "a report into nowhere": (["check", "job.yaml", "-o", "json=no/x"], 2, "cannot write no/x: No such file", ""),
    "two reports on one stream": (["check", "job.yaml", "-o", "json", "-o", "md"], 2, "two reports for standard", "-o"),
    "unknown config key": (["check", "job.yaml", "--config", "bad.yaml"], 2, "bad.yaml:2:1: unknown option", "options:"),
    "missing config": (["check", "job.yaml", "--config", "no.yaml"], 2, "config file no.yaml: No such", "check the path"),
    "missing nodes": (["check", "job.yaml", "--nodes", "no.yaml"], 2, "no.yaml: no such file or directory", "did you mean"),
    "nodes without a node": (["check", "job.yaml", "--nodes", "job.yaml"], 2, "job.yaml: no nodes in it", "kubectl get"),
    "missing baseline": (["check", "job.yaml", "--baseline", "no"], 2, "baseline no: No such file", "--write-baseline"),
    "no baseline": (["check", "job.yaml", "--baseline", "job.yaml"], 2, "baseline job.yaml: not JSON", "--write-baseline"),
    "missing links": (["check", "job.yaml", "--links", "no"], 2, "--links: cannot read no: No such file", "docs/cost.md"),
    "no such revision": (["check", "job.yaml", "--base", "nix"], 2, "--base: 'nix' is no revision here", "a branch, a tag"),
    "port without a pair": (["reach", "job.yaml", "--port", "80"], 2, "--port asks about one pair", "add --from and --to"),
    "half a pair": (["reach", "job.yaml", "--from", "Worker"], 2, "--from and --to go together", "--to Master"),
    "a job that is not there": (["reach", "job.yaml", "--job", "b"], 3, "no job named 'b'", "jobs: PyTorchJob t/a"),
    "a map without nodes": (["map", "job.yaml"], 2, "a map needs nodes: none are in the input", "kubectl get nodes"),
    "both write and check": (["fix", "job.yaml", "--write", "--check"], 2, "--write and --check exclude", "--check only"),
}  # fmt: skip


@pytest.mark.parametrize("case", COMMANDS)
def test_a_bad_command_line(case: str, here: Path, tell) -> None:
    words, code, message, hint = COMMANDS[case]
    (here / "job.yaml").write_text(job())
    (here / "bad.yaml").write_text("# mine\nselct: [STL1]\n")
    (here / "docs").mkdir()
    (here / "docs" / "readme.txt").write_text("no YAML")
    (here / "link").symlink_to("nowhere")
    before = sorted(here.iterdir())
    met = tell(*words)
    assert met.code == code
    assert met.out == ""
    first, *more = met.err.splitlines()
    assert first.startswith("error: ")
    assert message in first
    assert len(more) <= 1
    assert not hint or (more and more[0].startswith("hint: ") and hint in more[0])
    assert sorted(here.iterdir()) == before  # nothing half written


def test_standard_input_twice_is_read_once(monkeypatch: pytest.MonkeyPatch, here: Path, tell) -> None:
    (here / "job.yaml").write_text(job())
    with (here / "job.yaml").open() as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        met = tell("jobs", "-", "-")
    assert met.code == 0
    assert met.out.count("PyTorchJob t/a") == 1


def test_a_fifo_is_read_to_its_end(here: Path, tell) -> None:
    os.mkfifo(here / "pipe")
    writer = threading.Thread(target=lambda: (here / "pipe").write_text(job()))
    writer.start()
    met = tell("jobs", "pipe")
    writer.join()
    assert met.code == 0
    assert "pipe:3:1" in met.out


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_what_the_user_may_not_read(here: Path, tell) -> None:
    (here / "job.yaml").write_text(job())
    (here / "secret.yaml").write_text(job(name="b"))
    (here / "secret.yaml").chmod(0)
    met = tell("check", "secret.yaml")
    assert met == (
        2,
        "",
        "error: secret.yaml: cannot be read: permission denied\nhint: check the path and its permissions\n",
    )
    assert "secret.yaml:1:1: STL901 cannot be read: permission denied" in tell("check", ".", "-o", "short").out


def test_a_directory_that_cannot_be_listed(here: Path, monkeypatch: pytest.MonkeyPatch, tell) -> None:
    """Also as root: the system's answer is played."""
    (here / "job.yaml").write_text(job())
    (here / "closed").mkdir()
    real = os.scandir

    def scandir(path="."):
        if Path(path).name == "closed":
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr("os.scandir", scandir)
    met = tell("check", ".", "-o", "short")
    assert met.code == 2
    assert "closed: STL901 this directory cannot be listed: permission denied" in met.out


@pytest.mark.parametrize(
    ("flags", "code", "said"),
    [
        ((), 2, True),
        (("--select", "STL2"), 2, True),  # a policy that nobody read denies nothing that anybody saw
        (("--min-severity", "error"), 2, True),
        (("--exit-zero",), 2, True),
        (("--ignore", "STL901"), 0, True),
    ],
)
def test_filters_do_not_hide_what_was_not_read(flags, code, said, here: Path, tell) -> None:
    (here / "job.yaml").write_text(job())
    (here / "policy.yaml").write_text("kind: NetworkPolicy\napiVersion: networking.k8s.io/v1\n spec: {}\n")
    met = tell("check", ".", *flags)
    assert met.code == code
    assert ("policy.yaml:3:6" in met.out) is said


@pytest.mark.parametrize("flags", [("--ignore", "STL904"), ("--select", "STL2"), ("--min-severity", "error")])
def test_filters_hide_the_other_problems(flags, here: Path, tell) -> None:
    (here / "job.yaml").write_text(job("replicas: 2\n      replicas: 3"))
    assert "given twice" not in tell("check", ".", *flags).out
