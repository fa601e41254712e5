"""
The edges a collective uses, over the order of ranks.

Ring: rank i sends to rank i+1 (NCCL "Ring", Thakur et al. 2005, Patarasuk & Yuan 2009). Tree: NCCL's double binary tree
(Sanders, Speck & Träff 2009), approximated by its two complementary trees. Hierarchical: a ring over nodes; ranks of a
node reduce among themselves first (NCCL intra-node, Horovod hierarchical all-reduce).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise


def ring(size: int) -> tuple[tuple[int, int], ...]:
    """Directed ring edges of `size` ranks; none for fewer than two, two for two."""
    if size < 2:
        return ()
    return tuple((i, (i + 1) % size) for i in range(size))


def binary_tree(size: int) -> tuple[tuple[int, int], ...]:
    """(parent, child) edges of a heap-ordered binary tree over `size` ranks."""
    return tuple(((child - 1) // 2, child) for child in range(1, size))


def double_binary_tree(size: int) -> tuple[tuple[tuple[int, int], ...], tuple[tuple[int, int], ...]]:
    """Two trees whose inner nodes differ: the second is the first shifted by one rank; each carries half the data."""
    first = binary_tree(size)
    second = tuple(((p + 1) % size, (c + 1) % size) for p, c in first) if size else ()
    return first, second


def crossings(edges: Sequence[tuple[int, int]], zones: Sequence[str]) -> int:
    """How many of `edges` join two different zones. `zones` is the zone of each rank; unknown zones ("") never cross."""
    return sum(1 for a, b in edges if zones[a] and zones[b] and zones[a] != zones[b])


def interleaved(zones: Sequence[str]) -> bool:
    """True when the ring changes zone more often than grouping the ranks by zone would need (placement.md §6)."""
    known = [z for z in zones if z]
    distinct = len(set(known))
    if distinct < 2:
        return False
    changes = sum(1 for a, b in pairwise([*known, known[0]]) if a != b)
    return changes > max(2, distinct)
