"""Text that is not what it seems: output of ``helm template`` that names its source, and templates nobody rendered."""

from __future__ import annotations

import re

_HELM_SOURCE = re.compile(r"^# Source: (\S.*?)[ \t\r]*$", re.MULTILINE)


def helm_source(text: str, start: int, end: int) -> str:
    """The template named by a ``# Source:`` comment in ``text[start:end]``, the part between ``---`` and the content."""
    if text.find("# Source: ", start, end) < 0:
        return ""
    match = _HELM_SOURCE.search(text, start, end)
    return match.group(1) if match else ""
