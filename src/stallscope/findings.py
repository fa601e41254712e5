"""What Stallscope reports: a finding has a rule, a message, several labelled places, notes, and maybe a fix."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from stallscope.model.source import Location


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    @property
    def rank(self) -> int:
        """0 is the most severe."""
        return ("error", "warning", "info").index(self.value)


class Confidence(StrEnum):
    CERTAIN = "certain"  # follows from the inputs alone
    DEPENDS = "depends"  # holds under an assumption that a note names


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """One place and what to see there. Exactly one label of a finding is `primary`."""

    location: Location
    text: str
    primary: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """
    One thing to fix or to know.

    `subject` is what it is about (``PyTorchJob train/llm``) and with `rule` and `key` forms the fingerprint used by
    baselines, so both must not contain line numbers. `fixable`: `stallscope fix` knows a patch for it.
    """

    rule: str
    slug: str
    severity: Severity
    message: str
    labels: tuple[Label, ...]
    subject: str = ""
    key: str = ""
    confidence: Confidence = Confidence.CERTAIN
    notes: tuple[str, ...] = ()
    help: str = ""
    fixable: bool = False

    @property
    def primary(self) -> Location:
        """The place to open first; a location without file when the finding concerns no file."""
        chosen = next((x for x in self.labels if x.primary), self.labels[0] if self.labels else None)
        return chosen.location if chosen else Location(file="")
