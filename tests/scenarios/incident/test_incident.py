"""The story of the README, told by its files: what is found, what the fix writes, and that the fixed twin is clean."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from stallscope.cli.main import run

EXAMPLES = Path(__file__).parents[3] / "examples"
NODES = str(EXAMPLES / "incident" / "nodes.yaml")
FORMS = ["incident", "incident-detour", "incident-trainjob"]


def findings(capsys, *args):
    code = run(["check", *args, "-o", "json", "-q"])
    report = json.loads(capsys.readouterr().out)
    return code, {f["rule"]: f for f in report["findings"] if f["severity"] != "info"}


def line(file, text):
    """1-based line of the first line of `file` that contains `text`."""
    lines = (EXAMPLES / file).read_text().splitlines()
    return next(n for n, content in enumerate(lines, 1) if text in content)


def test_the_denying_boundary(capsys):
    code, found = findings(capsys, str(EXAMPLES / "incident"))
    assert code == 1
    assert set(found) == {"STL101", "STL102", "STL201", "STL202"}
    denied = found["STL202"]
    assert "llm-master-0" in denied["message"]
    assert "TCP 23456" in denied["message"]
    primary = denied["locations"][0]
    assert primary["file"].endswith("incident/policy.yaml")
    assert primary["line"] == line("incident/policy.yaml", "endpointSelector")


def test_the_permissive_boundary_only_detours(capsys):
    code, found = findings(capsys, str(EXAMPLES / "incident-detour"), "--nodes", NODES)
    assert code == 1
    assert set(found) == {"STL101", "STL102"}


def test_the_rendezvous_port_alone_is_not_enough(capsys):
    _, found = findings(capsys, str(EXAMPLES / "incident-trainjob"), "--nodes", NODES)
    assert {"STL101", "STL203"} <= set(found)
    assert "29500" in found["STL203"]["message"]


@pytest.mark.parametrize(("version", "denied"), [("1.18.6", True), ("1.18.7", False), ("1.19.4", False)])
def test_a_boundary_on_the_zone_label_flips_with_a_patch_upgrade(capsys, version, denied):
    folder = str(EXAMPLES / "incident-topology-label")
    _, found = findings(capsys, folder, "--nodes", NODES, "--cni", f"cilium@{version}")
    assert "STL208" in found
    assert ("STL201" in found) is denied


@pytest.mark.parametrize("form", FORMS)
def test_fix_writes_the_fixed_twin_and_the_twin_is_clean(form, tmp_path, capsys):
    work = tmp_path / form
    work.mkdir()
    for name in ("job.yaml", "policy.yaml"):
        shutil.copy(EXAMPLES / form / name, work)
    assert run(["fix", "--write", str(work), "--nodes", NODES]) == 0
    said = capsys.readouterr().err
    assert "proved: cannot be split" in said
    for name in ("job.yaml", "policy.yaml"):
        twin = (EXAMPLES / f"{form}-fixed" / name).read_text().splitlines()[1:]  # the first line tells the story
        assert (work / name).read_text().splitlines()[1:] == twin
    code, found = findings(capsys, str(work), "--nodes", NODES)
    assert (code, found) == (0, {})


def test_a_kind_config_is_a_topology_too(capsys):
    """Zones and taints but no GPUs: the split is still found, capacity is said not to be judged."""
    kind = str(EXAMPLES / "incident" / "kind.yaml")
    code, found = findings(capsys, str(EXAMPLES / "incident" / "job.yaml"), "--nodes", kind)
    assert code == 1
    assert "STL101" in found
