"""A scene as text, for terminals and pull requests."""

from __future__ import annotations

from stallscope.render.zonemap.scene import Edge, EdgeKind, Scene

#: Edges listed in full; the rest is counted.
LISTED = 12


def text(scene: Scene) -> str:
    """Zones, nodes and pods as an indented list, then the edges that cross or fail. Ends with a newline."""
    lines = [scene.title]
    for column in scene.columns:
        idle = f"  ({column.idle_nodes} more unused)" if column.idle_nodes else ""
        lines.append(f"  {column.zone}{idle}")
        for box in column.boxes:
            cells = " ".join(f"[{c.label}]" for c in box.cells)
            lines.append(f"    {box.node:<24} {cells}  {', '.join(c.pod for c in box.cells[:4])}{_more(len(box.cells) - 4)}")
    notable = [e for e in scene.edges if e.kind is not EdgeKind.LOCAL]
    lines += [f"  {_mark(e)} {e.title}" for e in notable[:LISTED]]
    if len(notable) > LISTED:
        lines.append(f"  … and {len(notable) - LISTED} more")
    lines.append(f"  {scene.caption}")
    return "\n".join(lines) + "\n"


def _more(count: int) -> str:
    return f", … {count} more" if count > 0 else ""


def _mark(edge: Edge) -> str:
    return {EdgeKind.DENIED: "x", EdgeKind.UNJUDGED: "?", EdgeKind.CROSS_ZONE: "~"}.get(edge.kind, "-")
