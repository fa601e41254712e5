"""
GitLab code quality (docs.gitlab.com, "Code Quality report format"): description, check_name, fingerprint, severity,
location.path, location.lines.begin. Paths are relative to the repository, without ``./``.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from stallscope.findings import Finding, Severity
from stallscope.render.report import Report, origin

SEVERITIES = {Severity.ERROR: "critical", Severity.WARNING: "major", Severity.INFO: "info"}


def render(report: Report) -> str:
    """The array; suppressed findings are left out, for the format has no place for them."""
    seen: Counter[str] = Counter()
    return json.dumps([_entry(f, seen) for f in report.findings], indent=2) + "\n"


def _entry(finding: Finding, seen: Counter[str]) -> dict[str, Any]:
    mark = finding.fingerprint
    seen[mark] += 1
    place = finding.primary
    return {
        "type": "issue",
        "description": f"{finding.rule} {finding.message}{origin(place)}",
        "check_name": finding.slug,
        "categories": ["Bug Risk"],
        # equal fingerprints would be merged into one by GitLab
        "fingerprint": mark if seen[mark] == 1 else f"{mark}-{seen[mark]}",
        "severity": SEVERITIES[finding.severity],
        "location": {"path": place.file.removeprefix("./") or ".", "lines": {"begin": max(place.span.line, 1)}},
    }
