"""
What the policies of a cluster look at. Endpoints that agree on it cannot be told apart by any of them, so 1,024 ranks of
a job, or 50,000 pods of other people, become a handful of classes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from stallscope.model.traffic import Endpoint
from stallscope.policy.identity import SERVICE_ACCOUNT
from stallscope.policy.ir import Block

#: Markers among label keys, for what is no label.
ADDRESS, ACCOUNT = "@address", "@account"

_ACCOUNT_KEYS = frozenset({ACCOUNT, SERVICE_ACCOUNT, "projectcalico.org/serviceaccount"})


class Relevance(NamedTuple):
    """`keys`: label keys any selector reads; `names`: named ports; `nodes`: host-network ends depend on their node."""

    keys: frozenset[str]
    names: frozenset[str]
    addresses: bool
    accounts: bool
    nodes: bool

    def key(self, end: Endpoint) -> tuple[object, ...]:
        """Equal for endpoints that no policy tells apart."""
        keys, outside = self.keys, not end.namespace
        return (
            end.namespace,
            tuple(sorted(pair for pair in end.labels if pair[0] in keys)),
            tuple(p for p in end.named_ports if p[0] in self.names) if self.names else (),
            end.service_account if self.accounts else "",
            end.ip if outside or self.addresses else "",
            end.host_network,
            end.node if end.host_network and self.nodes else "",
            end.reserved,
            end.node_labels if outside or end.host_network else (),
            end.raw_labels,
        )


def relevance(
    blocks: Iterable[Block], *, pods_by_address: bool, nodes: bool, always: frozenset[str] = frozenset()
) -> Relevance:
    """What `blocks` read. `pods_by_address`: the engine may match a pod by its address. `always`: keys it reads itself."""
    keys: set[str] = set(always)
    names: set[str] = set()
    seen: set[int] = set()
    for block in blocks:
        keys |= block.subject.keys
        for clause in block.clauses:
            for peer in clause.peers or ():
                if id(peer) not in seen:
                    seen.add(id(peer))
                    keys |= peer.keys
            names.update(p.name for p in clause.ports or () if p.name)
    return Relevance(
        keys=frozenset(keys),
        names=frozenset(names),
        addresses=pods_by_address and ADDRESS in keys,
        accounts=not _ACCOUNT_KEYS.isdisjoint(keys),
        nodes=nodes,
    )
