"""
How equal scores are broken: node orders.

Before some release ties were broken at random; in 1.36 the first best node in list order wins, and the list interleaves
the zones (node_tree.go), starting from an order of zones that depends on the process's history (reference §2.6). Both
are given as an order of nodes, drawn from a seed; the core has no random module, so a small generator stands in.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stallscope.model.topology import REGION, ZONE, Node


class Lcg:
    """Numerical Recipes' linear congruential generator: the same seed, the same orders, on every machine."""

    def __init__(self, seed: int) -> None:
        self._state = (seed * 2654435761 + 1) & 0xFFFFFFFF

    def below(self, bound: int) -> int:
        """A number in 0..bound-1."""
        self._state = (self._state * 1664525 + 1013904223) & 0xFFFFFFFF
        return (self._state >> 8) * bound >> 24


def shuffled(items: Sequence[int], generator: Lcg) -> list[int]:
    result = list(items)
    for i in range(len(result) - 1, 0, -1):
        j = generator.below(i + 1)
        result[i], result[j] = result[j], result[i]
    return result


def uniform(nodes: Sequence[Node], generator: Lcg) -> list[int]:
    """Rank of each node when every order is as likely."""
    return _ranks(shuffled(range(len(nodes)), generator))


def interleaved(nodes: Sequence[Node], generator: Lcg) -> list[int]:
    """Rank of each node when zones take turns, in a drawn order of zones; the first seed keeps the order of the list."""
    zones: dict[tuple[str, str], list[int]] = {}
    for index, node in enumerate(nodes):
        zones.setdefault((node.labels.get(REGION, ""), node.labels.get(ZONE, "")), []).append(index)
    keys = list(zones)
    order = [zones[keys[i]] for i in shuffled(range(len(keys)), generator)]
    return _ranks(list(_turns(order)))


def _turns(lists: Sequence[Sequence[int]]) -> Iterator[int]:
    for depth in range(max(map(len, lists), default=0)):
        yield from (items[depth] for items in lists if depth < len(items))


def _ranks(order: Sequence[int]) -> list[int]:
    ranks = [0] * len(order)
    for rank, index in enumerate(order):
        ranks[index] = rank
    return ranks
