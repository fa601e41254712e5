"""The verb end to end on the incident: the deny form and the detour form, measured, and the exit codes CI sees."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stallscope.cli.main import run

pytestmark = [pytest.mark.root, pytest.mark.slow, pytest.mark.usefixtures("needs_nft")]

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
NODES = str(EXAMPLES / "incident/nodes.yaml")


def rehearse(*words: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, object], str]:
    code = run(["rehearse", *words, "--built-in", "-o", "json"])
    out, err = capsys.readouterr()
    return code, json.loads(out) if out else {}, err


def test_the_detour_costs_what_the_link_profile_says(capsys: pytest.CaptureFixture[str]) -> None:
    """
    Profile: 40 Gbit/s in a zone, 5 Gbit/s across; 14 GB of gradients, 5 ranks, compute 22.1 s (6 x 7e9 x 65,536 / 124.8e12).
    In one zone the ring needs 1.6 x 14 GB / 5 GB/s = 4.48 s, split 35.84 s: busy 0.83 and 0.38, throughput loss
    1 - 26.5/57.9 = 54 %. The write-up's figures are 40 -> 85 % and -30 to -60 %.
    """
    code, report, err = rehearse(
        str(EXAMPLES / "incident-detour"), "--nodes", NODES, "--repeat", "1", "--steps", "6", capsys=capsys
    )
    assert code == 0
    assert report["disagreements"] == 0
    split, fixed = report["placements"]
    assert (split["label"], fixed["label"]) == ("split", "fixed")
    assert fixed["zones"] and len(fixed["zones"]) == 1 < len(split["zones"])
    assert 1 - split["idleShare"]["median"] == pytest.approx(0.38, abs=0.06)
    assert 1 - fixed["idleShare"]["median"] == pytest.approx(0.83, abs=0.10)
    assert report["throughputLoss"] == pytest.approx(0.54, abs=0.08)
    assert fixed["crossZoneBytesPerStep"]["median"] == 0
    assert "split: 5 pods in zone-a, zone-b, zone-c" in err


def test_the_deny_form_names_pair_rule_line_and_counter(capsys: pytest.CaptureFixture[str]) -> None:
    code, report, _ = rehearse(str(EXAMPLES / "incident"), "--split", "--repeat", "1", capsys=capsys)
    assert code == 1  # the job stalled
    (split,) = report["placements"]
    assert split["stalled"]
    blocked = [e for e in split["edges"] if e["measured"] == "silent"]
    assert {e["judged"] for e in blocked} == {"denied"}
    assert any(e["from"] == "llm-worker-0" and e["to"] == "llm-master-0" and e["port"] == 23456 for e in blocked)
    drop = next(d for d in split["drops"] if d["to"] == "llm-master-0")
    assert drop["packets"] > 0
    assert "CiliumNetworkPolicy train/zone-boundary" in drop["reason"]
    assert "policy.yaml:" in drop["reason"]


def test_the_idle_gate_fails_the_split_and_passes_the_fix(capsys: pytest.CaptureFixture[str]) -> None:
    words = (str(EXAMPLES / "incident-detour"), "--nodes", NODES, "--repeat", "1", "--steps", "4", "--max-idle", "40")
    assert rehearse(*words, "--split", capsys=capsys)[0] == 1
    assert rehearse(*words, "--fixed", "--require-reachable", capsys=capsys)[0] == 0


def test_a_placement_of_the_users_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "placement.yaml"
    file.write_text("llm-master-0: gpu-a-0\n" + "".join(f"llm-worker-{i}: gpu-a-{i}\n" for i in range(4)))
    words = (str(EXAMPLES / "incident-detour"), "--nodes", NODES, "--split", "--repeat", "1", "--steps", "4")
    code, report, _ = rehearse(*words, "--placement", str(file), capsys=capsys)
    assert code == 0
    assert report["placements"][0]["label"] == "as is"
    assert report["placements"][0]["zones"] == ["zone-a"]
