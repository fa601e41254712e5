"""What a conformance run over one vector file says."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Result:
    """Counts of one file. `first` holds the first disagreements in words, `waived` those listed by name with a reason."""

    path: str
    cases: int = 0
    verdicts: int = 0
    wrong: int = 0
    first: list[str] = field(default_factory=list)
    waived: dict[str, str] = field(default_factory=dict)

    def miss(self, text: str, keep: int = 10) -> None:
        """Count one disagreement; only the first few are kept in words."""
        self.wrong += 1
        if len(self.first) < keep:
            self.first.append(text)

    @property
    def agreement(self) -> float:
        """Percent of verdicts that agree."""
        return 100.0 * (self.verdicts - self.wrong) / self.verdicts if self.verdicts else 100.0
