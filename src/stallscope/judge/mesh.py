"""
The service mesh over the policies: what Istio makes of a connection that the policies let through.

A policy's denial stands. Else the mesh may refuse the connection (STRICT mTLS met by a caller without, an
AuthorizationPolicy), carry it (proxied), or be unknown. Between two ambient pods ztunnel tunnels TCP over HBONE, so
network policies see port 15008 instead of the real one (istio.io, "Ambient and Kubernetes NetworkPolicy").
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from stallscope.model.kube import KubeObject
from stallscope.model.source import as_list, as_map, as_str_map
from stallscope.model.traffic import Direction, DirectionVerdict, Endpoint, Outcome, PortRange, Protocol, Verdict
from stallscope.model.workload import Role, TrainingJob
from stallscope.policy.istio import DATAPLANE, INJECT, REVISION, Membership, MeshPod, Path, membership, mesh_facts
from stallscope.policy.istio_mtls import ROOT
from stallscope.policy.istio_path import (
    EXCLUDE_IN,
    EXCLUDE_OUT,
    HBONE,
    INCLUDE_IN,
    INTERCEPTION,
    MeshVerdict,
    mesh_path,
)
from stallscope.policy.policyset import PolicySet
from stallscope.policy.program import combine

_SECURITY = ("PeerAuthentication", "AuthorizationPolicy")
_NOTES = frozenset({INJECT, EXCLUDE_IN, EXCLUDE_OUT, INCLUDE_IN, INTERCEPTION})
_MEMBERSHIP = frozenset({INJECT, REVISION, DATAPLANE})
_HBONE_NOTE = f"ztunnel carries it over HBONE, so network policies see TCP {HBONE} instead of its own port"

Stretches = tuple[tuple[PortRange, Verdict], ...]
Key = tuple[object, ...]


class Mesh:
    """The mesh of one cluster. Answers are kept per pair of classes (`key`), so ranks that are alike are asked once."""

    __slots__ = ("_answers", "_facts", "_keys", "_ports", "_security")

    def __init__(self, objects: Iterable[KubeObject], namespaces: Mapping[str, Mapping[str, str]]) -> None:
        istio = [o for o in objects if "istio.io" in o.api_version]
        security = [o for o in istio if o.group == "security.istio.io" and o.kind in _SECURITY]
        self._facts = mesh_facts(istio, namespaces)
        self._security: dict[str, tuple[KubeObject, ...]] = {}
        for item in security:
            self._security[item.namespace] = (*self._security.get(item.namespace, ()), item)
        selected = (as_str_map(o.get("spec", "selector", "matchLabels")) for o in security)
        self._keys = _MEMBERSHIP.union(*selected)
        self._ports = frozenset(port for o in security for port in _ports_of(o))
        self._answers: dict[object, MeshVerdict] = {}

    def key(self, pod: MeshPod) -> Key:
        """Equal for pods that the mesh cannot tell apart."""
        return (
            pod.namespace,
            tuple(sorted(pair for pair in pod.labels.items() if pair[0] in self._keys)),
            tuple(sorted(pair for pair in pod.annotations.items() if pair[0] in _NOTES)),
            pod.service_account if self._security else "",
            pod.host_network,
        )

    def membership(self, pod: MeshPod) -> Membership:
        """Whether and why the pod is in the mesh."""
        return membership(pod, self._facts)

    def over(
        self,
        policies: PolicySet,
        ends: tuple[Endpoint, Endpoint],
        pods: tuple[MeshPod, MeshPod],
        ports: PortRange,
        *,
        by_service: bool,
    ) -> Stretches:
        """
        `PolicySet.evaluate_range` with the mesh in the path: `ports` cut where the policies or the mesh answer differently.
        """
        if ports.protocol is not Protocol.TCP:
            return policies.evaluate_range(*ends, ports)
        tunnelled = all(self.membership(pod).path is Path.AMBIENT for pod in pods)
        if tunnelled:
            base: Stretches = ((ports, policies.evaluate_range(*ends, PortRange(HBONE, HBONE))[0][1]),)
        else:
            base = policies.evaluate_range(*ends, ports)
        cuts = self._ports | _annotated(pods)
        return tuple(
            (piece, self._with_mesh(verdict, pods, piece.first, by_service, tunnelled))
            for stretch, verdict in base
            for piece in _pieces(stretch, cuts)
        )

    def _with_mesh(
        self, verdict: Verdict, pods: tuple[MeshPod, MeshPod], port: int, by_service: bool, tunnelled: bool
    ) -> Verdict:
        if verdict.outcome is Outcome.DENIED:
            if not tunnelled:
                return verdict
            return replace(verdict, mesh=DirectionVerdict(outcome=Outcome.PROXIED, direction=_IN, reason=_HBONE_NOTE))
        answer = self._ask(pods, port, by_service)
        side = _side(answer, tunnelled)
        outcome = combine(verdict.outcome, side.outcome)
        decided = verdict if outcome is verdict.outcome and verdict.reason else None
        reason = decided.reason if decided else side.reason if outcome in (Outcome.UNJUDGED, Outcome.PROXIED) else ""
        return replace(verdict, outcome=outcome, reason=reason, mesh=side)

    def _ask(self, pods: tuple[MeshPod, MeshPod], port: int, by_service: bool) -> MeshVerdict:
        key = (self.key(pods[0]), self.key(pods[1]), port, by_service)
        found = self._answers.get(key)
        if found is None:
            near = (*self._security.get(pods[1].namespace, ()), *self._security.get(ROOT, ()))
            objects = tuple(dict.fromkeys(near))
            found = self._answers[key] = mesh_path(objects, self._facts, *pods, port, by_service=by_service)
        return found


_IN = Direction.INGRESS


def mesh_pod(end: Endpoint, annotations: Mapping[str, str]) -> MeshPod:
    """An end of a flow as the injector and the proxies see it. What is no pod (the API server) is in no mesh."""
    return MeshPod(
        namespace=end.namespace,
        labels=dict(end.labels),
        annotations=annotations,
        service_account=end.service_account,
        host_network=end.host_network or not end.is_pod,
    )


def role_pod(job: TrainingJob, role: Role) -> MeshPod:
    """The pods of a role, before they exist."""
    first = job.pods_of(role.name)[:1]
    account = role.template.spec.get("serviceAccountName")
    return MeshPod(
        namespace=job.namespace,
        labels=first[0].labels if first else {**role.template.labels, **role.added_labels},
        annotations=role.template.annotations,
        service_account=account if isinstance(account, str) and account else "default",
        host_network=role.template.spec.get("hostNetwork") is True,
    )


def _side(answer: MeshVerdict, tunnelled: bool) -> DirectionVerdict:
    """The mesh's answer as one more part of a verdict, with why each end is in the mesh."""
    ends = (answer.source, answer.destination)
    carried = answer.outcome is Outcome.PROXIED
    why = dict.fromkeys(end.because for end in ends if end.path is not Path.PLAIN or not carried)
    reason = answer.reason
    if answer.outcome is not Outcome.UNJUDGED:
        reason = f"{reason} ({'; '.join(why)})"
    if tunnelled and carried:
        reason = f"{_HBONE_NOTE} ({'; '.join(why)})"
    default = answer.by_default
    return DirectionVerdict(
        outcome=answer.outcome,
        direction=_IN,
        rules=() if default else answer.rules,
        isolating=answer.rules if default else (),
        reason=reason,
    )


