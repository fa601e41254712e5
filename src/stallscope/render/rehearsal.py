"""
The rehearsal report: text, json and md from `stallscope.collective.rehearsal` (html: `stallscope.render.rehearsal_html`).
Figures are printed as measured in the lab, modelled ones are marked, and the job's own scale stands beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from stallscope.collective.rehearsal import EdgeResult, PlacementResult, Rehearsal, Repetition, Spread
from stallscope.render.escape import visible
from stallscope.render.style import Style, wrap

SHOWN = 6
LOG_LINES = 3
Row = tuple[str, tuple[str, ...]]


def views(report: Rehearsal, *, color: bool = False, width: int = 100) -> Mapping[str, Callable[[], str]]:
    """Format name -> a function that renders it."""
    import json

    from stallscope.render.rehearsal_html import html

    return {
        "text": lambda: text(report, color=color, width=width),
        "json": lambda: json.dumps(data(report), indent=2) + "\n",
        "md": lambda: markdown(report),
        "html": lambda: html(report),
    }


def text(report: Rehearsal, *, color: bool = False, width: int = 100) -> str:
    """For a person at a terminal."""
    style = Style(color)
    lines = [style("strong", visible(headline(report))), ""]
    labels = [r.label for r in report.results]
    table = list(rows(report))
    first = max(len(name) for name, _ in table)
    widths = [max(len(label), *(len(cells[i]) for _, cells in table)) for i, label in enumerate(labels)]
    lines.append(" " * first + "  " + "  ".join(style("strong", n.ljust(w)) for n, w in zip(labels, widths, strict=True)))
    for name, cells in table:
        row = "  ".join(c.ljust(w) for c, w in zip(cells, widths, strict=True)).rstrip()
        kind = "dim" if name.startswith("  ") else ""
        lines.append(style(kind, f"{name.ljust(first)}  {row}") if kind else f"{name.ljust(first)}  {row}")
    lines.append("")
    for result in report.results:
        lines += _details(result, style, width)
    for line in verdict(report):
        lines += [style("strong", piece) for piece in wrap(line, width)]
    for line in (*scale_lines(report), *report.said, *(f"job: {i}" for i in report.inputs)):
        lines += wrap(line, width, first="  = note: ", rest="          ")
    return "\n".join(lines) + "\n"


def headline(report: Rehearsal) -> str:
    """One line: what ran, and how."""
    ranks = max((sum(p.rank is not None for p in r.placement) for r in report.results), default=0)
    faults = f", fault {', '.join(report.faults)}" if report.faults else ""
    return f"Rehearsal of {report.job}: {ranks} pods with ranks, {report.transport}{faults}, link profile {report.profile!r}"


def rows(report: Rehearsal) -> Iterator[Row]:
    """The comparison table: name and one cell per placement. Indented names are modelled or secondary."""
    results = report.results

    def row(name: str, cell: Callable[[PlacementResult], str]) -> Row:
        return name, tuple(cell(r) for r in results)

    yield row("zones", lambda r: " ".join(r.zones))
    yield row("connects", _connects)
    yield row("runs", _runs)
    if any(r.step.values for r in results):
        yield row("step time, median", lambda r: _spread(r.step, lambda v: f"{v * 1e3:.0f} ms"))
        yield row("step time, p95", lambda r: f"{r.p95 * 1e3:.0f} ms" if r.step.values else "-")
        yield row("  modelled", lambda r: f"{r.modelled.step_seconds * 1e3:.0f} ms" if r.modelled else "-")
        yield row("  at the job's scale", lambda r: f"{r.step.median * report.scale.time:.1f} s" if r.step.values else "-")
        yield row("accelerators idle", lambda r: _spread(r.idle, lambda v: f"{v:.0%}"))
        yield row("  modelled", lambda r: f"{r.modelled.idle_share:.0%}" if r.modelled else "-")
        yield row("bus bandwidth", lambda r: _spread(r.bus_bandwidth, lambda v: f"{v * 8e-6:.0f} Mbit/s"))
        yield row("across zones a step", lambda r: _spread(r.cross_zone_bytes, _bytes))
        yield row("  at the job's scale", lambda r: _job_bytes(report, r))
    elif any(r.finished for r in results):
        yield row("across zones a run", lambda r: _spread(r.cross_zone_bytes, _bytes))


def spelled_out(table: Iterable[Row]) -> Iterator[Row]:
    """The rows with indented names completed by the name they stand under, for formats without indentation."""
    over = ""
    for name, cells in table:
        over = over if name.startswith(" ") else name.partition(",")[0]
        yield (f"{over}, {name.strip()}" if name.startswith(" ") else name), cells


def _connects(result: PlacementResult) -> str:
    shut = len(result.denied)
    return f"{len(result.edges)}, {shut} blocked" if shut else f"{len(result.edges)}, all open"


def _runs(result: PlacementResult) -> str:
    if result.not_run:
        return "not run"
    done = len(result.finished)
    return f"{done} of {len(result.repetitions)} finished" if done < len(result.repetitions) else f"{done} finished"


def _spread(spread: Spread, show: Callable[[float], str]) -> str:
    if not spread.values:
        return "-"
    if len(spread.values) == 1 or not spread.median:
        return show(spread.median)
    return f"{show(spread.median)} (+-{max(spread.noise, 0.001):.1%})"


def _bytes(value: float) -> str:
    return f"{value / 1e6:.2f} MB"


def _job_bytes(report: Rehearsal, result: PlacementResult) -> str:
    if not result.cross_zone_bytes.values:
        return "-"
    return f"{result.cross_zone_bytes.median * report.scale.rate * report.scale.time / 1e9:.1f} GB"


def _details(result: PlacementResult, style: Style, width: int) -> list[str]:
    lines: list[str] = []
    for edge in result.disagreements:
        lines += wrap(
            f"{result.label}: {_edge(edge)} was judged {edge.judged} but a real connect met {edge.measured}: "
            "an error of Stallscope, please report it", width, first=style("error", "error") + ": ", rest="  ",
        )  # fmt: skip
    pairs = blocked_pairs(result)
    for line in pairs[:SHOWN]:
        lines += wrap(f"{result.label}: {line}", width, first=style("error", "blocked") + ": ", rest="  ")
    if len(pairs) > SHOWN:
        lines.append(f"  and {len(pairs) - SHOWN} more pairs; -o json has all")
    for drop in result.drops[:SHOWN]:
        lines += wrap(
            f"{result.label}: {drop.packets} packets {drop.source} -> {drop.destination}: {drop.reason}",
            width, first=style("warning", "dropped") + ": ", rest="  ",
        )  # fmt: skip
    for run in (r for r in result.repetitions if r.ended):
        lines += wrap(f"{result.label}: {run.ended}", width, first=style("error", "stalled") + ": ", rest="  ")
        for complaint in run.complaints[:3]:
            lines += wrap(complaint, width, first="  ", rest="    ")
    for pod, log in result.repetitions[-1].output if result.repetitions else ():
        lines += [f"{visible(pod)} | {visible(line)}" for line in log.splitlines()[-LOG_LINES:]]
    return [*lines, ""] if lines else []


def blocked_pairs(result: PlacementResult) -> list[str]:
    """One line per ordered pair that met the same thing for the same reason, its ports together."""
    grouped: dict[tuple[str, str, str], list[int]] = {}
    for edge in result.denied:
        ends = f"{edge.source} ({edge.zones[0]}) -> {edge.destination} ({edge.zones[1]})"
        grouped.setdefault((ends, _met(edge), edge.reason or str(edge.judged)), []).append(edge.port)
    return [f"{ends} TCP {', '.join(map(str, ports))} {met}: {why}" for (ends, met, why), ports in grouped.items()]


def _edge(edge: EdgeResult) -> str:
    return f"{edge.source} ({edge.zones[0]}) -> {edge.destination} ({edge.zones[1]}) TCP {edge.port}"


def _met(edge: EdgeResult) -> str:
    return "got no answer" if edge.measured == "silent" else "was refused"


def verdict(report: Rehearsal) -> Iterator[str]:
    """The sentence to remember."""
    if not report.results:
        return
    first, last = report.results[0], report.results[-1]
    loss = report.throughput_loss
    if loss is None:
        if first.stalled:
            yield f"{first.label}: the job does not run ({first.repetitions[0].ended})"
        elif first.timed:
            yield f"{first.label}: accelerators idle {first.idle.median:.0%} of each step"
        return
    if first.stalled:
        yield f"{first.label} does not run; {last.label} trains, accelerators busy {1 - last.idle.median:.0%} of each step"
        return
    busy = f"{1 - first.idle.median:.0%} -> {1 - last.idle.median:.0%}"
    yield f"{first.label} loses {loss:.0%} of the throughput of {last.label}; accelerators busy {busy}"


def scale_lines(report: Rehearsal) -> Iterator[str]:
    """How lab figures relate to the job's."""
    scale = report.scale
    if not scale.machine_rate:  # a real cluster: nothing is scaled
        return
    yield (
        f"the lab is the job with rates divided by {scale.rate:.3g} and times by {scale.time:.3g}; shares need no conversion"
        f"; one ring edge carried {scale.machine_rate * 8e-9:.2f} Gbit/s unshaped on this machine"
    )


