"""Scenes side by side as one self-contained page: no script needed, no request made."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from stallscope.render.zonemap.scene import EdgeKind, Scene
from stallscope.render.zonemap.svg import svg

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title><style>
:root{{color-scheme:light dark;--ink:#1c2430;--paper:#fff;--line:#c4ccd6}}
@media (prefers-color-scheme:dark){{:root{{--ink:#e8edf3;--paper:#12171d;--line:#44505e}}}}
body{{font:15px/1.5 system-ui,sans-serif;margin:2rem;color:var(--ink);background:var(--paper)}}
.maps{{display:flex;flex-wrap:wrap;gap:2rem;align-items:flex-start}}
figure{{margin:0;flex:0 1 auto;min-width:min(100%,26rem);max-width:calc(50% - 1rem)}}
@media (max-width:60rem){{figure{{max-width:100%}}}}
svg{{max-width:100%;height:auto}}table{{border-collapse:collapse;margin:.5rem 0 2rem}}
td,th{{border:1px solid var(--line);padding:.25rem .6rem;text-align:left}}
.key span{{margin-right:1.5rem;border-bottom:3px solid;padding-bottom:2px}}
.key .denied{{border-color:#d0303f;border-bottom-style:dotted}}.key .cross{{border-color:#c56a00;border-bottom-style:dashed}}
.key .local{{border-color:#2d9d56;border-bottom-width:2px}}.key .unjudged{{border-color:#7c69c4;border-bottom-style:dotted}}
ul{{padding-left:1.2rem}}
</style></head><body><main><h1>{title}</h1>
<p class="key"><span class="denied">denied</span><span class="cross">crosses zones</span>
<span class="local">in zone</span><span class="unjudged">unjudged</span></p>
{sections}</main></body></html>
"""


def page(title: str, groups: Sequence[tuple[str, Sequence[Scene], Sequence[str]]]) -> str:
    """
    The page. Each group is a heading (a job), its scenes (split, fixed) and lines printed below them. The table repeats
    in words what the pictures show.
    """
    sections = []
    for number, (heading, scenes, lines) in enumerate(groups):
        figures = "".join(f"<figure>{svg(s, ident=f'm{number}-{i}')}</figure>" for i, s in enumerate(scenes))
        notes = "".join(f"<li>{escape(line)}</li>" for line in lines)
        sections.append(
            f"<section><h2>{escape(heading)}</h2><div class='maps'>{figures}</div>"
            f"{f'<ul>{notes}</ul>' if notes else ''}{_table(scenes)}</section>"
        )
    return _PAGE.format(title=escape(title), sections="".join(sections))


def _table(scenes: Sequence[Scene]) -> str:
    heads = "".join(f"<th scope='col'>{kind}</th>" for kind in EdgeKind)
    rows = "".join(
        f"<tr><th scope='row'>{escape(s.title)}</th>" + "".join(f"<td>{s.count(kind)}</td>" for kind in EdgeKind) + "</tr>"
        for s in scenes
    )
    head = f"<caption>Edges</caption><thead><tr><th scope='col'>placement</th>{heads}</tr></thead>"
    return f"<table>{head}<tbody>{rows}</tbody></table>"
