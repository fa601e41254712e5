"""The published JSON Schemas (draft 2020-12), shipped with the package."""

from __future__ import annotations

NAMES = ("report-1", "config-1", "baseline-1")


def read(name: str) -> str:
    """The text of one of `NAMES`."""
    from importlib.resources import files

    return files(__name__).joinpath(f"{name}.json").read_text(encoding="utf-8")