def markdown(report: Rehearsal) -> str:
    """For a pull request."""

    def cell(value: str) -> str:
        return visible(value).replace("|", "\\|")

    lines = [f"### {cell(headline(report))}", "", *(f"**{cell(v)}**" for v in verdict(report)), ""]
    lines.append("| | " + " | ".join(cell(r.label) for r in report.results) + " |")
    lines.append("|---|" + "---|" * len(report.results))
    lines += [f"| {name} | " + " | ".join(map(cell, cells)) + " |" for name, cells in spelled_out(rows(report))]
    lines.append("")
    for result in report.results:
        lines += [f"- blocked, {cell(result.label)}: {cell(line)}" for line in blocked_pairs(result)[:SHOWN]]
        lines += [
            f"- {d.packets} packets dropped, {cell(d.source)} -> {cell(d.destination)}: {cell(d.reason)}"
            for d in result.drops[:SHOWN]
        ]
        lines += [f"- {cell(result.label)}: {cell(r.ended)}" for r in result.repetitions if r.ended]
    lines += ["", *(f"- {cell(s)}" for s in (*scale_lines(report), *report.said, *report.inputs))]
    return "\n".join(lines) + "\n"


def data(report: Rehearsal) -> dict[str, Any]:
    """Plain data for JSON; seconds and bytes as measured in the lab, shares 0..1."""
    return {
        "schemaVersion": "1",
        "job": report.job,
        "transport": report.transport,
        "profile": report.profile,
        "scale": {"rate": report.scale.rate, "time": report.scale.time, "machineBytesPerSecond": report.scale.machine_rate},
        "throughputLoss": report.throughput_loss,
        "disagreements": len(report.disagreements),
        "faults": list(report.faults),
        "inputs": list(report.inputs),
        "said": list(report.said),
        "placements": [_placement(r) for r in report.results],
    }


