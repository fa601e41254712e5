"""
The one rule form. Each dialect compiles its objects to blocks (a policy, a direction, whom it selects) of clauses (an
action, peers, ports); `stallscope.policy.evaluate` knows nothing of dialects.

A match has three values: ``True``, ``False``, or text naming the fact that is missing. Text is never read as a yes.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple
from typing import Protocol as Shape

from stallscope.model.kube import KubeObject
from stallscope.model.traffic import Direction, RuleRef
from stallscope.policy.portset import PortItem
from stallscope.policy.view import View

Match = bool | str


class Action(IntEnum):
    """The value is the precedence among clauses of equal order (deny first), as in Cilium and ClusterNetworkPolicy."""

    DENY = 0
    ALLOW = 1
    PASS = 2


class Peer(Shape):
    """Something that may match the other end. `keys` are the label keys it reads."""

    @property
    def keys(self) -> frozenset[str]: ...

    def match(self, view: View) -> Match: ...

    def distance(self, view: View) -> int:
        """How far from matching: 0 when it matches or may match, small is near."""
        ...

    def why_not(self, view: View) -> str:
        """The part that failed, in words about "the peer"."""
        ...


class Subject(Shape):
    """Whom a policy applies to. `namespace` and `needs` are necessary conditions, used only to index."""

    @property
    def namespace(self) -> str: ...

    @property
    def needs(self) -> tuple[tuple[str, str], ...]: ...

    @property
    def keys(self) -> frozenset[str]: ...

    def match(self, view: View) -> Match: ...


class Clause(NamedTuple):
    """
    One rule item. `peers` None = any peer, ``()`` = nobody; `ports` None = any port, ``()`` = no port. `order` ranks
    within the tier (smaller first); clauses of equal order are taken together, deny before allow before pass.
    `proxied` says why an allow goes through a proxy, `proxy_rank` orders proxies (smaller wins, Cilium listener priority).
    `auth` is Cilium's authentication mode: a requirement on the connection, no verdict.
    """

    ref: RuleRef
    action: Action
    peers: tuple[Peer, ...] | None = None
    ports: tuple[PortItem, ...] | None = None
    order: tuple[float | str, ...] = ()
    proxied: str = ""
    proxy_rank: int = 0
    auth: str = ""


class Block(NamedTuple):
    """
    One direction of one policy. `isolates`: what no clause admits is denied for the pods it selects. `tier` indexes
    `Program.tiers`.
    """

    policy: KubeObject
    ref: RuleRef
    direction: Direction
    subject: Subject
    tier: int
    isolates: bool
    clauses: tuple[Clause, ...]


class Tier(NamedTuple):
    """`closed`: default deny of its blocks takes effect at the end of the tier, not after the last one."""

    name: str
    closed: bool


ONE_TIER = (Tier("normal", False),)
