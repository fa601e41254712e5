"""
NetworkPolicy as the Kubernetes API documents it, for engines without a dialect module of their own (OVN-Kubernetes,
Antrea, kube-network-policies, kindnet…): pods by selector, ipBlock also against pod addresses. What the API leaves open
(host network) is unjudged.
"""

from __future__ import annotations

from collections.abc import Sequence

from stallscope.model.traffic import Direction, DirectionVerdict, Endpoint, Outcome
from stallscope.policy.case import Case
from stallscope.policy.cilium_engine import parse_address
from stallscope.policy.namespaces import Namespaces
from stallscope.policy.portset import covers
from stallscope.policy.program import Engine
from stallscope.policy.view import View


def generic_engine(namespaces: Namespaces) -> Engine:
    """The reference engine."""

    def view(endpoint: Endpoint) -> View:
        return make_view(endpoint, namespaces)

    return Engine(view=view, exempt=exempt, after=after, resolve=resolve, pods_by_address=True)


def make_view(endpoint: Endpoint, namespaces: Namespaces) -> View:
    labels = dict(endpoint.labels)
    own, known = namespaces.of(endpoint.namespace) if endpoint.namespace else ({}, True)
    address = parse_address(endpoint.ip)
    reserved = frozenset(endpoint.reserved) or (frozenset({"world"}) if not endpoint.namespace else frozenset[str]())
    return View(
        endpoint=endpoint,
        labels=labels,
        bare=labels,
        namespace_labels=own,
        namespace_known=known,
        reserved=reserved,
        address=address,
        governed=endpoint.is_pod,
    )


def exempt(direction: Direction, subject: View, peer: View) -> DirectionVerdict | None:
    """Ends without pod policy, and what the API says cannot be prevented: a pod reached from its own node."""
    if not subject.is_pod:
        return DirectionVerdict(
            outcome=Outcome.ALLOWED, direction=direction, enforced=False, reason="not a pod: no NetworkPolicy applies to it"
        )
    if direction is Direction.INGRESS and "host" in peer.reserved:
        return DirectionVerdict(outcome=Outcome.ALLOWED, direction=direction, reason="a pod's own node can always reach it")
    return None


def after(case: Case, verdict: DirectionVerdict, port: int) -> DirectionVerdict:
    """NetworkPolicy leaves host-network pods undefined, on either end: only what holds either way is kept."""
    if case.subject.endpoint.host_network and case.selected:
        reason = "not known: what NetworkPolicy means for a host-network pod (left open by the API)"
        return DirectionVerdict(outcome=Outcome.UNJUDGED, direction=case.direction, reason=reason)
    if case.peer.endpoint.host_network and case.selected and not _whoever(case, verdict):
        reason = "not known: how this engine sees a host-network pod as a peer"
        return DirectionVerdict(outcome=Outcome.UNJUDGED, direction=case.direction, reason=reason)
    return _undefined_order(case, verdict, port)


def _undefined_order(case: Case, verdict: DirectionVerdict, port: int) -> DirectionVerdict:
    """Two cluster policies of one tier and priority that disagree: the API leaves open which comes first."""
    matching = [c for c in case.candidates if c.clause.order and covers(c.ports, port)]
    for chosen in (c for c in matching if c.clause.ref in verdict.rules):
        for other in matching:
            tied = (other.tier, other.clause.order[0]) == (chosen.tier, chosen.clause.order[0])
            differs = other.clause.action is not chosen.clause.action
            if tied and differs and other.clause.ref.policy != chosen.clause.ref.policy:
                both = f"{chosen.clause.ref.policy} and {other.clause.ref.policy}"
                reason = f"not known: which of {both} comes first (equal priority is left open by the API)"
                return DirectionVerdict(outcome=Outcome.UNJUDGED, direction=case.direction, reason=reason)
    return verdict


def _whoever(case: Case, verdict: DirectionVerdict) -> bool:
    """Whether the verdict would be the same for any peer: an allow by a rule without peers."""
    anybody = {c.clause.ref for c in case.candidates if c.clause.peers is None}
    return verdict.outcome is Outcome.ALLOWED and (not verdict.rules or bool(anybody & set(verdict.rules)))


def resolve(source: Endpoint, destination: Endpoint) -> Sequence[tuple[Endpoint, Endpoint]]:
    return ((source, destination),)
