"""The rehearsal as a self-contained page, with the zone map coloured by what real connects met."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from html import escape

from stallscope.collective.rehearsal import EdgeResult, PlacementResult, Rehearsal
from stallscope.render.rehearsal import headline, rows, scale_lines, spelled_out, verdict


def html(report: Rehearsal) -> str:
    """A self-contained page: the table, and per placement the zones with every measured edge coloured."""
    heads = "".join(f"<th scope='col'>{escape(r.label)}</th>" for r in report.results)
    body = "".join(
        f"<tr><th scope='row'>{escape(name)}</th>" + "".join(f"<td>{escape(c)}</td>" for c in cells) + "</tr>"
        for name, cells in spelled_out(rows(report))
    )
    maps = "".join(f"<h2>{escape(r.label)}</h2>{zone_map(r)}{_edge_table(r.edges)}" for r in report.results)
    notes = "".join(f"<li>{escape(s)}</li>" for s in (*scale_lines(report), *report.said, *report.inputs))
    said = "".join(f"<p><strong>{escape(v)}</strong></p>" for v in verdict(report))
    inner = (
        f"<h1>{escape(headline(report))}</h1>{said}<table><thead><tr><th></th>{heads}</tr></thead><tbody>{body}</tbody></table>"
        f"{_LEGEND}{maps}<h2>How it was measured</h2><ul>{notes}</ul>"
    )
    return _PAGE.replace("@BODY@", inner)


def zone_map(result: PlacementResult) -> str:
    """Zones as columns, pods as boxes, the ring and every blocked pair as lines: green open, red blocked."""
    width, row, column = 170, 46, 220
    spots: dict[str, tuple[int, int]] = {}
    parts: list[str] = []
    boxes: list[str] = []
    for x, zone in enumerate(result.zones):
        members = [p for p in result.placement if p.zone == zone]
        left = 20 + x * column
        height = 40 + row * len(members)
        parts.append(f"<rect class='zone' x='{left - 10}' y='8' width='{width + 20}' height='{height}' rx='8'/>")
        parts.append(f"<text class='zonename' x='{left}' y='28'>{escape(zone)}</text>")
        for y, pod in enumerate(members):
            spots[pod.pod] = left, 40 + y * row
    lines = [_line(spots, a, b, blocked) for a, b, blocked in _ring_and_blocked(result)]
    for pod in result.placement:
        x, y = spots[pod.pod]
        rank = f"rank {pod.rank}" if pod.rank is not None else "no rank"
        boxes.append(f"<rect class='pod' x='{x}' y='{y}' width='{width}' height='34' rx='5'/>")
        boxes.append(f"<text x='{x + 8}' y='{y + 14}'>{escape(pod.pod)}</text>")
        boxes.append(f"<text class='dim' x='{x + 8}' y='{y + 28}'>{escape(rank)} on {escape(pod.node)}</text>")
    tall = max((y for _, y in spots.values()), default=0) + 60
    wide = 20 + column * len(result.zones)
    blocked = f"{len(result.denied)} of {len(result.edges)} connects blocked"
    title = f"{len(result.placement)} pods in {len(result.zones)} zones, {blocked}"
    return (
        f"<svg role='img' viewBox='0 0 {wide} {tall}' width='{wide}' height='{tall}'><title>{escape(title)}</title>"
        f"{''.join((*parts, *lines, *boxes))}</svg>"
    )


def _ring_and_blocked(result: PlacementResult) -> Iterator[tuple[str, str, bool]]:
    blocked = dict.fromkeys((e.source, e.destination) for e in result.denied)
    ring = [p.pod for p in sorted((p for p in result.placement if p.rank is not None), key=lambda p: p.rank or 0)]
    for a, b in zip(ring, [*ring[1:], *ring[:1]], strict=True):
        if (a, b) not in blocked and a != b:
            yield a, b, False
    yield from ((a, b, True) for a, b in blocked if (b, a) not in blocked or a < b)  # one line for both ways


def _line(spots: Mapping[str, tuple[int, int]], a: str, b: str, blocked: bool) -> str:
    (x1, y1), (x2, y2) = spots[a], spots[b]
    kind, word = ("blocked", "blocked") if blocked else ("open", "open")
    start, end = (x1 + 170, x2) if x1 < x2 else (x1, x2 + 170) if x1 > x2 else (x1 + 170, x2 + 170)
    bend = 30 if x1 == x2 else 0
    middle = (start + end) // 2 + bend
    path = f"M{start} {y1 + 17} Q{middle} {(y1 + y2) // 2 + 17} {end} {y2 + 17}"
    return f"<path class='{kind}' d='{path}'><title>{escape(a)} to {escape(b)}: {word}</title></path>"


def _edge_table(edges: Iterable[EdgeResult]) -> str:
    body = "".join(
        f"<tr class='{'open' if e.measured == 'open' else 'blocked'}'><td>{escape(e.source)}</td>"
        f"<td>{escape(e.destination)}</td><td>{e.port}</td><td>{escape(str(e.judged))}</td><td>{escape(e.measured)}</td><td>{escape(e.reason)}</td></tr>"
        for e in edges
    )
    heads = "".join(f"<th scope='col'>{h}</th>" for h in ("from", "to", "TCP port", "judged", "measured", "decided by"))
    table = f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"
    return f"<details><summary>every connect</summary>{table}</details>"


_LEGEND = "<p class='legend'><span class='open'>ring edge, open</span> <span class='blocked'>blocked</span></p>"
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Stallscope rehearsal</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<style>:root{color-scheme:light dark}body{font:15px/1.5 system-ui,sans-serif;margin:2rem;max-width:70rem}
table{border-collapse:collapse;margin:.5rem 0}td,th{border:1px solid #8886;padding:.2rem .6rem;text-align:left}
tr.blocked td{background:#c0182b22}svg{max-width:100%;height:auto}svg text{font:12px system-ui,sans-serif;fill:CanvasText}
.zone{fill:none;stroke:#8888;stroke-dasharray:4 3}.zonename{font-weight:600!important}.pod{fill:Canvas;stroke:#888}
.dim{opacity:.7}.legend span{border-bottom:2px solid;margin-right:1.5rem}.legend .open{border-color:#1a7f37}
.legend .blocked{border-color:#c0182b;border-bottom-style:dashed}
path{fill:none;stroke-width:2}.open{stroke:#1a7f37}.blocked{stroke:#c0182b;stroke-dasharray:5 4}
</style></head><body><main>@BODY@</main></body></html>
"""
