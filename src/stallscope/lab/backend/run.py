"""A rehearsal on a cluster: the job's pods as probes, every pair connected under the CNI that is really there."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from time import sleep

from stallscope.collective.rehearsal import EdgeResult, PlacementResult, PodPlacement
from stallscope.errors import ClusterError
from stallscope.lab.backend.kubectl import Kubectl, create
from stallscope.lab.backend.manifests import HOSTNAME, IMAGE, NODE_LABEL, RUN_LABEL, namespace, probe_name, probe_pod
from stallscope.lab.backend.preflight import connects, enforces_policy, pod_ips, wait_ready
from stallscope.lab.cast import Cast
from stallscope.lab.firewall import Segments
from stallscope.lab.matrix import agrees, probe_ports, reason
from stallscope.lab.reach import Reached
from stallscope.model.kube import KubeObject
from stallscope.model.traffic import PortRange
from stallscope.model.workload import TrainingJob

Say = Callable[[str], None]
SETTLE_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterRequest:
    """
    What to probe. `policies` are applied for the run (backend kind) and deleted with it; empty on a cluster whose own
    policies are in force (backend current).
    """

    job: TrainingJob
    cast: Cast
    segments: Segments
    policies: tuple[KubeObject, ...] = ()
    image: str = IMAGE
    by_label: bool = False
    settle: Callable[[], None] = lambda: sleep(SETTLE_SECONDS)


def rehearse_on_cluster(request: ClusterRequest, kubectl: Kubectl, say: Say, run_id: str = "") -> PlacementResult:
    """
    Measure the reachability of the request's pods. Step times are not measured: a cluster without the job's GPUs has none.

    Raises ClusterError when the CNI enforces nothing, the job is already there, or the cluster does not answer.
    """
    run_id = run_id or secrets.token_hex(4)
    refuse_if_running(request.job, kubectl)
    say("does this cluster enforce NetworkPolicy?")
    enforces_policy(kubectl, run_id, request.image)
    say("[ok] a probe pair was separated by a policy")
    ports = probe_ports(request.cast, request.segments)
    with _probes(request, kubectl, run_id, ports):
        edges = tuple(_edges(request, kubectl, run_id, ports, say))
    zones = request.cast.spec.zones
    return PlacementResult(
        label="cluster",
        placement=tuple(
            PodPlacement(pod=p.name, node=p.node, zone=zones[p.node], rank=p.rank) for p in request.cast.spec.pods
        ),
        edges=edges,
        not_run="a cluster backend measures who connects; step times come from the pocket cluster",
    )


def refuse_if_running(job: TrainingJob, kubectl: Kubectl) -> None:
    """Probes carry the job's labels: beside the job itself, its controller would adopt them. Raises ClusterError."""
    plural = f"{job.source.kind.lower()}.{job.source.group}" if job.source.group else job.source.kind.lower()
    answer = kubectl(["get", plural, job.source.name, "-n", job.namespace, "--ignore-not-found", "-o", "name"])
    if answer.code == 0 and answer.out.strip():
        raise ClusterError(
            f"{job.ref} is in this cluster: its controller could take our probe pods for its own",
            hint="rehearse before the job is created, or on another cluster",
        )


@contextmanager
def _probes(request: ClusterRequest, kubectl: Kubectl, run_id: str, ports: tuple[int, ...]) -> Iterator[None]:
    """The probe pods and policies of a run; deleted by label at the end, whatever the end is."""
    cast = request.cast
    spaces = sorted({e.namespace for e in cast.endpoints.values()} | {p.namespace for p in request.policies if p.namespace})
    made = [s for s in spaces if kubectl(["get", "namespace", s, "-o", "name"]).code]
    try:
        if made:
            create(kubectl, [namespace(run_id, s) for s in made])
        if request.policies:
            create(kubectl, [_labelled(p, run_id) for p in request.policies])
        key = NODE_LABEL if request.by_label else HOSTNAME
        nodes = {p.name: p.node for p in cast.spec.pods}
        create(
            kubectl,
            [
                probe_pod(run_id, endpoint, {key: nodes[pod]}, ports, request.image)
                for pod, endpoint in cast.endpoints.items()
            ],
        )
        for space in sorted({e.namespace for e in cast.endpoints.values()}):
            wait_ready(kubectl, space, f"{RUN_LABEL}={run_id}")
        yield
    finally:
        _remove(request, kubectl, run_id, spaces, made)


