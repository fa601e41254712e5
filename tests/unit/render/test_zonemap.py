"""The zone map: what it shows is counted by hand; that it can be read is asked of a real parser and a real browser."""

from __future__ import annotations

import shutil
import subprocess
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path

import pytest

from stallscope.analysis import analyse
from stallscope.cli.main import run
from stallscope.load.inputs import LoadRequest, load_inputs
from stallscope.render.zonemap.page import page
from stallscope.render.zonemap.scene import Box, Cell, Column, Edge, EdgeKind, Scene, scene
from stallscope.render.zonemap.svg import EDGE_LIMIT, svg
from stallscope.render.zonemap.text import text

INCIDENT = Path(__file__).parents[3] / "examples" / "incident"
SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = '"><script>alert(1)</script>&'


@pytest.fixture(scope="module")
def incident():
    judgement = analyse(load_inputs(LoadRequest(paths=(str(INCIDENT),)))).judgement
    found = scene(judgement.jobs[0], judgement.topology, title="as written")
    assert found is not None
    return found


def test_every_pod_stands_in_its_zone(incident):
    zones = {c.zone: {cell.pod for b in c.boxes for cell in b.cells} for c in incident.columns}
    assert zones["zone-c"] == {"llm-master-0"}
    assert zones["zone-a"] | zones["zone-b"] == {f"llm-worker-{i}" for i in range(4)}
    # ten nodes: five hold a pod each, five do not
    assert sum(c.idle_nodes for c in incident.columns) == 5


def test_the_ring_has_one_edge_a_pod_and_all_of_them_cross(incident):
    assert incident.count(EdgeKind.CROSS_ZONE) + incident.count(EdgeKind.LOCAL) == 5
    assert incident.count(EdgeKind.CROSS_ZONE) == 5
    assert incident.count(EdgeKind.DENIED) >= 1
    assert incident.caption.startswith("5 of 5 ring edges cross zones")


def test_svg_is_xml_without_script_and_says_everything_in_words(incident):
    root = ET.fromstring(svg(incident))  # noqa: S314  our own output
    assert root.find(f"{SVG}title").text == "as written"
    described = root.find(f"{SVG}desc").text
    assert "zone-c: llm-master-0" in described
    assert not list(root.iter(f"{SVG}script"))
    titles = [t.text for path in root.iter(f"{SVG}path") for t in path.iter(f"{SVG}title")]
    assert any(t.startswith("denied: ") for t in titles)
    cells = [g for g in root.iter(f"{SVG}g") if "cell" in g.get("class", "")]
    assert len(cells) == 5
    assert all(g.get("tabindex") == "0" for g in cells)  # reachable by keyboard


def test_drawing_is_deterministic(incident):
    assert svg(incident) == svg(incident)


def hostile() -> Scene:
    cell = Cell(pod=HOSTILE, label="0", title=HOSTILE)
    edge = Edge(source=HOSTILE, destination=HOSTILE, kind=EdgeKind.DENIED, title=HOSTILE)
    column = Column(zone=HOSTILE, boxes=(Box(node=HOSTILE, cells=(cell,)),))
    return Scene(title=HOSTILE, caption=HOSTILE, columns=(column,), edges=(edge,))


class _Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.seen = set()

    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)


def test_names_cannot_become_markup():
    tags = _Tags()
    tags.feed(page(HOSTILE, [(HOSTILE, [hostile()], [HOSTILE])]))
    assert "script" not in tags.seen
    ET.fromstring(svg(hostile()))  # noqa: S314


def test_a_thousand_ranks_stay_a_picture():
    cells = tuple(Cell(pod=f"p{i}", label=str(i), title=f"p{i}") for i in range(1024))
    edges = tuple(
        Edge(source=f"p{i}", destination=f"p{(i + 1) % 1024}", kind=EdgeKind.LOCAL, title="ring") for i in range(1024)
    )
    big = Scene(title="t", caption="c", columns=(Column(zone="z", boxes=(Box(node="n", cells=cells),)),), edges=edges)
    root = ET.fromstring(svg(big))  # noqa: S314
    assert len(list(root.iter(f"{SVG}path"))) == EDGE_LIMIT


def test_text_lists_what_crosses(incident):
    shown = text(incident)
    assert "[0]  llm-master-0" in shown
    assert shown.count("~ ring:") == 5


def test_the_verb_draws_split_and_fixed(tmp_path, capsys):
    target = tmp_path / "map.html"
    assert run(["map", str(INCIDENT), "-o", f"html={target}", "--egress-price", "0.02"]) == 0
    shown = target.read_text()
    assert shown.count("<svg") == 2
    assert "0 of 5 ring edges cross zones" in shown
    assert "an hour" in shown
    capsys.readouterr()


def test_a_map_without_nodes_says_what_is_missing(capsys):
    assert run(["map", str(INCIDENT / "job.yaml")]) == 2
    assert "a map needs nodes" in capsys.readouterr().err


@pytest.mark.skipif(not shutil.which("chromium"), reason="chromium is not installed")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_real_browser_shows_it(tmp_path, scheme, incident):
    """Rendered headless; both colour schemes give a picture with more than one colour (not a blank page)."""
    source = tmp_path / "map.html"
    source.write_text(page("map", [("job", [incident], [])]))
    shot = tmp_path / "map.png"
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
    flags += ["--disable-quic", "--disable-component-update", "--disable-sync", "--window-size=900,700"]
    flags += ["--blink-settings=preferredColorScheme=0"] if scheme == "dark" else []
    command = ["chromium", *flags, f"--user-data-dir={tmp_path / 'profile'}", f"--screenshot={shot}", source.as_uri()]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    assert shot.stat().st_size > 20_000  # a blank page of this size compresses to a few kilobytes


def test_the_svg_shows_as_written_and_fixed(tmp_path: Path):
    assert run(["map", str(INCIDENT), "-o", f"svg={tmp_path}/map.svg"]) == 0
    root = ET.parse(tmp_path / "map.svg").getroot()  # noqa: S314  our own
    parts = root.findall(f"{SVG}svg")
    assert [p.findtext(f"{SVG}title") for p in parts] == [
        "as written: the worst reachable placement",
        "after stallscope fix",
    ]
    assert float(parts[1].get("x", "0")) == float(parts[0].get("width", "0"))
    assert float(root.get("width", "0")) == sum(float(p.get("width", "0")) for p in parts)
    ids = [e.get("id") for e in root.iter() if e.get("id")]
    assert len(ids) == len(set(ids))
