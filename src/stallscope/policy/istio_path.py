"""
One TCP connection through an Istio mesh: who carries it, which mTLS mode meets it, what authorization says.

Training traffic goes to pod addresses and random ports. A sidecar passes such traffic through without mTLS (it knows no
service behind the address), so STRICT refuses it: kubeflow/trainer#1681, mpi-operator#480; reference/policy.md §6.
Not judged: Sidecar and DestinationRule objects, waypoints, Envoy filters.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from stallscope.model.kube import KubeObject
from stallscope.model.source import Location
from stallscope.model.traffic import Outcome, RuleRef
from stallscope.policy.istio import Membership, MeshFacts, MeshPod, Path, membership
from stallscope.policy.istio_authz import Caller, authorize
from stallscope.policy.istio_mtls import STRICT, UNCLEAR, MtlsMode, mtls_mode

HBONE = 15008

EXCLUDE_IN = "traffic.sidecar.istio.io/excludeInboundPorts"
EXCLUDE_OUT = "traffic.sidecar.istio.io/excludeOutboundPorts"
INCLUDE_IN = "traffic.sidecar.istio.io/includeInboundPorts"
INTERCEPTION = "sidecar.istio.io/interceptionMode"


@dataclass(frozen=True, slots=True, kw_only=True)
class MeshVerdict:
    """
    ALLOWED: no proxy in the path. PROXIED: it arrives, through a proxy. DENIED with the object that refuses it;
    `by_default`: not one of its rules refuses, but none admits (`rules` are then the ALLOW policies in force).
    `source`/`destination` say who is in the mesh and why.
    """

    outcome: Outcome
    reason: str
    source: Membership
    destination: Membership
    rules: tuple[RuleRef, ...] = ()
    location: Location | None = None
    by_default: bool = False


def mesh_path(
    objects: Iterable[KubeObject],
    facts: MeshFacts,
    source: MeshPod,
    destination: MeshPod,
    port: int,
    *,
    by_service: bool = False,
) -> MeshVerdict:
    """
    Judge one connection. `by_service`: the client uses a Service name and the Service declares this port, so a sidecar can
    originate mTLS; false for pod addresses and undeclared ports, which is what collectives use.
    """
    items = tuple(objects)
    left, right = membership(source, facts), membership(destination, facts)
    for end in (left, right):
        if end.path is Path.UNKNOWN:
            return _verdict(Outcome.UNJUDGED, f"not known: {end.because}", left, right)
    leaves = left.path is Path.AMBIENT or (left.path is Path.SIDECAR and not _bypasses(source, port, inbound=False))
    enters = right.path is Path.AMBIENT or (right.path is Path.SIDECAR and not _bypasses(destination, port, inbound=True))
    if not enters:
        if not leaves:
            return _verdict(Outcome.ALLOWED, "no proxy in the path", left, right)
        return _verdict(Outcome.PROXIED, f"{_carrier(left)} of the source carries it", left, right)
    mode = mtls_mode(items, destination.namespace, destination.labels, port)
    secured = leaves and (left.path is Path.AMBIENT or by_service)
    refused = _mtls(mode, secured, left, right)
    if refused is not None:
        return refused
    caller = Caller(pod=source, identified=secured and mode.mode != "DISABLE")
    answer = authorize(items, destination, caller, port)
    if answer.outcome is Outcome.ALLOWED:
        return _verdict(Outcome.PROXIED, f"{_carrier(right)} of the destination carries it", left, right, answer.rules)
    rules = answer.rules or answer.applying
    place = rules[0].location if rules else None
    reason = answer.reason or "an AuthorizationPolicy denies it"
    found = _verdict(answer.outcome, reason, left, right, rules, place)
    return replace(found, by_default=not answer.rules and answer.outcome is Outcome.DENIED)


def _mtls(mode: MtlsMode, secured: bool, left: Membership, right: Membership) -> MeshVerdict | None:
    if mode.mode == UNCLEAR and not secured:
        return _verdict(Outcome.UNJUDGED, "not known: which of several PeerAuthentications is the oldest", left, right)
    if mode.mode != STRICT or secured or mode.source is None:
        return None
    how = "it comes without mTLS" if left.path is Path.PLAIN else "a sidecar sends pod-address traffic without mTLS"
    ref = RuleRef(policy=mode.source.ref, location=mode.source.at("spec"))
    reason = f"{mode.source.ref} demands mTLS (STRICT) and {how}"
    return _verdict(Outcome.DENIED, reason, left, right, (ref,), ref.location)


def _verdict(
    outcome: Outcome,
    reason: str,
    left: Membership,
    right: Membership,
    rules: tuple[RuleRef, ...] = (),
    location: Location | None = None,
) -> MeshVerdict:
    return MeshVerdict(outcome=outcome, reason=reason, source=left, destination=right, rules=rules, location=location)


def _carrier(end: Membership) -> str:
    return f"ztunnel (HBONE, port {HBONE})" if end.path is Path.AMBIENT else "the sidecar"


def _bypasses(pod: MeshPod, port: int, *, inbound: bool) -> bool:
    """Whether the sidecar's redirection leaves this port out."""
    notes = pod.annotations
    if notes.get(INTERCEPTION) == "NONE":
        return True
    excluded = notes.get(EXCLUDE_IN if inbound else EXCLUDE_OUT, "")
    if str(port) in (p.strip() for p in excluded.split(",")):
        return True
    included = notes.get(INCLUDE_IN) if inbound else None
    return included is not None and included.strip() != "*" and str(port) not in (p.strip() for p in included.split(","))
