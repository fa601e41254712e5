"""
What users and their scripts rely on, as literal lists. A failure here is a question: is the change meant, is it in the
CHANGELOG, and does it break anybody? Adding is allowed; removing or renaming needs a new major version.
"""

from __future__ import annotations

import json

import click
import pytest

from stallscope.cli import exitcodes, main
from stallscope.cli.options import CNIS, FORMATS
from stallscope.findings import Confidence, Severity, SuppressedBy
from stallscope.load.config import KEYS, YAML_NAMES
from stallscope.load.directives import ANNOTATION
from stallscope.render import schema

INPUT = ["PATH…", "-f", "--filename", "--stdin-name", "--nodes", "-n", "--namespace", "--cni", "--k8s-version"]
INPUT += ["--cilium-option", "--no-config", "--config"]
FLAGS = {
    "check": [
        *INPUT, "-o", "--output", "--fail-on", "--min-severity", "--select", "--ignore", "--strict", "--baseline",
        "--write-baseline", "--exit-zero", "--allow-empty", "--color", "-q", "--quiet", "--no-progress",
    ],
    "explain": ["RULE", "-o", "--output", "--color"],
    "rules": ["--select", "-o", "--output", "--color"],
    "completion": ["{bash|zsh|fish}"],
    "version": [],
}  # fmt: skip


def test_verbs() -> None:
    assert list(main.VERBS) == [
        "check", "jobs", "reach", "map", "fix", "rehearse", "explain", "rules", "completion", "version",
    ]  # fmt: skip


@pytest.mark.parametrize("verb", FLAGS)
def test_flags(verb) -> None:
    command = main.cli.get_command(click.Context(main.cli), verb)
    assert command is not None
    context = click.Context(command)
    words = [[p.make_metavar(context)] if isinstance(p, click.Argument) else p.opts for p in command.params]
    assert [name for names in words for name in names] == FLAGS[verb]


def test_words() -> None:
    assert FORMATS == ("text", "short", "json", "sarif", "junit", "github", "gitlab", "md")
    assert CNIS == ("cilium", "calico", "ovn", "antrea", "generic", "none")
    assert list(Severity) == ["error", "warning", "info"]
    assert list(Confidence) == ["certain", "depends"]
    assert list(SuppressedBy) == ["comment", "annotation", "baseline"]
    assert ANNOTATION == "stallscope.dev/ignore"


def test_exit_codes() -> None:
    codes = (exitcodes.CLEAN, exitcodes.FINDINGS, exitcodes.ERROR, exitcodes.NOTHING, exitcodes.INTERRUPTED)
    assert codes == (0, 1, 2, 3, 130)


def test_config() -> None:
    assert YAML_NAMES == ("stallscope.yaml", ".stallscope.yaml")
    assert list(KEYS) == [
        "nodes", "namespace", "cni", "k8s-version", "cilium-option", "output", "fail-on", "min-severity", "select",
        "ignore", "strict", "allow-empty", "baseline", "color",
    ]  # fmt: skip


LOCATION = ["file", "line", "column", "endLine", "endColumn", "path", "renderedFrom"]
FINDING = [
    "rule", "slug", "severity", "confidence", "message", "subject", "key", "fingerprint", "fixable", "locations", "notes",
    "help",
]  # fmt: skip


def test_json_keys() -> None:
    published = json.loads(schema.read("report-1"))
    assert published["properties"]["schemaVersion"] == {"const": "1"}
    parts = {"": published, **published["$defs"]}
    assert {name: list(part["properties"]) for name, part in parts.items()} == {
        "": ["schemaVersion", "tool", "summary", "jobs", "findings", "suppressed", "unjudged", "problems"],
        "location": LOCATION,
        "label": [*LOCATION, "text", "primary"],
        "finding": FINDING,
        "suppressed": [*FINDING, "suppression"],
        "problem": ["kind", "message", "hint", "subject", "location"],
        "role": ["name", "kind", "replicas", "ranksPerPod"],
        "witnessPod": ["pod", "node", "zone"],
        "job": [
            "kind", "namespace", "name", "location", "worldSize", "distributed", "roles", "canSplit", "why", "zoneSets",
            "witness", "flows", "notes", "unsupported", "caveats",
        ],
        "summary": [
            "findings", "errors", "warnings", "infos", "fixable", "suppressed", "baselined", "staleBaseline", "unjudged",
            "jobs", "policies", "peerEdges", "files",
        ],
    }  # fmt: skip
    for part in parts.values():
        assert sorted(part["required"]) == sorted(part["properties"])  # every key is always there


def test_every_command_line_tool_is_installed() -> None:
    from importlib.metadata import entry_points

    scripts = {e.name: e.value for e in entry_points(group="console_scripts") if "stallscope" in e.name}
    assert scripts == {
        "stallscope": "stallscope.cli.main:main",
        "kubectl-stallscope": "stallscope.cli.main:main",
    }