def _annotated(pods: Sequence[MeshPod]) -> frozenset[int]:
    """Ports that annotations name; they are redirected otherwise than their neighbours."""
    texts = (pod.annotations.get(key, "") for pod in pods for key in (EXCLUDE_IN, EXCLUDE_OUT, INCLUDE_IN))
    return frozenset(int(part) for text in texts for part in text.replace(" ", "").split(",") if _is_port(part))


def _ports_of(item: KubeObject) -> Iterator[int]:
    """Ports a security object names: ``portLevelMtls``, ``operation.ports``, ``destination.port`` conditions."""
    named: list[Any] = list(as_map(item.get("spec", "portLevelMtls")))
    for rule in as_list(item.get("spec", "rules")):
        for to in as_list(as_map(rule).get("to")):
            operation = as_map(as_map(to).get("operation"))
            named += [*as_list(operation.get("ports")), *as_list(operation.get("notPorts"))]
        for when in as_list(as_map(rule).get("when")):
            condition = as_map(when)
            if condition.get("key") == "destination.port":
                named += [*as_list(condition.get("values")), *as_list(condition.get("notValues"))]
    yield from (int(text) for text in map(str, named) if _is_port(text))


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 5


def _pieces(stretch: PortRange, cuts: Iterable[int]) -> Iterator[PortRange]:
    """`stretch` with every port of `cuts` inside it on its own."""
    first = stretch.first
    for port in sorted(p for p in cuts if stretch.first <= p <= stretch.last):
        if port > first:
            yield PortRange(first, port - 1, stretch.protocol)
        yield PortRange(port, port, stretch.protocol)
        first = port + 1
    if first <= stretch.last:
        yield PortRange(first, stretch.last, stretch.protocol)