def _labelled(policy: KubeObject, run_id: str) -> Mapping[str, object]:
    """The policy as written, with the run's label so that it can be removed again."""
    metadata = {"name": policy.name, "labels": {**policy.labels, RUN_LABEL: run_id}}
    if policy.namespace:
        metadata["namespace"] = policy.namespace
    body = {k: v for k, v in policy.body.items() if k != "status"}
    return {**body, "metadata": metadata}


def _remove(request: ClusterRequest, kubectl: Kubectl, run_id: str, spaces: list[str], made: list[str]) -> None:
    selector = f"{RUN_LABEL}={run_id}"
    for space in spaces:
        kubectl(["delete", "pods", "-n", space, "-l", selector, "--ignore-not-found", "--wait=false"])
    for policy in request.policies:
        where = ["-n", policy.namespace] if policy.namespace else []
        kind = f"{policy.kind.lower()}.{policy.group}" if policy.group else policy.kind.lower()
        kubectl(["delete", kind, *where, "-l", selector, "--ignore-not-found", "--wait=false"])
    for space in made:
        kubectl(["delete", "namespace", space, "--ignore-not-found", "--wait=false"])


def _edges(request: ClusterRequest, kubectl: Kubectl, run_id: str, ports: tuple[int, ...], say: Say) -> Iterator[EdgeResult]:
    cast = request.cast
    ips: dict[str, str] = {}
    for space in sorted({e.namespace for e in cast.endpoints.values()}):
        ips |= pod_ips(kubectl, space, f"{RUN_LABEL}={run_id}")
    address = {pod: ips.get(probe_name(run_id, end.name), "") for pod, end in cast.endpoints.items()}
    missing = [pod for pod, ip in address.items() if not ip]
    if missing:
        raise ClusterError(f"the probe of {missing[0]} has no address")
    for source in cast.endpoints:
        edges = _from(request, kubectl, run_id, source, address, ports)
        if any(e.agrees is False for e in edges):
            request.settle()  # an agent may need a moment to see new pods and policies
            edges = _from(request, kubectl, run_id, source, address, ports)
        say(f"{source}: {len(edges)} connects, {sum(e.measured != 'open' for e in edges)} blocked")
        yield from edges


def _from(
    request: ClusterRequest,
    kubectl: Kubectl,
    run_id: str,
    source: str,
    address: Mapping[str, str],
    ports: tuple[int, ...],
) -> list[EdgeResult]:
    """Everything one pod connects to."""
    cast = request.cast
    zones = {p.name: cast.spec.zones[p.node] for p in cast.spec.pods}
    end = cast.endpoints[source]
    others = [(pod, port) for pod in cast.endpoints if pod != source for port in ports]
    targets = [(address[pod], port) for pod, port in others]
    found = connects(kubectl, end.namespace, probe_name(run_id, end.name), targets)
    edges = []
    for pod, port in others:
        reached = Reached.OPEN if found[address[pod], port] else Reached.SILENT
        verdict = request.segments(end, cast.endpoints[pod], PortRange(port, port))[0][1]
        edges.append(
            EdgeResult(
                source=source,
                destination=pod,
                port=port,
                zones=(zones[source], zones[pod]),
                judged=verdict.outcome,
                measured=reached.value,
                agrees=agrees(verdict.outcome, reached),
                reason=reason(verdict, end, cast.endpoints[pod]),
            )
        )
    return edges
