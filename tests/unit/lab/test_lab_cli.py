"""What the user gets for a wrong turn, before anything is built."""

from __future__ import annotations

from pathlib import Path

import pytest

from stallscope.cli.main import run
from stallscope.cli.rehearse import exit_code
from stallscope.collective.rehearsal import EdgeResult, PlacementResult, PodPlacement, Rehearsal, Repetition, Scale
from stallscope.model.traffic import Outcome

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
NODES = str(EXAMPLES / "incident/nodes.yaml")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ((), 2, "nothing to read"),
        (("examples/nowhere",), 2, "nowhere"),
        (("INCIDENT", "--fault", "meteor"), 2, "unknown fault 'meteor'"),
        (("INCIDENT", "--fault", "straggler:speed=3"), 2, "'speed=3' is no argument of it"),
        (("INCIDENT", "--fault", "stragler"), 2, "did you mean 'straggler'"),
        (("INCIDENT", "--job", "other"), 3, "no job named 'other'"),
        (("INCIDENT", "--exec"), 2, "--exec: no command"),
        (("INCIDENT", "--steps", "1"), 2, "steps"),
        (("INCIDENT", "--placement", "/nowhere.yaml"), 2, "cannot read the placement"),
        (("INCIDENT", "--gradient-bytes", "lots"), 2, "is no size"),
        (("INCIDENT", "--ranks", "3", "--split"), 2, "limited to 3"),
        (("JOB",), 2, "without nodes there is no placement"),
    ],
)
def test_one_line_and_the_right_exit_code(
    words: tuple[str, ...], code: int, said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = {"INCIDENT": str(EXAMPLES / "incident"), "JOB": str(EXAMPLES / "incident-detour/job.yaml")}
    monkeypatch.setattr("sys.argv", ["stallscope"])
    assert run(["rehearse", *(names.get(w, w) for w in words)]) == code
    out, err = capsys.readouterr()
    assert said in err
    assert "Traceback" not in err
    assert out == ""


@pytest.mark.parametrize("text", ["[1, 2]", "llm-worker-9: gpu-a-0", "a: [", "llm-worker-0: 7"])
def test_odd_placement_files(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(text)
    assert run(["rehearse", str(EXAMPLES / "incident"), "--placement", str(file)]) == 2
    assert "p.yaml" in capsys.readouterr().err


def test_the_fault_list_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["rehearse", "--fault", "list"]) == 0
    assert "mtu-blackhole" in capsys.readouterr().out


def test_clean_with_nothing_to_clean(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert run(["rehearse", "clean"]) == 0
    assert "nothing to clean" in capsys.readouterr().out


def report(measured: str = "open", agrees: bool | None = True, busy: float = 0.8, ended: str = "") -> Rehearsal:
    edge = EdgeResult(
        source="a", destination="b", port=1, zones=("x", "y"), judged=Outcome.ALLOWED, measured=measured, agrees=agrees
    )
    run_ = Repetition(ended=ended, steps=() if ended else (0.1, 0.1), busy=busy)
    result = PlacementResult(
        label="split",
        placement=(PodPlacement(pod="a", node="n", zone="x", rank=0),),
        edges=(edge,),
        repetitions=(run_,),
    )
    return Rehearsal(job="J", transport="t", profile="p", scale=Scale(rate=1, time=1, machine_rate=1), results=(result,))


def test_exit_codes() -> None:
    free = {"max_idle": None, "require_reachable": False}
    assert exit_code(report(), **free) == 0
    assert exit_code(report(ended="stalled"), **free) == 1
    assert exit_code(report(measured="silent", agrees=True), max_idle=None, require_reachable=True) == 1
    assert exit_code(report(measured="silent", agrees=False), **free) == 2  # our own error is never a pass or a finding
    assert exit_code(report(busy=0.8), max_idle=20.5, require_reachable=True) == 0
    assert exit_code(report(busy=0.8), max_idle=19.5, require_reachable=False) == 1