def _placement(result: PlacementResult) -> dict[str, Any]:
    model = result.modelled
    return {
        "label": result.label,
        "zones": list(result.zones),
        "pods": [{"pod": p.pod, "node": p.node, "zone": p.zone, "rank": p.rank} for p in result.placement],
        "stalled": result.stalled,
        "stepSeconds": _spread_data(result.step) | {"p95": result.p95},
        "idleShare": _spread_data(result.idle),
        "busBytesPerSecond": _spread_data(result.bus_bandwidth),
        "crossZoneBytesPerStep": _spread_data(result.cross_zone_bytes),
        "modelled": model
        and {
            "stepSeconds": model.step_seconds,
            "idleShare": model.idle_share,
            "crossZoneBytesPerStep": model.cross_zone_bytes,
            "crossZoneEdges": model.cross_zone_edges,
        },
        "upSeconds": result.up_seconds,
        "runs": [_run(r) for r in result.repetitions],
        "edges": [
            {
                "from": e.source,
                "to": e.destination,
                "port": e.port,
                "zones": list(e.zones),
                "judged": str(e.judged),
                "measured": e.measured,
                "agrees": e.agrees,
                "reason": e.reason,
            }
            for e in result.edges
        ],
        "drops": [{"from": d.source, "to": d.destination, "reason": d.reason, "packets": d.packets} for d in result.drops],
    }


def _run(run: Repetition) -> dict[str, Any]:
    return {
        "finished": run.finished,
        "ended": run.ended,
        "complaints": list(run.complaints),
        "initSeconds": run.init_seconds,
        "stepSeconds": list(run.steps),
        "reduceSeconds": run.reduce_seconds,
        "busyShare": run.busy,
        "cpuBusyShare": run.cpu_busy,
        "output": dict(run.output),
    }


def _spread_data(spread: Spread) -> dict[str, Any]:
    if not spread.values:
        return {"median": None, "low": None, "high": None, "values": []}
    return {"median": spread.median, "low": spread.low, "high": spread.high, "values": list(spread.values)}
