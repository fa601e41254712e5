"""
A baseline: the findings a team accepts for now, so that the gate is about new ones. A sorted JSON file meant to be
committed; entries are fingerprints of rule, subject and key, which do not move with lines.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from stallscope.errors import UsageError
from stallscope.findings import Finding, Suppressed, SuppressedBy

SCHEMA_VERSION = "1"
MAX_BYTES = 64 << 20

#: (rule, fingerprint) -> how many
Accepted = Counter[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Baselined:
    """`stale` counts the entries that no finding matches any more."""

    kept: tuple[Finding, ...]
    suppressed: tuple[Suppressed, ...]
    stale: int


def dump_baseline(findings: Iterable[Finding]) -> str:
    """The file's text: one entry a fingerprint, with how often it occurs, sorted by rule, subject and key."""
    counts: Counter[tuple[str, str, str, str]] = Counter()
    for f in findings:
        counts[(f.rule, f.subject, f.key, f.fingerprint)] += 1
    entries = [
        {"rule": rule, "subject": subject, "key": key, "count": count, "fingerprint": mark}
        for (rule, subject, key, mark), count in sorted(counts.items())
    ]
    return json.dumps({"schemaVersion": SCHEMA_VERSION, "findings": entries}, indent=2) + "\n"


def read_baseline(path: Path) -> Accepted:
    """How many findings of each rule and fingerprint are accepted. Raises UsageError for a missing or malformed file."""
    hint = "write one with --write-baseline"
    try:
        if path.stat().st_size > MAX_BYTES:
            raise UsageError(f"baseline {path}: larger than {MAX_BYTES >> 20} MiB", hint=hint)
        data = json.loads(path.read_bytes())
    except OSError as error:
        raise UsageError(f"baseline {path}: {error.strerror or error}", hint=hint) from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"baseline {path}: not JSON ({error})", hint=hint) from error
    if not isinstance(data, dict) or not isinstance(data.get("findings"), list):
        raise UsageError(f"baseline {path}: not a baseline of stallscope", hint=hint)
    if data.get("schemaVersion") != SCHEMA_VERSION:
        raise UsageError(f"baseline {path}: unknown schemaVersion {data.get('schemaVersion')!r}", hint=hint)
    accepted: Accepted = Counter()
    for number, entry in enumerate(data["findings"]):
        mark = entry.get("fingerprint") if isinstance(entry, dict) else None
        count = entry.get("count", 1) if isinstance(entry, dict) else 0
        if not isinstance(mark, str) or not isinstance(count, int) or count < 1:
            raise UsageError(f"baseline {path}: entry {number} has no fingerprint or no valid count", hint=hint)
        accepted[str(entry.get("rule", "")), mark] += count
    return accepted


def apply_baseline(
    findings: Iterable[Finding], accepted: Accepted, *, enabled: Callable[[str], bool] = lambda _rule: True
) -> Baselined:
    """
    Take accepted findings out, as many of a fingerprint as the baseline counts. An entry of a rule that is not `enabled`
    is not stale: the run could not tell.
    """
    left = Counter(accepted)
    kept: list[Finding] = []
    suppressed: list[Suppressed] = []
    for finding in findings:
        mark = (finding.rule, finding.fingerprint)
        if left[mark] > 0:
            left[mark] -= 1
            suppressed.append(Suppressed(finding=finding, by=SuppressedBy.BASELINE))
        else:
            kept.append(finding)
    stale = sum(count > 0 and enabled(rule) for (rule, _), count in left.items())
    return Baselined(kept=tuple(kept), suppressed=tuple(suppressed), stale=stale)
