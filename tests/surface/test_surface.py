"""
What users and their scripts rely on, as literal lists. A failure here is a question: is the change meant, is it in the
CHANGELOG, and does it break anybody? Adding is allowed; removing or renaming needs a new major version.
"""

from __future__ import annotations

import json

import click
import pytest

from stallscope.cli import exitcodes, jobs, main, reach, rehearse
from stallscope.cli import map as map_verb
from stallscope.cli.options import CNIS, FIX_FORMATS, FORMATS
from stallscope.findings import Confidence, Severity, SuppressedBy
from stallscope.load.config import KEYS, YAML_NAMES
from stallscope.load.directives import ANNOTATION
from stallscope.render import schema

INPUT = ["PATH…", "-f", "--filename", "--stdin-name", "--nodes", "-n", "--namespace", "--cni", "--k8s-version"]
INPUT += ["--cilium-option", "--no-config", "--config"]
PRICES = ["--gradient-bytes", "--compute-ms", "--overlap", "--algorithm", "--links", "--egress-price"]
FLAGS = {
    "check": [
        *INPUT, "-o", "--output", "--fail-on", "--min-severity", "--select", "--ignore", "--strict", "--baseline",
        "--write-baseline", "--base", "--exit-zero", "--allow-empty", *PRICES, "--color", "-q", "--quiet", "--no-progress",
    ],
    "reach": [*INPUT, "--from", "--to", "--port", "--job", "-o", "--output"],
    "map": [*INPUT, *PRICES, "-o", "--output", "--job", "--as-written"],
    "jobs": [*INPUT, "--flows", "-o", "--output"],
    "fix": [
        *INPUT, "-o", "--output", "--write", "--check", "--strategy", "--zone", "--coordinator", "--spread-hosts",
        "--select", "--ignore", "--color", "-q", "--quiet",
    ],
    "rehearse": [
        *INPUT, *PRICES, "-o", "--output", "--job", "--split", "--fixed", "--both", "--placement", "--steps", "--repeat",
        "--ranks", "--exec", "--fault", "--built-in", "--max-idle", "--require-reachable", "--backend", "--context",
        "--image", "--write-kind", "--named", "--color", "-q", "--quiet", "--no-progress",
    ],
    "bench": [],
    "explain": ["RULE", "-o", "--output", "--color"],
    "rules": ["--select", "-o", "--output", "--color"],
    "completion": ["{bash|zsh|fish}"],
    "version": [],
}  # fmt: skip


def test_verbs() -> None:
    assert list(main.VERBS) == [
        "check", "jobs", "reach", "map", "fix", "rehearse", "bench", "explain", "rules", "completion", "version",
    ]  # fmt: skip


def flags(command: click.Command) -> list[str]:
    context = click.Context(command)
    words = [[p.make_metavar(context)] if isinstance(p, click.Argument) else p.opts for p in command.params]
    return [name for names in words for name in names]


def verb_of(name: str) -> click.Command:
    command = main.cli.get_command(click.Context(main.cli), name)
    assert command is not None
    return command


@pytest.mark.parametrize("verb", main.VERBS)
def test_flags(verb) -> None:
    assert flags(verb_of(verb)) == FLAGS[verb]


def test_flags_below_bench() -> None:
    bench = verb_of("bench")
    assert isinstance(bench, click.Group)
    assert {name: flags(command) for name, command in bench.commands.items()} == {
        "faults": ["--fault", "--ranks", "--steps", "--repeat", "--built-in", "-o", "--output"],
    }


@pytest.mark.parametrize(
    ("verb", "flag", "words"),
    [
        ("check", "--fail-on", ["error", "warning", "info", "never"]),
        ("check", "--algorithm", ["ring", "tree"]),
        ("fix", "--strategy", ["auto", "pin", "portable", "native"]),
        ("fix", "--coordinator", ["auto", "gpu-nodes", "cpu-pool"]),
        ("rehearse", "--backend", ["pocket", "kind", "current"]),
    ],
)
def test_choices(verb, flag, words) -> None:
    option = next(p for p in verb_of(verb).params if flag in p.opts)
    assert isinstance(option.type, click.Choice)
    assert list(option.type.choices) == words


