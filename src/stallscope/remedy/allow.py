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
from stallscope.remedy.groups import Group
from stallscope.remedy.roles import own_labels, present, telling_label

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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """Roles that one selector finds: those with the job's own labels, or a role that does not carry them."""

    name: str
    roles: tuple[str, ...]
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
    parts = _parts(job, group, name)
    return tuple(
        policy
        for part in parts
        if any(r.role in part.roles for r in refused)
        for policy in _for_part(job, part, parts, [r for r in refused if r.role in part.roles], dialect, outsiders)
    )


def _parts(job: TrainingJob, group: Group, name: str) -> list[_Part]:
    covered = tuple(r.name for r in present(job) if group.covers(job, r))
    found = [_Part(name=name, roles=covered, labels=group.labels)] if covered else []
    for role in present(job):
        if role.name not in covered:
            found.append(_Part(name=f"{name}-{role.name}", roles=(role.name,), labels=own_labels(job, role)))
    return found


def _for_part(
    job: TrainingJob,
    part: _Part,
    parts: Sequence[_Part],
    refused: Sequence[Refusal],
    dialect: Dialect,
    outsiders: Mapping[str, Outsider],
) -> list[Mapping[str, Any]]:
    ways = {d: [r for r in refused if r.direction is d] for d in (Direction.INGRESS, Direction.EGRESS)}
    ways = {d: found for d, found in ways.items() if found}
    roles = {d: tuple(sorted({r.role for r in found})) for d, found in ways.items()}
    rules = {d: _rules(d, found, parts, dialect, outsiders) for d, found in ways.items()}
    if dialect.additive:
        return [_policy(job, part, part.roles, rules, dialect, part.name)]
    if len(set(roles.values())) == 1:
        return [_policy(job, part, next(iter(roles.values())), rules, dialect, part.name)]
    return [_policy(job, part, roles[d], {d: rules[d]}, dialect, f"{part.name}-{d.value}") for d in ways]


def _policy(
    job: TrainingJob,
    part: _Part,
    roles: Sequence[str],
    rules: Mapping[Direction, list[Any]],
    dialect: Dialect,
    name: str,
) -> Mapping[str, Any]:
    selector = _subject(job, part, roles)
    metadata = {"name": name, "namespace": job.namespace}
    if dialect.cilium:
        spec: dict[str, Any] = {"endpointSelector": selector}
        if dialect.additive:
            spec["enableDefaultDeny"] = {"ingress": False, "egress": False}
        api, kind = "cilium.io/v2", "CiliumNetworkPolicy"
    else:
        spec = {"podSelector": selector, "policyTypes": [d.value.capitalize() for d in rules]}
        api, kind = "networking.k8s.io/v1", "NetworkPolicy"
    whole = {**spec, **{d.value: r for d, r in rules.items()}}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, "spec": whole}


def _subject(job: TrainingJob, part: _Part, roles: Sequence[str]) -> dict[str, Any]:
    """The part as a whole, or the roles of it that are isolated already."""
    if set(roles) == set(part.roles):
        return {"matchLabels": dict(part.labels)}
    told = telling_label(job, [r for r in present(job) if r.name in roles])
    if told is None:
        raise PatchRefused(f"no label tells {', '.join(roles)} from the other pods of the job")
    key, values = told
    if len(values) == 1:
        return {"matchLabels": {**part.labels, key: values[0]}}
    few = {"key": key, "operator": "In", "values": list(values)}
    return {"matchLabels": dict(part.labels), "matchExpressions": [few]}


def _rules(
    direction: Direction,
    refused: Sequence[Refusal],
    parts: Sequence[_Part],
    dialect: Dialect,
    outsiders: Mapping[str, Outsider],
) -> list[Any]:
    rules: list[Any] = []
    others = {r.peer for r in refused if r.among_ranks}
    own = [{"matchLabels": dict(p.labels)} for p in parts if others & set(p.roles)]
    if own and dialect.cilium:
        rules.append(_cilium_rule(direction, own, _every_tcp(dialect)))
    elif own:
        rules.append(_rule(direction, [{"podSelector": selector} for selector in own], [{"protocol": "TCP"}]))
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
        return _cilium_rule(direction, [selector], [{"port": str(p.first), "protocol": str(p.protocol)} for p in ports])
    selector = {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": known.namespace}},
        "podSelector": {"matchLabels": dict(known.labels)},
    }
    return _rule(direction, [selector], [{"protocol": str(p.protocol), "port": p.first} for p in ports])


def _cilium_rule(direction: Direction, selectors: list[dict[str, Any]], ports: list[dict[str, Any]]) -> dict[str, Any]:
    peers = "fromEndpoints" if direction is Direction.INGRESS else "toEndpoints"
    return {peers: selectors, "toPorts": [{"ports": ports}]}


def _rule(direction: Direction, peers: list[dict[str, Any]], ports: list[dict[str, Any]]) -> dict[str, Any]:
    return {"from" if direction is Direction.INGRESS else "to": peers, "ports": ports}
