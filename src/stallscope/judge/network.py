"""What lies between two ends of a flow: the policies, and a service mesh over them where there is one."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stallscope.model.kube import KubeObject
from stallscope.model.traffic import Endpoint, Flow, Outside, PortRange, Verdict
from stallscope.model.workload import JobService, TrainingJob
from stallscope.policy.engine import PolicySet

if TYPE_CHECKING:
    from stallscope.judge.mesh import Mesh

#: Labels that ask for Istio. Written again here so that a cluster without it never loads that part of the program.
_NAMESPACE_ASKS = frozenset({"istio-injection", "istio.io/rev", "istio.io/dataplane-mode"})
_POD_ASKS = frozenset({"sidecar.istio.io/inject", "istio.io/rev", "istio.io/dataplane-mode"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """
    One end of flows: a pod of the job (`role`, `index`) or something outside it (`role` = the `Outside` value).
    `annotations` are those of its pod template.
    """

    role: str
    index: int
    endpoint: Endpoint
    annotations: Mapping[str, str] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """`services` are those by whose name the job's pods are called: a sidecar can use mTLS to their declared ports."""

    policies: PolicySet
    mesh: Mesh | None = None
    services: Sequence[JobService] = ()

    def key(self, member: Member) -> Hashable:
        """Equal for ends that neither a policy nor the mesh can tell apart."""
        key = self.policies.endpoint_key(member.endpoint)
        if self.mesh is None:
            return key
        from stallscope.judge.mesh import mesh_pod

        return (key, self.mesh.key(mesh_pod(member.endpoint, member.annotations)))

    def stretches(
        self, flow: Flow, source: Member, destination: Member, ports: PortRange
    ) -> Sequence[tuple[PortRange, Verdict]]:
        """`ports` in stretches that share a verdict."""
        ends = (source.endpoint, destination.endpoint)
        if self.mesh is None or not destination.endpoint.is_pod or destination.role == Outside.CLUSTER_DNS:
            return self.policies.evaluate_range(*ends, ports)
        from stallscope.judge.mesh import mesh_pod

        pods = (mesh_pod(source.endpoint, source.annotations), mesh_pod(destination.endpoint, destination.annotations))
        if source.role in set(Outside) and self.mesh.membership(pods[1]).path == "plain":
            return self.policies.evaluate_range(*ends, ports)  # what carries it at the far end does not keep it away
        return self.mesh.over(self.policies, ends, pods, ports, by_service=self._by_service(flow, destination, ports))

    def _by_service(self, flow: Flow, destination: Member, ports: PortRange) -> bool:
        """Whether clients use the name and a declared port of a Service, not the pod's address."""
        if flow.any_port or ports.first != ports.last:
            return False
        if destination.role == Outside.SERVICE:
            return True
        labels = dict(destination.endpoint.labels).items()
        return any(
            s.selector
            and s.namespace == destination.endpoint.namespace
            and s.selector.items() <= labels
            and ports.first in s.ports
            for s in self.services
        )


def find_mesh(
    objects: Sequence[KubeObject], namespaces: Mapping[str, Mapping[str, str]], jobs: Iterable[TrainingJob]
) -> Mesh | None:
    """The mesh, if anything in the input asks for one."""
    if not _asked(objects, namespaces, jobs):
        return None
    from stallscope.judge.mesh import Mesh

    return Mesh(objects, namespaces)


def _asked(objects: Sequence[KubeObject], namespaces: Mapping[str, Mapping[str, str]], jobs: Iterable[TrainingJob]) -> bool:
    return (
        any(not _NAMESPACE_ASKS.isdisjoint(labels) for labels in namespaces.values())
        or any(not _POD_ASKS.isdisjoint(role.template.labels) for job in jobs for role in job.roles)
        or any("istio.io/" in o.api_version for o in objects)
    )
