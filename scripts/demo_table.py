"""The demo's last screen: what was judged and what was measured, as written and fixed, from the reports it just wrote."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

Row = tuple[str, str, str]


def read(folder: Path, name: str) -> Any:
    file = folder / name
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else None


def judged(before: Any, after: Any) -> list[Row]:
    def denied(report: Any) -> str:
        return str(sum(job["flows"]["denied"] for job in report["jobs"]))

    def errors(report: Any) -> str:
        return str(report["summary"]["errors"])

    def split(report: Any) -> str:
        return str(report["jobs"][0]["canSplit"])

    rows = [("can be split across zones", split), ("denied peer edges", denied), ("errors found", errors)]
    return [(f"judged: {name}", of(before), of(after)) for name, of in rows]


def runs(report: Any) -> tuple[Any, Any]:
    placements = {p["label"]: p for p in report["placements"]}
    return placements["split"], placements["fixed"]


def denied_rows(report: Any) -> list[Row]:
    def outcome(placement: Any) -> str:
        blocked = sum(e["measured"] != "open" for e in placement["edges"])
        return f"stalls, {blocked} of {len(placement['edges'])} connects dropped" if placement["stalled"] else "trains"

    return [("measured, denying policy: the job", *map(outcome, runs(report)))]


def detour_rows(report: Any) -> list[Row]:
    split, fixed = runs(report)

    def spread(figure: Any, unit: str, scale: float) -> str:
        half = (figure["high"] - figure["low"]) / 2
        return f"{figure['median'] * scale:.0f} {unit} (+-{half * scale:.1f})"

    def busy(placement: Any) -> str:
        idle = placement["idleShare"]
        return f"{(1 - idle['median']) * 100:.0f} % (+-{(idle['high'] - idle['low']) * 50:.1f})"

    loss = report["throughputLoss"]
    return [
        ("measured, permissive policy: step", *(spread(p["stepSeconds"], "ms", 1000) for p in (split, fixed))),
        ("accelerators busy", busy(split), busy(fixed)),
        ("throughput", f"-{loss * 100:.0f} %", "0"),
        ("across zones a step (lab scale)", *(spread(p["crossZoneBytesPerStep"], "MB", 1e-6) for p in (split, fixed))),
    ]


def main(folder: Path) -> None:
    rows = [("", "as written", "fixed"), *judged(read(folder, "before.report"), read(folder, "after.report"))]
    if (denied := read(folder, "denied.report")) is not None:
        rows += denied_rows(denied)
    if (detour := read(folder, "detour.report")) is not None:
        rows += detour_rows(detour)
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    for row in rows:
        print("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
