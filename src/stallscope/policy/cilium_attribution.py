"""
Which of several matching rules Cilium itself names: those behind the policy-map entry that the datapath picks.

The agent turns rules into filters (one per port, endPort, protocol), each with selectors; these into map keys (identity or
any, protocol, port prefix). A lookup takes the longest port prefix; at equal prefix the identity's own entry before the one
for any identity. A denial covers narrower denials. Source: cilium/cilium pkg/policy/mapstate.go (lookup,
insertWithChanges), pkg/policy/l4.go (toMapState). Verdicts do not depend on this; provenance does.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import NamedTuple

from stallscope.model.traffic import Protocol, RuleRef
from stallscope.policy.cilium_selectors import Term, term
from stallscope.policy.identity import CLUSTER
from stallscope.policy.ir import Action, Clause, Peer
from stallscope.policy.peers import CLUSTER_RESERVED, ENTITY_RESERVED, EntityPeer, SelectorPeer
from stallscope.policy.portset import LAST_PORT, NamedPorts, PortItem
from stallscope.policy.view import View

ANYONE: Hashable = frozenset[Term]()


class Filter(NamedTuple):
    """An L4Filter's key."""

    protocol: Protocol | None
    first: int
    last: int
    name: str
    ranged: bool

    @property
    def has_port(self) -> bool:
        """Filters of port 0, ranges from 0 included, keep entries that equal the one for any identity."""
        return bool(self.name) or self.first != 0


class Entry(NamedTuple):
    """A policy-map entry that covers the packet. `explicit`: it states an authentication mode."""

    anyone: bool
    prefix: int
    precedence: tuple[int, int]
    refs: tuple[RuleRef, ...]
    explicit: bool = False


def deciding(
    clauses: Sequence[Clause], peer: View, protocol: Protocol, named: NamedPorts, port: int, *, localhost: bool = False
) -> tuple[RuleRef, ...]:
    """
    The rules the engine names among `clauses`, which all match `peer` and `port`. `localhost`: the agent's own entry for
    the host identity competes; when that wins, nothing is named. `named`: the destination's named ports.
    """
    entries = list(_entries(clauses, peer, protocol, named, port))
    if localhost:
        entries.append(Entry(False, 0, (0, 0), ()))
    if not entries:
        return ()
    best = max(e.precedence for e in entries)
    winners = [e for e in entries if _precedence_in_map(e, entries) == best]
    chosen = _broadest(winners) if best[0] == 2 else _longest(winners)
    return tuple(dict.fromkeys(r for e in winners if (e.anyone, e.prefix) == chosen for r in e.refs))


def _precedence_in_map(entry: Entry, entries: Sequence[Entry]) -> tuple[int, int]:
    """
    An allow that states an authentication mode survives below a redirect of the same identity by taking over its proxy
    (mapstate.go authPreferredInsert); other allows there are removed.
    """
    if not entry.explicit or entry.precedence[0] == 2:
        return entry.precedence
    covering = (e.precedence for e in entries if e.anyone is entry.anyone and e.prefix <= entry.prefix)
    return max((p for p in covering if p[0] < 2), default=entry.precedence)


def _longest(entries: Sequence[Entry]) -> tuple[bool, int]:
    """Allows: longest prefix, the identity's own entry first at equal length."""
    best = max(entries, key=lambda e: (e.prefix, not e.anyone))
    return best.anyone, best.prefix


def _broadest(entries: Sequence[Entry]) -> tuple[bool, int]:
    """Denials: the broadest of each kind survives; the identity's own entry decides unless the other covers it."""
    own = min((e.prefix for e in entries if not e.anyone), default=None)
    anyone = min((e.prefix for e in entries if e.anyone), default=None)
    if own is None or (anyone is not None and anyone <= own):
        return True, anyone or 0
    return False, own


def _entries(clauses: Sequence[Clause], peer: View, protocol: Protocol, named: NamedPorts, port: int) -> Iterator[Entry]:
    """Filters with their selectors merged; an entry equal to the filter's any-identity one is elided."""
    filters: dict[Filter, dict[Hashable, list[Clause]]] = defaultdict(lambda: defaultdict(list))
    for clause in clauses:
        for key in _filters(clause.ports, protocol, named, port):
            for selector in _selectors(clause.peers, peer):
                filters[key][selector].append(clause)
    for key, selectors in filters.items():
        common = selectors.get(ANYONE)
        for selector, members in selectors.items():
            anyone = selector == ANYONE
            elided = not anyone and common is not None and key.has_port and _value(members) == _value(common)
            if not elided:
                explicit = any(c.auth for c in members)
                yield Entry(anyone, _prefix(key, port), _precedence(members), tuple(c.ref for c in members), explicit)


def _filters(ports: Iterable[PortItem] | None, protocol: Protocol, named: NamedPorts, port: int) -> set[Filter]:
    if ports is None:
        return {Filter(None, 0, LAST_PORT, "", False)}
    covering = (p for p in ports if (i := p.interval(protocol, named)) is not None and i[0] <= port <= i[1])
    return {Filter(p.protocol, p.first, p.last, p.name, p.ranged) for p in covering}


def _selectors(peers: Sequence[Peer] | None, view: View) -> set[Hashable]:
    """The selectors (as the agent caches them) through which these peers match; `ANYONE` for wildcards."""
    if peers is None:
        return {ANYONE}
    found: set[Hashable] = set()
    for peer in peers:
        if isinstance(peer, EntityPeer):
            found.update(_entity_selectors(peer, view))
        elif isinstance(peer, SelectorPeer):
            if peer.match(view) is True:
                found.add(frozenset(peer.selector.terms))
        elif peer.match(view) is True:
            found.add(str(peer))
    return {ANYONE} if ANYONE in found else found  # a wildcard absorbs the rule's other selectors


def _entity_selectors(peer: EntityPeer, view: View) -> set[Hashable]:
    if peer.entity == "all":
        return {ANYONE}
    wanted = CLUSTER_RESERVED if peer.entity == "cluster" else ENTITY_RESERVED[peer.entity]
    found: set[Hashable] = {frozenset({term("reserved", n, "In", ("",))}) for n in wanted & view.reserved}
    if peer.entity == "cluster" and view.sourced.get(f"k8s:{CLUSTER}") == peer.cluster:
        found.add(frozenset({term("k8s", CLUSTER, "In", (peer.cluster,))}))
    return found


def _precedence(members: Sequence[Clause]) -> tuple[int, int]:
    """Deny over redirect over allow; among redirects the smaller rank."""
    if any(c.action is Action.DENY for c in members):
        return (2, 0)
    ranks = [c.proxy_rank for c in members if c.proxied]
    return (1, -min(ranks)) if ranks else (0, 0)


def _value(members: Sequence[Clause]) -> tuple[object, ...]:
    return (_precedence(members), frozenset(c.auth for c in members if c.auth))


def _prefix(key: Filter, port: int) -> int:
    """Bits of the trie key that are fixed: 8 for the protocol, up to 16 for the aligned block of ports around `port`."""
    if key.protocol is None:
        return 0
    if key.name:
        return 24
    if (key.first, key.last) == (0, LAST_PORT):
        return 8
    size = 1
    while size <= LAST_PORT:
        base = port & ~(size * 2 - 1)
        if base < key.first or base + size * 2 - 1 > key.last:
            break
        size *= 2
    return 24 - (size.bit_length() - 1)
