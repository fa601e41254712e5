"""``--select`` and ``--ignore``: which rules count."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from stallscope.errors import UsageError


class Selection(NamedTuple):
    """Prefixes of rule ids, in capitals. The longer prefix wins where both match, --ignore at a tie; as ruff does."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()

    def enabled(self, rule: str) -> bool:
        """Whether findings of the rule are wanted."""
        wanted = _longest(rule, self.select) if self.select else 0
        return wanted >= 0 and wanted > _longest(rule, self.ignore)

    def ignored(self, rule: str) -> bool:
        """Whether somebody said that the rule is not wanted; not being selected is less."""
        said = _longest(rule, self.ignore)
        return said >= 0 and said >= _longest(rule, self.select)


def _longest(rule: str, prefixes: tuple[str, ...]) -> int:
    """Length of the longest matching prefix, -1 when none matches."""
    return max((len(p) for p in prefixes if rule.startswith(p)), default=-1)


def parse_selection(select: tuple[str, ...], ignore: tuple[str, ...], known: Mapping[str, str]) -> Selection:
    """
    From ids, prefixes and slugs; `known` maps ids to slugs. Raises UsageError for a word that can match no rule: a typo
    here would silently switch a check off.
    """
    ids = {slug: rule for rule, slug in known.items()}
    return Selection(
        select=tuple(_prefix(w, "--select", known, ids) for w in select),
        ignore=tuple(_prefix(w, "--ignore", known, ids) for w in ignore),
    )


def _prefix(word: str, flag: str, known: Mapping[str, str], ids: Mapping[str, str]) -> str:
    if word in ids:
        return ids[word]
    prefix = word.upper()
    if any(rule.startswith(prefix) for rule in known):
        return prefix
    from difflib import get_close_matches

    near = get_close_matches(word, [*known, *ids], n=1)
    instead = f"; did you mean {near[0]}?" if near else ""
    raise UsageError(f"{flag}: no rule begins with {word!r}{instead}", hint="`stallscope rules` lists them")
