"""What a filter says of a node, in kube-scheduler's own words."""

from __future__ import annotations

from typing import NamedTuple


class Refusal(NamedTuple):
    """
    A filter's refusal. `reasons` may be several (NodeResourcesFit names every resource). `resolvable` tells whether the
    status is Unschedulable (evicting pods might help) or UnschedulableAndUnresolvable.
    """

    plugin: str
    reasons: tuple[str, ...]
    resolvable: bool = False

    @property
    def message(self) -> str:
        return ", ".join(self.reasons)
