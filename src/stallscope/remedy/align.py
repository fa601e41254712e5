"""
Which lines of two texts correspond, when one was made from the other by a few insertions and replacements.

difflib's matcher is quadratic on manifests (thousands of equal lines); ours walks both texts once and looks ahead only at
a difference. It falls back to difflib where it finds no foothold.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

_AHEAD = 400  # lines one insertion may have
_GONE = 8  # lines one replacement may replace
_SURE = 3  # equal lines in a row that count as a foothold


class Change(NamedTuple):
    """Lines ``old_start:old_end`` of the one text stand where ``new_start:new_end`` of the other do."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


def changes(old: Sequence[str], new: Sequence[str]) -> Iterator[Change]:
    """The differing stretches, in order."""
    i = j = 0
    while i < len(old) or j < len(new):
        if i < len(old) and j < len(new) and old[i] == new[j]:
            i, j = i + 1, j + 1
            continue
        found = _foothold(old, new, i, j)
        if found is None:
            yield from _by_difflib(old, new, i, j)
            return
        yield Change(i, found[0], j, found[1])
        i, j = found


def _foothold(old: Sequence[str], new: Sequence[str], i: int, j: int) -> tuple[int, int] | None:
    """
    The cheapest pair of places behind the difference from which both texts go on alike. An insertion needs one equal
    line (greedy matching finds every insertion); a replacement needs a sure foothold and pays for what it removes.
    """
    best, cost = None, _AHEAD
    for gone in range(min(_GONE, len(old) - i) + 1):
        price = 3 + 3 * gone if gone else 0
        need = _SURE if gone else 1
        for added in range(min(cost - price, len(new) - j) + 1):
            k, m = i + gone, j + added
            if _alike(old, new, k, m, need) and added + price < cost:
                best, cost = (k, m), added + price
                break
    return best


def _alike(old: Sequence[str], new: Sequence[str], k: int, m: int, need: int) -> bool:
    """`need` equal lines follow, or the rest of the shorter text equals."""
    if k == len(old) or m == len(new):
        return k == len(old) and m == len(new)
    need = min(need, len(old) - k, len(new) - m)
    return all(old[k + n] == new[m + n] for n in range(need))


def _by_difflib(old: Sequence[str], new: Sequence[str], i: int, j: int) -> Iterator[Change]:
    matcher = SequenceMatcher(None, old[i:], new[j:], autojunk=False)
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag != "equal":
            yield Change(i + a, i + b, j + c, j + d)


def hunks(found: Iterator[Change], context: int) -> Iterator[list[Change]]:
    """Changes that share context lines belong to one hunk."""
    group: list[Change] = []
    for change in found:
        if group and change.old_start - group[-1].old_end > 2 * context:
            yield group
            group = []
        group.append(change)
    if group:
        yield group
