"""The matrix names what decides: hand-checked against the incident's policy, whose egress[1] lets DNS out of the workers."""

from __future__ import annotations

from pathlib import Path

from stallscope.cli.main import run

INCIDENT = Path(__file__).parents[3] / "examples" / "incident"


def test_an_allowed_flow_names_the_side_that_has_a_rule(capsys) -> None:
    assert run(["reach", str(INCIDENT)]) == 1
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if line.startswith("  dns")]
    worker = [" ".join(r) for r in rows if r[1] == "Worker"]
    assert worker
    assert all("CiliumNetworkPolicy train/zone-boundary egress[1] at" in row for row in worker)
    master = [" ".join(r) for r in rows if r[1] == "Master"]  # net-zone=cpu: the policy does not select it
    assert master
    assert all("no policy selects either end" in row for row in master)
