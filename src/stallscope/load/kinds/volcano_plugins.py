"""
What Volcano's job plugins add (volcano v1.15 pkg/controllers/job/plugins): svc (Service and NetworkPolicy), and the
framework plugins pytorch, tensorflow, mpi and ray with their ports and role names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stallscope.load.kinds.flows import all_pairs, any_port, collective, is_ranked, service, to_rendezvous
from stallscope.load.kinds.mpi_common import both_ways
from stallscope.load.kinds.plan import RolePlan
from stallscope.load.kinds.ray import CLIENT_PORT, DASHBOARD_PORT, GCS_PORT
from stallscope.model.kube import KubeObject
from stallscope.model.source import as_list, as_map
from stallscope.model.traffic import Flow, FlowKind
from stallscope.model.workload import ExtraObject, JobService, Rendezvous, Role, RoleKind

JOB_NAME = "volcano.sh/job-name"
_JOB_NAMESPACE = "volcano.sh/job-namespace"

#: Plugin -> the roles its arguments name, with the default task name of each and what the role does.
ROLES: Mapping[str, tuple[tuple[str, str, RoleKind], ...]] = {
    "pytorch": (("master", "master", RoleKind.COORDINATOR), ("worker", "worker", RoleKind.WORKER)),
    "mpi": (("master", "master", RoleKind.LAUNCHER), ("worker", "worker", RoleKind.WORKER)),
    "ray": (("head", "head", RoleKind.COORDINATOR), ("worker", "worker", RoleKind.WORKER)),
    "tensorflow": (
        ("chief", "chief", RoleKind.COORDINATOR),
        ("worker", "worker", RoleKind.WORKER),
        ("ps", "ps", RoleKind.SERVER),
        ("evaluator", "evaluator", RoleKind.OTHER),
    ),
}
_PORTS = {"pytorch": 23456, "tensorflow": 2222, "mpi": 22, "ray": GCS_PORT}


def plugins_of(obj: KubeObject) -> dict[str, dict[str, str]]:
    """
    Plugin -> its flags. The framework plugins bring svc along, mpi also ssh (mutate_job.go patchDefaultPlugins).
    """
    written = as_map(obj.get("spec", "plugins"))
    found = {str(name): _flags(as_list(args)) for name, args in written.items()}
    if any(name in ROLES for name in found):
        found.setdefault("svc", {})
    return found


def _flags(args: Sequence[Any]) -> dict[str, str]:
    """Go flags: ``--port=1``, ``-port 1``, ``--disable-network-policy``."""
    flags: dict[str, str] = {}
    waiting = ""
    for word in (str(a) for a in args):
        if word.startswith("-"):
            name, sign, value = word.lstrip("-").partition("=")
            flags[name] = value if sign else "true"
            waiting = "" if sign else name
        elif waiting:
            flags[waiting] = word
            waiting = ""
    return flags


def framework_of(plugins: Mapping[str, Mapping[str, str]]) -> str:
    """The framework plugin of a job; empty when it has none."""
    return next((name for name in ROLES if name in plugins), "")


def role_kinds(plugins: Mapping[str, Mapping[str, str]]) -> dict[str, RoleKind]:
    """Task name -> what it does, as the framework plugin's arguments say."""
    name = framework_of(plugins)
    flags = plugins.get(name, {})
    return {flags.get(flag) or default: kind for flag, default, kind in ROLES.get(name, ())}


def port_of(plugins: Mapping[str, Mapping[str, str]]) -> int:
    """The framework plugin's port."""
    name = framework_of(plugins)
    said = plugins.get(name, {}).get("port", "")
    return int(said) if said.isdecimal() and 0 < int(said) < 65536 else _PORTS.get(name, 0)


