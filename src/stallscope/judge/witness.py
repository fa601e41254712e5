"""One concrete placement, the proof of a claim about splits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Witness(NamedTuple):
    """One concrete placement: pod name -> node name (``None`` = Pending), and each node's zone."""

    nodes: Mapping[str, str | None]
    zones: Mapping[str, str]

    def zone_of(self, pod: str) -> str:
        """The pod's zone; the empty string when it is Pending or its node has no zone label."""
        node = self.nodes.get(pod)
        return self.zones.get(node, "") if node else ""