@pytest.mark.parametrize(
    "words", [["--help"], *([v, "--help"] for v in main.VERBS), ["bench", "faults", "--help"]], ids=" ".join
)
@pytest.mark.parametrize("prog", ["stallscope", "kubectl stallscope"])
def test_help_fits_a_terminal_and_explains_every_flag(words, prog, capsys, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main.run(words, prog) == exitcodes.CLEAN
    told = capsys.readouterr().out
    long = [line for line in told.splitlines() if len(line) > 80]
    assert not [line for line in long if prog == "stallscope" or "/completions/" not in line]
    assert prog == "stallscope" or not [line for line in told.splitlines() if line.lstrip().startswith("stallscope ")]
    command: click.Command = main.cli
    for word in words[:-1]:
        assert isinstance(command, click.Group)
        found = command.get_command(click.Context(command), word)
        assert found is not None
        command = found
    assert [p.opts[0] for p in command.params if isinstance(p, click.Option) and not p.help] == []


RULES = {
    "STL101": "job-can-split",
    "STL102": "coordinator-cannot-tolerate",
    "STL103": "role-unschedulable",
    "STL104": "spread-forces-split",
    "STL105": "affinity-deadlock",
    "STL106": "constraint-pins-nothing",
    "STL107": "zone-labels-missing",
    "STL108": "zone-lock-in",
    "STL109": "exclusive-topology-forces-zones",
    "STL110": "leftover-label",
    "STL201": "peer-denied",
    "STL202": "rendezvous-denied",
    "STL203": "only-rendezvous-port-open",
    "STL204": "dns-denied",
    "STL205": "policy-selects-nothing",
    "STL206": "mesh-sidecar-without-opt-out",
    "STL207": "host-network-unjudged",
    "STL208": "zone-label-policy-inert",
    "STL209": "policy-rejected",
    "STL210": "policy-not-enforced",
    "STL211": "l7-on-collective-ports",
    "STL212": "identity-explosion",
    "STL213": "secondary-network-not-judged",
    "STL214": "webhook-denied",
    "STL215": "launcher-denied",
    "STL216": "verdict-depends-on-zone",
    "STL217": "service-port-denied",
    "STL218": "api-server-denied",
    "STL301": "nccl-interface-trap",
    "STL302": "shm-too-small",
    "STL303": "rendezvous-port-mismatch",
    "STL304": "rendezvous-address-mismatch",
    "STL305": "timeout-shorter-than-checkpoint",
    "STL306": "rendezvous-port-in-ephemeral-range",
    "STL307": "ineffective-nccl-setting",
    "STL308": "headless-service-missing",
    "STL309": "host-network-port-clash",
    "STL401": "no-collective-telemetry",
    "STL402": "flight-recorder-lost",
    "STL403": "metrics-denied",
    "STL404": "gpu-without-limit",
    "STL501": "cross-zone-bill",
    "STL901": "unreadable-input",
    "STL902": "unrendered-template",
    "STL903": "nothing-to-check",
    "STL904": "duplicate",
    "STL905": "invalid-job",
    "STL906": "unsupported-kind",
    "STL990": "unused-suppression",
}


def test_rule_ids_are_never_renamed_removed_or_reused() -> None:
    from stallscope.rules.registry import RULES as REGISTERED

    assert {**{r.id: r.slug for r in REGISTERED}, **RULES} == {r.id: r.slug for r in REGISTERED}
    assert len({r.id for r in REGISTERED}) == len({r.slug for r in REGISTERED}) == len(REGISTERED)


def test_words() -> None:
    assert FORMATS == ("text", "short", "json", "sarif", "junit", "github", "gitlab", "md")
    assert reach.FORMATS == ("text", "json", "md", "html")
    assert map_verb.FORMATS == ("text", "svg", "html")
    assert rehearse.FORMATS == ("text", "json", "md", "html")
    assert jobs.FORMATS == ("text", "json")
    assert FIX_FORMATS == ("diff", "json", "kustomize", "jsonpatch")
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
