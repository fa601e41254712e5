"""
A scene as SVG, laid out here: deterministic, self-contained, readable in dark and light, no script.

Kinds differ by dash and weight as well as by colour; every cell and edge has a title for pointers and screen readers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from stallscope.render.zonemap.scene import Box, Cell, Column, Edge, EdgeKind, Scene

CELL = 30
GAP = 6
BOX_PAD = 10
BOX_HEAD = 22
BOX_GAP = 16
COLUMN_PAD = 18
COLUMN_GAP = 48
COLUMN_HEAD = 40
MARGIN = 20
TITLE_HEIGHT = 30
CAPTION_HEIGHT = 28
PER_ROW = 4
#: Beyond this many edges the drawing would be a hairball; local ones are left out first.
EDGE_LIMIT = 160

STYLE = """
.map{--ink:#1c2430;--soft:#5b6675;--line:#c4ccd6;--paper:#fff;--zone:#f4f6f9;--cell:#dfe7f1;--coord:#ffe2b0;
--denied:#c0182b;--cross:#b85c00;--local:#2d7d46;--unjudged:#6b5aa8;font:13px system-ui,sans-serif}
@media (prefers-color-scheme:dark){.map{--ink:#e8edf3;--soft:#a3b0bf;--line:#44505e;--paper:#12171d;--zone:#1b222b;
--cell:#2c3a4b;--coord:#6b4d12;--denied:#ff6b78;--cross:#ffa94d;--local:#69db7c;--unjudged:#b7a6f5}}
.map .paper{fill:var(--paper)}.map text{fill:var(--ink)}.map .soft{fill:var(--soft)}
.map .zone{fill:var(--zone);stroke:var(--line)}.map .node{fill:var(--paper);stroke:var(--line)}
.map .cell rect{fill:var(--cell);stroke:var(--line)}.map .cell.coordinator rect{fill:var(--coord)}
.map .cell text{text-anchor:middle;font-weight:600}.map .edge{fill:none;stroke-width:2}
.map .edge.denied{stroke:var(--denied);stroke-width:3;stroke-dasharray:3 4}
.map .edge.cross-zone{stroke:var(--cross);stroke-width:2.5;stroke-dasharray:9 4}
.map .edge.local{stroke:var(--local);stroke-width:1.5}
.map .edge.unjudged{stroke:var(--unjudged);stroke-dasharray:1 5;stroke-width:3;stroke-linecap:round}
.map .heading{font-weight:700;font-size:15px}
"""


@dataclass(frozen=True, slots=True)
class _Placed:
    """What is drawn under the edges, what over them, and where each pod's cell is (centre)."""

    back: list[str]
    front: list[str]
    centres: dict[str, tuple[float, float]]


def side_by_side(scenes: Sequence[Scene]) -> str:
    """All scenes from left to right in one ``<svg>`` element: as written, and fixed."""
    drawn = [_drawn(scene, f"map{i}") for i, scene in enumerate(scenes)]
    if len(drawn) == 1:
        return drawn[0][0]
    width, height = sum(w for _, w, _ in drawn), max(h for _, _, h in drawn)
    parts, x = [], 0.0
    for text, wide, _ in drawn:
        parts.append(text.replace("<svg ", f'<svg x="{x:.0f}" ', 1))
        x += wide
    label = escape("; ".join(scene.title for scene in scenes))
    return (
        f'<svg class="map" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}"><title>{label}</title>'
        f'<style>{STYLE}</style><rect class="paper" width="100%" height="100%"/>{"".join(parts)}</svg>'
    )


def svg(scene: Scene, *, ident: str = "map") -> str:
    """The scene as one ``<svg>`` element. `ident` makes element ids unique when several stand on one page."""
    return _drawn(scene, ident)[0]


def _drawn(scene: Scene, ident: str) -> tuple[str, float, float]:
    """The element, its width and its height."""
    placed = _Placed([], [], {})
    x, height = float(MARGIN), 0.0
    for column in scene.columns:
        width, bottom = _column(column, x, TITLE_HEIGHT + MARGIN, placed)
        x += width + COLUMN_GAP
        height = max(height, bottom)
    width = max(x - COLUMN_GAP + MARGIN, 420)
    total = height + CAPTION_HEIGHT + MARGIN
    edges = [_edge(e, placed.centres) for e in _shown(scene.edges)]
    head = (
        f'<svg class="map" xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {width:.0f} {total:.0f}" '
        f'width="{width:.0f}" height="{total:.0f}" aria-labelledby="{ident}-t {ident}-d">'
        f'<title id="{ident}-t">{escape(scene.title)}</title><desc id="{ident}-d">{escape(describe(scene))}</desc>'
        f"<style>{STYLE}</style>"
        f'<rect class="paper" width="100%" height="100%"/>'
        f'<text class="heading" x="{MARGIN}" y="{MARGIN + 10}">{escape(scene.title)}</text>'
    )
    caption = f'<text class="soft" x="{MARGIN}" y="{total - MARGIN:.0f}">{escape(scene.caption)}</text>'
    return head + "".join((*placed.back, *edges, *placed.front)) + caption + "</svg>", width, total


def describe(scene: Scene) -> str:
    """The picture in words: zones with their pods, then the edges that matter."""
    zones = [
        f"{c.zone}: " + (", ".join(cell.pod for box in c.boxes for cell in box.cells) or "no pod of the job")
        for c in scene.columns
    ]
    notable = [e.title for e in scene.edges if e.kind is not EdgeKind.LOCAL][:12]
    return ". ".join([*zones, *notable, scene.caption]) + "."


def _shown(edges: tuple[Edge, ...]) -> list[Edge]:
    order = list(EdgeKind)
    ranked = sorted(edges, key=lambda e: order.index(e.kind))[:EDGE_LIMIT]
    return ranked[::-1]  # the worst drawn last, on top


def _column(column: Column, x: float, y: float, placed: _Placed) -> tuple[float, float]:
    widest = max((min(len(b.cells), PER_ROW) for b in column.boxes), default=2)
    box_width = max(widest * (CELL + GAP) - GAP + 2 * BOX_PAD, 144)
    width = box_width + 2 * COLUMN_PAD
    top = y + COLUMN_HEAD
    boxes: list[str] = []
    placed.front.append(f'<text x="{x + COLUMN_PAD:.0f}" y="{y + 25:.0f}" class="heading">{escape(column.zone)}</text>')
    for box in column.boxes:
        frame, top = _box(box, x + COLUMN_PAD, top, box_width, placed)
        boxes.append(frame)
        top += BOX_GAP
    if column.idle_nodes:
        text = f"{column.idle_nodes} more node{'s' if column.idle_nodes > 1 else ''}, unused"
        placed.front.append(f'<text class="soft" x="{x + COLUMN_PAD:.0f}" y="{top + 12:.0f}">{text}</text>')
        top += 26
    zone = f'<rect class="zone" x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" height="{top - y:.0f}" rx="10"/>'
    placed.back.extend((zone, *boxes))
    return width, top


def _box(box: Box, x: float, y: float, width: float, placed: _Placed) -> tuple[str, float]:
    """The node's frame (to go under the edges) and its lower end; name and cells go over them."""
    rows = (len(box.cells) + PER_ROW - 1) // PER_ROW
    height = BOX_HEAD + rows * (CELL + GAP) - GAP + BOX_PAD
    name = escape(box.node if len(box.node) < 24 else box.node[:22] + "…")
    placed.front.append(f'<text class="soft" x="{x + BOX_PAD:.0f}" y="{y + 15:.0f}">{name}</text>')
    for index, cell in enumerate(box.cells):
        cx = x + BOX_PAD + (index % PER_ROW) * (CELL + GAP)
        cy = y + BOX_HEAD + (index // PER_ROW) * (CELL + GAP)
        placed.centres[cell.pod] = (cx + CELL / 2, cy + CELL / 2)
        placed.front.append(_cell(cell, cx, cy))
    frame = f'<rect class="node" x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" height="{height:.0f}" rx="6"/>'
    return frame, y + height


def _cell(cell: Cell, x: float, y: float) -> str:
    kind = "cell coordinator" if cell.coordinator else "cell"
    return (
        f'<g class="{kind}" tabindex="0"><title>{escape(cell.title)}</title>'
        f'<rect x="{x:.0f}" y="{y:.0f}" width="{CELL}" height="{CELL}" rx="4"/>'
        f'<text x="{x + CELL / 2:.0f}" y="{y + CELL / 2 + 5:.0f}">{escape(cell.label)}</text></g>'
    )


def _edge(edge: Edge, centres: dict[str, tuple[float, float]]) -> str:
    if edge.source not in centres or edge.destination not in centres:
        return ""
    (x1, y1), (x2, y2) = centres[edge.source], centres[edge.destination]
    bend = 14 + abs(x2 - x1) * 0.06 if x1 != x2 else 46
    # Verdict edges bend the other way, so that they do not hide the ring edge between the same pods.
    side = -1 if edge.kind in (EdgeKind.DENIED, EdgeKind.UNJUDGED) else 1
    mx, my = (x1 + x2) / 2 + (side * bend if x1 == x2 else 0), (y1 + y2) / 2 - side * bend
    kind = "local" if edge.kind is EdgeKind.LOCAL else edge.kind.value
    path = f"M{x1:.1f} {y1:.1f}Q{mx:.1f} {my:.1f} {x2:.1f} {y2:.1f}"
    return f'<path class="edge {kind}" d="{path}"><title>{escape(edge.title)}</title></path>'
