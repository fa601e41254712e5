"""How much of a hostile input is read before it is refused."""

from __future__ import annotations

from typing import NamedTuple

MIB = 1024 * 1024


class Limits(NamedTuple):
    """
    Bounds of one input file.

    `size` is in bytes as read, `json_size` that of a JSON dump (5,000 nodes with their images are 150 MB). `nodes` counts
    keys, values and items after alias expansion, so an alias bomb is refused rather than expanded. `scalar` is in
    characters (an object in etcd has at most 1.5 MiB). `broken` is how many unreadable documents are reported before the
    rest of the file is left alone.
    """

    size: int = 64 * MIB
    json_size: int = 256 * MIB
    nodes: int = 2_000_000
    depth: int = 100
    documents: int = 100_000
    scalar: int = 4 * MIB
    broken: int = 20
