#!/usr/bin/env python3
"""Write docs/reports.md from the rebuilt reports of tests/scenarios/reports; a test compares the two."""

from __future__ import annotations

import json
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REPORTS = ROOT / "tests" / "scenarios" / "reports"
HEAD = """\
# Public reports, rebuilt

Each of these threads describes a job that hung, failed or was slow, and (as far as one can see) why. Each is rebuilt as a
small input of our own design; `stallscope check` must name the established cause, at its line. Names, numbers and addresses
are invented. The inputs are in [tests/scenarios/reports](../tests/scenarios/reports); this page is made from them by
`make docs`.

| report | established cause | finding |
|---|---|---|
"""


def page() -> str:
    """The whole page."""
    rows = []
    for path in sorted(REPORTS.glob("*/expected.json")):
        body = json.loads(path.read_text(encoding="utf-8"))
        found = "<br>".join(
            f"[{f['rule']}](rules/{f['rule']}.md) {f['subject']}, `{f['file']}:{f['line']}`" for f in body["findings"]
        )
        rows.append(f"| [{path.parent.name}]({body['report']}) | {body['cause'].replace('|', '/')} | {found} |")
    return HEAD + "\n".join(rows) + "\n"


if __name__ == "__main__":
    (ROOT / "docs" / "reports.md").write_text(page(), encoding="utf-8")