def rendezvous_of(plugins: Mapping[str, Mapping[str, str]], plans: Sequence[RolePlan]) -> Rendezvous | None:
    """Where the framework plugin tells ranks to meet: task 0 of the master, chief or head."""
    name = framework_of(plugins)
    leader = next((p for p in plans if p.role.kind is RoleKind.COORDINATOR), None)
    leader = leader or next((p for p in plans if is_ranked(p.role)), None)
    if name in ("", "mpi") or leader is None:
        return None
    identity = leader.identify(0)
    return Rendezvous(
        address=next(iter(identity.host_names), identity.name),
        port=port_of(plugins),
        role=leader.role.name,
        backend={"tensorflow": "grpc", "ray": "gcs"}.get(name, ""),
        location=leader.role.template.at("spec", "containers"),
    )


def flows_of(
    plugins: Mapping[str, Mapping[str, str]], roles: Sequence[Role], rendezvous: Rendezvous | None
) -> tuple[Flow, ...]:
    """What the framework plugin's pods say to each other."""
    number = port_of(plugins)
    match framework_of(plugins):
        case "tensorflow":
            tasks = [r for r in roles if r.kind is not RoleKind.OTHER]
            return all_pairs(tasks, number, "TensorFlow tasks speak gRPC to each other (TF_CONFIG)")
        case "mpi":
            launchers = [r for r in roles if r.kind is RoleKind.LAUNCHER]
            workers = [r for r in roles if is_ranked(r)]
            why = f"mpirun starts its daemons over ssh (port {number})"
            pairs = [(a, b) for a in launchers for b in workers]
            ssh = [service(a.name, b.name, number, why, kind=FlowKind.LAUNCHER) for a, b in pairs]
            return (*ssh, *(f for a, b in pairs for f in both_ways(a, b)), *collective(roles))
        case "ray":
            head = next((r for r in roles if r.kind is RoleKind.COORDINATOR), None)
            why = "Ray nodes connect to each other on ports chosen at run time"
            mesh = [
                any_port(a.name, b.name, why, FlowKind.SERVICE) for a in roles for b in roles if a is not b or a.replicas > 1
            ]
            if head is None:
                return tuple(mesh)
            joins = [service(r.name, head.name, number, "workers join at the GCS") for r in roles if r is not head]
            return (*joins, *mesh)
    return (*to_rendezvous(roles, rendezvous), *collective(roles))


def services_of(obj: KubeObject, plugins: Mapping[str, Mapping[str, str]]) -> tuple[JobService, ...]:
    """The headless Service of svc; the head Service of ray."""
    found: list[JobService] = []
    if "svc" in plugins:
        early = plugins["svc"].get("publish-not-ready-addresses", "false").lower() == "true"
        found.append(JobService(name=obj.name, namespace=obj.namespace, selector=_own(obj), publish_not_ready=early))
    if "ray" in plugins:
        task = plugins["ray"].get("head") or "head"
        selector = {**_own(obj), "volcano.sh/task-spec": task}
        ports = (port_of(plugins), DASHBOARD_PORT, CLIENT_PORT)
        found.append(
            JobService(name=f"{obj.name}-head-svc", namespace=obj.namespace, selector=selector, headless=False, ports=ports)
        )
    return tuple(found)


def network_policy(obj: KubeObject, plugins: Mapping[str, Mapping[str, str]]) -> tuple[ExtraObject, ...]:
    """
    The policy svc creates unless ``--disable-network-policy``: only pods of the same job may reach the job's pods, so a
    scrape from Prometheus is denied (svc.go createNetworkPolicyIfNotExist).
    """
    if "svc" not in plugins or plugins["svc"].get("disable-network-policy", "false").lower() in ("true", "t", "1"):
        return ()
    own = {"matchLabels": _own(obj)}
    body = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": obj.name, "namespace": obj.namespace},
        "spec": {"podSelector": own, "ingress": [{"from": [{"podSelector": own}]}], "policyTypes": ["Ingress"]},
    }
    return (ExtraObject(body=body, because="Volcano's svc plugin creates it"),)


def _own(obj: KubeObject) -> dict[str, str]:
    return {JOB_NAME: obj.name, _JOB_NAMESPACE: obj.namespace}
