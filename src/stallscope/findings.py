"""What Stallscope reports: a finding has a rule, a message, several labelled places, notes, and maybe a fix."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

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


class Label(NamedTuple):
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

    @property
    def fingerprint(self) -> str:
        """32 hex digits that stay the same while lines move: rule, subject and key, nothing else."""
        from hashlib import sha256  # not at start-up: it loads OpenSSL

        return sha256("\0".join((self.rule, self.subject, self.key)).encode("utf-8", "surrogatepass")).hexdigest()[:32]


class SuppressedBy(StrEnum):
    COMMENT = "comment"
    ANNOTATION = "annotation"
    BASELINE = "baseline"


class Suppressed(NamedTuple):
    """A finding somebody accepted: how, why, and where they said so (``None`` for a baseline)."""

    finding: Finding
    by: SuppressedBy
    reason: str = ""
    location: Location | None = None
