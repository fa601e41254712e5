"""
AuthorizationPolicy for TCP: CUSTOM, then DENY, then ALLOW; with ALLOW policies and no match the connection is refused.

Source: istio.io AuthorizationPolicy reference and "Authorization for TCP traffic": HTTP fields make an ALLOW rule match no
TCP connection, and are left out of a DENY rule. Names of a source need mTLS; without it they are empty. What depends on
addresses or custom providers is a missing fact.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stallscope.model.kube import KubeObject
from stallscope.model.source import as_list, as_map, as_str, as_str_map
from stallscope.model.traffic import Outcome, RuleRef
from stallscope.policy.ir import Match
from stallscope.policy.istio import MeshPod
from stallscope.policy.istio_mtls import ROOT

_HTTP_SOURCE = frozenset({"requestPrincipals", "notRequestPrincipals"})
_HTTP_OPERATION = frozenset({"hosts", "notHosts", "methods", "notMethods", "paths", "notPaths"})
_ADDRESSES = frozenset({"ipBlocks", "notIpBlocks", "remoteIpBlocks", "notRemoteIpBlocks"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """The source as the destination's proxy sees it; `identified` false: no mTLS, so no names."""

    pod: MeshPod
    identified: bool
    trust_domain: str = "cluster.local"

    @property
    def principal(self) -> str:
        if not self.identified:
            return ""
        return f"{self.trust_domain}/ns/{self.pod.namespace}/sa/{self.pod.service_account}"

    @property
    def namespace(self) -> str:
        return self.pod.namespace if self.identified else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthzVerdict:
    """`rules`: the deciding rules; empty with DENIED: ALLOW policies exist (`applying`) and none matched."""

    outcome: Outcome
    rules: tuple[RuleRef, ...] = ()
    applying: tuple[RuleRef, ...] = ()
    reason: str = ""


def authorize(
    objects: Iterable[KubeObject], destination: MeshPod, caller: Caller, port: int, root: str = ROOT
) -> AuthzVerdict:
    """Whether the destination's proxy lets this TCP connection in."""
    mine = [o for o in objects if o.kind == "AuthorizationPolicy" and _applies(o, destination, root)]
    by_action: dict[str, list[KubeObject]] = {"ALLOW": [], "DENY": [], "CUSTOM": [], "AUDIT": []}
    for item in mine:
        by_action.setdefault(as_str(item.get("spec", "action"), "ALLOW") or "ALLOW", []).append(item)
    denied, unsure = _matching(by_action["DENY"], caller, port, deny=True)
    if denied:
        return AuthzVerdict(outcome=Outcome.DENIED, rules=denied)
    if by_action["CUSTOM"]:
        return AuthzVerdict(outcome=Outcome.UNJUDGED, reason=f"the decision of the provider of {by_action['CUSTOM'][0].ref}")
    if unsure:
        return AuthzVerdict(outcome=Outcome.UNJUDGED, reason=unsure)
    if not by_action["ALLOW"]:
        return AuthzVerdict(outcome=Outcome.ALLOWED)
    allowed, unsure = _matching(by_action["ALLOW"], caller, port, deny=False)
    if allowed:
        return AuthzVerdict(outcome=Outcome.ALLOWED, rules=allowed)
    if unsure:
        return AuthzVerdict(outcome=Outcome.UNJUDGED, reason=unsure)
    applying = tuple(RuleRef(policy=o.ref, location=o.at("spec")) for o in by_action["ALLOW"])
    return AuthzVerdict(outcome=Outcome.DENIED, applying=applying, reason="no rule of an ALLOW policy admits it")


def _applies(policy: KubeObject, pod: MeshPod, root: str) -> bool:
    if policy.group != "security.istio.io" or policy.namespace not in (pod.namespace, root):
        return False
    if as_list(policy.get("spec", "targetRefs")) or as_map(policy.get("spec", "targetRef")):
        return False  # waypoints and gateways, not the pod's own proxy
    return as_str_map(policy.get("spec", "selector", "matchLabels")).items() <= pod.labels.items()


def _matching(policies: Sequence[KubeObject], caller: Caller, port: int, *, deny: bool) -> tuple[tuple[RuleRef, ...], str]:
    """The rules that match, and the first missing fact among the others."""
    found, unsure = [], ""
    for policy in policies:
        for index, rule in enumerate(as_list(policy.get("spec", "rules"))):
            match = _rule(as_map(rule), caller, port, deny)
            if match is True:
                location = policy.at("spec", "rules", index)
                found.append(RuleRef(policy=policy.ref, section="rules", index=index, location=location))
            elif match is not False:
                unsure = unsure or f"{match} ({policy.ref})"
    return tuple(found), unsure


def _rule(rule: Mapping[str, Any], caller: Caller, port: int, deny: bool) -> Match:
    sources = [_source(as_map(as_map(s).get("source")), caller, deny) for s in as_list(rule.get("from"))]
    operations = [_operation(as_map(as_map(t).get("operation")), port, deny) for t in as_list(rule.get("to"))]
    conditions = [_condition(as_map(c), caller, port, deny) for c in as_list(rule.get("when"))]
    return _all([_any(sources) if sources else True, _any(operations) if operations else True, *conditions])


def _source(source: Mapping[str, Any], caller: Caller, deny: bool) -> Match:
    if _HTTP_SOURCE & source.keys() and not deny:
        return False
    parts: list[Match] = []
    account = f"{caller.namespace}/{caller.pod.service_account}" if caller.identified else ""
    for field, value in (("principals", caller.principal), ("namespaces", caller.namespace), ("serviceAccounts", account)):
        parts.append(_listed(source.get(field), value))
        refused = as_list(source.get("not" + field[0].upper() + field[1:]))
        parts.append(not refused or not _listed(refused, value))
    if _ADDRESSES & source.keys():
        parts.append("the address of the source")
    return _all(parts)


def _listed(patterns: Any, value: str) -> bool:
    listed = as_list(patterns)
    return not listed or any(_pattern(str(p), value) for p in listed)


def _pattern(pattern: str, value: str) -> bool:
    """Exact, prefix ``abc*``, suffix ``*abc`` or presence ``*``."""
    if pattern == "*":
        return bool(value)
    if pattern.endswith("*"):
        return value.startswith(pattern[:-1])
    return value.endswith(pattern[1:]) if pattern.startswith("*") else value == pattern


def _operation(operation: Mapping[str, Any], port: int, deny: bool) -> Match:
    if _HTTP_OPERATION & operation.keys() and not deny:
        return False
    refused = as_list(operation.get("notPorts"))
    return _listed(operation.get("ports"), str(port)) and (not refused or not _listed(refused, str(port)))


def _condition(condition: Mapping[str, Any], caller: Caller, port: int, deny: bool) -> Match:
    key = as_str(condition.get("key"))
    known = {
        "source.principal": caller.principal,
        "source.namespace": caller.namespace,
        "destination.port": str(port),
    }
    if key.startswith("request."):
        return deny  # an HTTP attribute
    if key not in known:
        return f"condition {key}"
    refused = as_list(condition.get("notValues"))
    return _listed(condition.get("values"), known[key]) and (not refused or not _listed(refused, known[key]))


def _all(parts: Sequence[Match]) -> Match:
    return False if False in parts else next((p for p in parts if p is not True), True)


def _any(parts: Sequence[Match]) -> Match:
    return True if True in parts else next((p for p in parts if p is not False), False)
