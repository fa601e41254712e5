"""
A deny rule in the job's way. In Cilium no allow overrides it (policy.md §1.5, up to 1.19), so the policy itself has to
change, and it must not change for anybody else.

The policy stops selecting the job's pods (``NotIn`` on the job's label), and a copy of it for the job's pods denies all it
denied but the job's own pods. Adding ``NotIn`` to the deny rule alone would be shorter and wider: the job's pods could then
reach every pod the policy protects.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stallscope.errors import PatchRefused
from stallscope.model.kube import KubeObject
from stallscope.model.source import as_list, as_map, dig
from stallscope.model.traffic import RuleRef
from stallscope.model.workload import TrainingJob
from stallscope.policy.cilium import specs_of
from stallscope.remedy.groups import Group
from stallscope.remedy.templates import plain
from stallscope.remedy.workbench import Bench

_PEERS = {"ingressDeny": "fromEndpoints", "egressDeny": "toEndpoints"}


def exempt(bench: Bench, job: TrainingJob, group: Group, policy: KubeObject, rules: Sequence[RuleRef]) -> None:
    """Record the change on `bench`. Raises PatchRefused with the reason where it cannot be done exactly."""
    label = _check(job, group, policy)
    for number in sorted({r.spec for r in rules}):
        route = next((r for n, r, _ in specs_of(policy) if n == number), None)
        if route is None:
            raise PatchRefused(f"{policy.ref} has no rule set {number}")
        copy = plain(bench.get(policy, *route))
        sections = {r.section for r in rules if r.spec == number}
        _narrow(copy, label, sections, policy)
        selector = as_map(copy.get("endpointSelector"))
        copy["endpointSelector"] = {**selector, "matchLabels": {**as_map(selector.get("matchLabels")), **dict([label])}}
        bench.append(policy, (*route, "endpointSelector", "matchExpressions"), _not_in(label))
        bench.add_document(policy.file, _copy_of(policy, job, copy, number), _comment(policy, job))


def _check(job: TrainingJob, group: Group, policy: KubeObject) -> tuple[str, str]:
    if policy.kind != "CiliumNetworkPolicy" or policy.namespace != job.namespace:
        raise PatchRefused(
            f"{policy.ref} denies it, and no allow overrides a deny there; its owner has to narrow it (a change for "
            "this job alone cannot be written into it)"
        )
    if len(group.labels) != 1 or group.added:
        raise PatchRefused(f"{policy.ref} denies it, and no single label tells the pods of {job.ref} from all others")
    label = next(iter(group.labels.items()))
    if any(
        as_map(dig(spec, "endpointSelector", "matchLabels")).get(label[0]) == label[1] for _, _, spec in specs_of(policy)
    ):
        raise PatchRefused(f"{policy.ref} is made for this job and denies it; edit its deny rules")
    return label


def _narrow(copy: dict[str, Any], label: tuple[str, str], sections: set[str], policy: KubeObject) -> None:
    for section in sections:
        peers = _PEERS.get(section)
        for rule in as_list(copy.get(section)):
            chosen = rule.get(peers) if isinstance(rule, dict) and peers else None
            if not isinstance(chosen, list) or not chosen:
                raise PatchRefused(f"{policy.ref} denies more than pods by selector in {section}; narrow it by hand")
            rule[peers] = [_without(as_map(selector), label) for selector in chosen]


def _without(selector: Mapping[str, Any], label: tuple[str, str]) -> dict[str, Any]:
    return {**selector, "matchExpressions": [*as_list(selector.get("matchExpressions")), _not_in(label)]}


def _not_in(label: tuple[str, str]) -> dict[str, Any]:
    return {"key": label[0], "operator": "NotIn", "values": [label[1]]}


def _copy_of(policy: KubeObject, job: TrainingJob, spec: Mapping[str, Any], number: int) -> dict[str, Any]:
    suffix = f"-{number}" if number else ""
    metadata = {"name": f"{policy.name}-{job.name}{suffix}", "namespace": job.namespace}
    return {"apiVersion": policy.api_version, "kind": policy.kind, "metadata": metadata, "spec": dict(spec)}


def _comment(policy: KubeObject, job: TrainingJob) -> str:
    return f"{policy.name} for the pods of {job.ref}: the same rules, but they may reach each other."
