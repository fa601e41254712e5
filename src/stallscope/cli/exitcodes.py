"""What the process returns; the same for every output format, so that a green CI job means what it says."""

from __future__ import annotations

CLEAN = 0
FINDINGS = 1  # findings at or above --fail-on
ERROR = 2  # usage, unreadable input, internal error
NOTHING = 3  # nothing that Stallscope judges was found
INTERRUPTED = 130
