"""
Calico's enforcement around the rules: workload endpoints are pods that do not use the host network; addresses of pods count.
Without any policy a pod's profile (``kns.NAMESPACE``) allows everything. The node always reaches its own pods.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stallscope.model.traffic import Direction, DirectionVerdict, Endpoint, Outcome
from stallscope.policy.calico_peers import NAMESPACE_LABEL, NAMESPACE_NAME
from stallscope.policy.generic import make_view as generic_view
from stallscope.policy.generic import resolve
from stallscope.policy.namespaces import Namespaces
from stallscope.policy.netpol import NetpolReading, plain_subject, pods_and_addresses
from stallscope.policy.peers import PodPeer
from stallscope.policy.program import Engine
from stallscope.policy.view import View


def calico_engine(namespaces: Namespaces) -> Engine:
    """The engine of a Calico cluster."""

    def view(endpoint: Endpoint) -> View:
        plain = generic_view(endpoint, namespaces)
        if not endpoint.namespace:
            return plain
        added = {
            NAMESPACE_LABEL: endpoint.namespace,
            "projectcalico.org/orchestrator": "k8s",
            "projectcalico.org/serviceaccount": endpoint.service_account,
        }
        labels = {**plain.labels, **added}
        return View(
            endpoint=endpoint,
            labels=labels,
            bare=labels,
            namespace_labels={**plain.namespace_labels, NAMESPACE_NAME: endpoint.namespace},
            namespace_known=plain.namespace_known,
            reserved=plain.reserved,
            address=plain.address,
        )

    def exempt(direction: Direction, subject: View, peer: View) -> DirectionVerdict | None:
        if not subject.is_pod or subject.endpoint.host_network:
            reason = (
                "host network: Calico's pod policy does not apply to this end"
                if subject.is_pod
                else "not a workload endpoint"
            )
            return DirectionVerdict(outcome=Outcome.ALLOWED, direction=direction, enforced=False, reason=reason)
        if direction is Direction.INGRESS and "host" in peer.reserved:
            return DirectionVerdict(
                outcome=Outcome.ALLOWED, direction=direction, reason="a pod's own node can always reach it"
            )
        return None

    return Engine(
        view=view, exempt=exempt, after=lambda _case, verdict, _port: verdict, resolve=resolve, pods_by_address=True
    )


def calico_netpol(tier: int, order: float, name: str) -> NetpolReading:
    """NetworkPolicy v1 inside a Calico tier; host-network pods are not workload endpoints."""

    def peer(item: Mapping[str, Any], namespace: str) -> Any:
        found = pods_and_addresses(item, namespace)
        if isinstance(found, PodPeer):
            return PodPeer(found.pods, found.namespaces, found.namespace, host_network=False)
        return found

    return NetpolReading(peer, plain_subject, tier=tier, order=(order, name, "", 0.0))
