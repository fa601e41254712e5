"""
The smallest policy that lets a job's own pods talk (reference: policy.md §0.4, §1, §2): its own pods among themselves on
every TCP port, both ways, and what else was denied of DNS, API server and metrics. Never wider than the job.

Selecting a pod with a policy isolates it. A CiliumNetworkPolicy can say that it does not (``enableDefaultDeny: false``,
Cilium 1.16 on), so it may select the whole job; any other policy selects only roles that are isolated in that direction
already.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stallscope.errors import PatchRefused
from stallscope.model.traffic import Direction, Outside, PortRange
from stallscope.model.workload import TrainingJob
from stallscope.remedy.denials import Refusal
from stallscope.remedy.groups import Group, part_of
from stallscope.remedy.roles import present

#: Cilium: policies that do not isolate, and port ranges (pkg/policy/api/rule.go EnableDefaultDeny; l4.go EndPort).
ADDITIVE_SINCE = (1, 16)
_NAMESPACE = "k8s:io.kubernetes.pod.namespace"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """`cilium`: write CiliumNetworkPolicy; `additive`: it can be told not to isolate."""

    cilium: bool
    additive: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Outsider:
    """An end that is no pod of the job, as selectors see it."""

    namespace: str
    labels: Mapping[str, str]


def allow_policies(
    job: TrainingJob,
    group: Group,
    refused: Sequence[Refusal],
    dialect: Dialect,
    outsiders: Mapping[str, Outsider],
    name: str,
) -> tuple[Mapping[str, Any], ...]:
    """The policies, usually one. Raises PatchRefused when no selector can say it."""
    ways = {d: [r for r in refused if r.direction is d] for d in (Direction.INGRESS, Direction.EGRESS)}
    ways = {d: found for d, found in ways.items() if found}
    roles = {d: sorted({r.role for r in found}) for d, found in ways.items()}
    whole = sorted(r.name for r in present(job))
    rules = {d: _rules(d, found, group, dialect, outsiders) for d, found in ways.items()}
    if dialect.additive or len({tuple(r) for r in roles.values()}) == 1:
        chosen = whole if dialect.additive else next(iter(roles.values()))
        return (_policy(job, group, chosen, rules, dialect, name),)
    return tuple(_policy(job, group, roles[d], {d: rules[d]}, dialect, f"{name}-{d.value}") for d in ways)


def _policy(
    job: TrainingJob,
    group: Group,
    roles: Sequence[str],
    rules: Mapping[Direction, list[Any]],
    dialect: Dialect,
    name: str,
) -> Mapping[str, Any]:
    selector = _subject(job, group, roles)
    metadata = {"name": name, "namespace": job.namespace}
    if dialect.cilium:
        spec: dict[str, Any] = {"endpointSelector": selector}
        if dialect.additive:
            spec["enableDefaultDeny"] = {"ingress": False, "egress": False}
        api, kind = "cilium.io/v2", "CiliumNetworkPolicy"
    else:
        spec = {"podSelector": selector, "policyTypes": [d.value.capitalize() for d in rules]}
        api, kind = "networking.k8s.io/v1", "NetworkPolicy"
    return {
        "apiVersion": api,
        "kind": kind,
        "metadata": metadata,
        "spec": {**spec, **{d.value: r for d, r in rules.items()}},
    }


def _subject(job: TrainingJob, group: Group, roles: Sequence[str]) -> dict[str, Any]:
    chosen = [r for r in present(job) if r.name in roles]
    if len(chosen) == len(present(job)):
        return {"matchLabels": dict(group.labels)}
    selector, needed = part_of(job, group, chosen)
    if needed.added != group.added:
        raise PatchRefused(f"no label tells {', '.join(roles)} from the other pods of the job")
    return dict(selector)


def _rules(
    direction: Direction, refused: Sequence[Refusal], group: Group, dialect: Dialect, outsiders: Mapping[str, Outsider]
) -> list[Any]:
    rules: list[Any] = []
    if any(r.among_ranks for r in refused):
        own = {"matchLabels": dict(group.labels)}
        rules.append(
            _cilium_rule(direction, own, _every_tcp(dialect))
            if dialect.cilium
            else _rule(direction, {"podSelector": own}, [{"protocol": "TCP"}])
        )
    for peer in sorted({r.peer for r in refused if not r.among_ranks}):
        ports = sorted({r.flow.port for r in refused if r.peer == peer})
        rules.append(_outside_rule(direction, peer, ports, dialect, outsiders))
    return rules


def _every_tcp(dialect: Dialect) -> list[dict[str, Any]]:
    """All TCP ports: NCCL and Gloo choose theirs at run time. Port 0 is Cilium's older way to say it."""
    return [{"port": "1", "endPort": 65535, "protocol": "TCP"}] if dialect.additive else [{"port": "0", "protocol": "TCP"}]


def _outside_rule(
    direction: Direction, peer: str, ports: Sequence[PortRange], dialect: Dialect, outsiders: Mapping[str, Outsider]
) -> dict[str, Any]:
    if peer == Outside.API_SERVER:
        if not dialect.cilium:
            raise PatchRefused("a NetworkPolicy can admit the API server only by address, which the manifests do not hold")
        entity = {"toEntities": ["kube-apiserver"]}
        numbers = sorted({p.first for p in ports} | {443, 6443})
        return {**entity, "toPorts": [{"ports": [{"port": str(n), "protocol": "TCP"} for n in numbers]}]}
    known = outsiders.get(peer)
    if known is None or not known.labels:
        raise PatchRefused(f"the labels of {peer} are not known")
    if dialect.cilium:
        selector: dict[str, Any] = {"matchLabels": {_NAMESPACE: known.namespace, **known.labels}}
        return _cilium_rule(direction, selector, [{"port": str(p.first), "protocol": str(p.protocol)} for p in ports])
    selector = {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": known.namespace}},
        "podSelector": {"matchLabels": dict(known.labels)},
    }
    return _rule(direction, selector, [{"protocol": str(p.protocol), "port": p.first} for p in ports])


def _cilium_rule(direction: Direction, selector: Mapping[str, Any], ports: list[dict[str, Any]]) -> dict[str, Any]:
    peers = "fromEndpoints" if direction is Direction.INGRESS else "toEndpoints"
    return {peers: [selector], "toPorts": [{"ports": ports}]}


def _rule(direction: Direction, peer: Mapping[str, Any], ports: list[dict[str, Any]]) -> dict[str, Any]:
    return {"from" if direction is Direction.INGRESS else "to": [peer], "ports": ports}
