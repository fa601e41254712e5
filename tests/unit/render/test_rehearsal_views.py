"""The rehearsal report in every format, from figures worked out by hand."""

from __future__ import annotations

import json

import pytest

from stallscope.collective.rehearsal import (
    DropResult,
    EdgeResult,
    Modelled,
    PlacementResult,
    PodPlacement,
    Rehearsal,
    Repetition,
    Scale,
    Spread,
    percentile,
)
from stallscope.model.traffic import Outcome
from stallscope.render.rehearsal import blocked_pairs, views

PODS = (
    PodPlacement(pod="m", node="n0", zone="a", rank=0),
    PodPlacement(pod="<w>", node="n1", zone="b", rank=1),
)


def edge(source: str, destination: str, port: int, measured: str = "silent") -> EdgeResult:
    return EdgeResult(
        source=source,
        destination=destination,
        port=port,
        zones=("a", "b"),
        judged=Outcome.DENIED if measured == "silent" else Outcome.ALLOWED,
        measured=measured,
        agrees=True,
        reason="ingress default deny (p.yaml:3:1)\x1b[2J" if measured == "silent" else "",
    )


def repetition(step: float, busy: float) -> Repetition:
    return Repetition(steps=(step,) * 4, busy=busy, bus_bandwidth=1e6, cross_zone_bytes=2e6)


SPLIT = PlacementResult(
    label="split",
    placement=PODS,
    edges=(edge("m", "<w>", 1), edge("m", "<w>", 2), edge("<w>", "m", 1, "open")),
    drops=(DropResult(source="m", destination="<w>", reason="r", packets=3),),
    repetitions=tuple(repetition(s, 0.4) for s in (0.6, 0.61, 0.59)),
    modelled=Modelled(step_seconds=0.58, idle_share=0.6, cross_zone_bytes=2e6, cross_zone_edges=2),
)
FIXED = PlacementResult(label="fixed", placement=PODS, repetitions=tuple(repetition(0.3, 0.85) for _ in range(3)))
REPORT = Rehearsal(
    job="PyTorchJob t/j",
    transport="built-in ring",
    profile="default",
    scale=Scale(rate=100, time=50, machine_rate=1e8),
    results=(SPLIT, FIXED),
    inputs=("gradients 14 GB",),
    said=("no netem",),
)


def test_the_text_says_what_was_measured_and_what_modelled() -> None:
    text = views(REPORT)["text"]()
    assert "built-in ring" in text.splitlines()[0]
    assert "600 ms (+-1.7%)" in text  # half of 20 ms over 600
    assert "modelled" in text and "580 ms" in text
    assert "30.0 s" in text  # 0.6 s at 1:50
    assert "10.0 GB" in text  # 2 MB x 100 x 50
    assert "split loses 50% of the throughput of fixed; accelerators busy 40% -> 85%" in text
    assert "\x1b" not in text


def test_ports_of_a_blocked_pair_stand_together() -> None:
    assert len(blocked_pairs(SPLIT)) == 1
    assert "TCP 1, 2 got no answer" in blocked_pairs(SPLIT)[0]


def test_json_is_complete() -> None:
    data = json.loads(views(REPORT)["json"]())
    assert data["schemaVersion"] == "1"
    assert data["throughputLoss"] == pytest.approx(0.5)
    assert data["placements"][0]["stepSeconds"]["values"] == [0.6, 0.61, 0.59]
    assert [e["measured"] for e in data["placements"][0]["edges"]] == ["silent", "silent", "open"]
    assert data["placements"][1]["modelled"] is None


def test_html_escapes_and_colours_by_measurement() -> None:
    page = views(REPORT)["html"]()
    assert "<w>" not in page
    assert "&lt;w&gt;" in page
    assert page.count("class='blocked' d=") == 1  # the blocked pair once, although two ports
    assert "class='open' d=" in page  # the ring edge back
    assert "<script" not in page


def test_markdown_is_a_table() -> None:
    text = views(REPORT)["md"]()
    assert "| | split | fixed |" in text
    assert "- blocked, split: m (a)" in text


def test_statistics() -> None:
    assert Spread(values=(1.0, 2.0, 4.0)).median == 2.0
    assert Spread(values=(1.0, 2.0, 4.0)).noise == pytest.approx(0.75)
    assert Spread(values=()).median == 0.0
    assert percentile(list(range(1, 21)), 0.95) == 19  # nearest rank: ceil(0.95 x 20)
    assert percentile([5.0], 0.95) == 5.0
    assert percentile([], 0.95) == 0.0


def test_a_stalled_split_loses_everything() -> None:
    stalled = PlacementResult(label="split", placement=PODS, repetitions=(Repetition(ended="never started: 0 of 2"),))
    report = Rehearsal(job="J", transport="t", profile="p", scale=REPORT.scale, results=(stalled, FIXED))
    assert report.throughput_loss == 1.0
    assert "split does not run; fixed trains, accelerators busy 85% of each step" in views(report)["text"]()
