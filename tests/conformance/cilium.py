"""Runs vectors/cilium: our verdicts and provenance against those of Cilium's own policy engine."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from result import Result

from stallscope.model.kube import KubeObject, from_body
from stallscope.model.traffic import Direction, DirectionVerdict, Endpoint, PeerEdge, Protocol, RuleRef
from stallscope.policy.engine import EngineOptions, PolicySet, compile_policies
from stallscope.policy.ir import Action

LETTERS = {"allowed": "a", "denied": "d", "proxied": "r", "unjudged": "?"}
WORDS = {"proxied": "redirected"}

CLUSTER_SCOPED = (
    "CiliumClusterwideNetworkPolicy",
    "ClusterNetworkPolicy",
    "AdminNetworkPolicy",
    "BaselineAdminNetworkPolicy",
)

#: Names of the vectors' config that differ from the agent's flags.
FLAGS = {
    "policyAnyCluster": "policy-default-local-cluster",
    "enableExtendedIPProtocols": "enable-extended-ip-protocols",
    "enableICMPRules": "enable-icmp-rules",
    "enableK8sClusterNetworkPolicy": "enable-k8s-cluster-network-policy",
    "policyCIDRMatchMode": "policy-cidr-match-mode",
}


def version_of(path: Path) -> tuple[int, ...]:
    """The release in the file's name: ``random-1.19.jsonl``."""
    found = re.search(r"(\d+)\.(\d+)(?:\.(\d+))?", path.name)
    return tuple(int(x) for x in found.groups() if x is not None) if found else (1, 19)


def agent_options(config: Mapping[str, Any], version: tuple[int, ...]) -> dict[str, str]:
    """The scenario's agent configuration by flag name; the vectors were made with an empty DNS cache."""
    options = {"fqdn-cache": ""}
    if version >= (1, 20):
        options["enable-k8s-cluster-network-policy"] = "true"
    for key, value in config.items():
        flag = FLAGS.get(key) or re.sub(r"(?<=[a-z0-9])([A-Z])", r"-\1", key).lower()
        options[flag] = option_text(not value if key == "policyAnyCluster" else value)
    return options


def option_text(value: Any) -> str:
    """A value as cilium-config writes it."""
    if isinstance(value, list):
        return " ".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def endpoint_of(body: Mapping[str, Any]) -> Endpoint:
    named = [(n, p, int(v)) for p in Protocol for n, v in (body.get(f"named{p.value}") or {}).items()]
    return Endpoint(
        name=body["name"],
        namespace=body.get("namespace", ""),
        labels=tuple((body.get("labels") or {}).items()),
        service_account=body.get("serviceAccount", ""),
        named_ports=tuple(named),
        ip=body.get("ip", ""),
        reserved=tuple(body.get("reserved") or ()),
        node_labels=tuple((body.get("nodeLabels") or {}).items()),
        raw_labels=tuple(body.get("rawLabels") or ()),
    )


def objects_of(bodies: Iterable[Mapping[str, Any]]) -> list[KubeObject]:
    return [
        from_body(b, namespace="" if b.get("kind") in CLUSTER_SCOPED else "default", file=f"{i}.yaml")
        for i, b in enumerate(bodies)
    ]


def compiled(scenario: Mapping[str, Any], version: tuple[int, ...]) -> PolicySet:
    options = EngineOptions(
        cni="cilium",
        version=version,
        options=agent_options(scenario.get("config") or {}, version),
        namespaces=scenario.get("namespaces") or {},
    )
    return compile_policies(objects_of(scenario.get("policies") or ()), options)


def rule_name(ref: RuleRef, policies: Mapping[str, KubeObject]) -> str:
    """``Kind/namespace/name#<spec>.<section>[<rule>]``; Cilium keeps no rule index of NetworkPolicy objects."""
    kind, _, name = ref.policy.partition(" ")
    base = f"{kind}/{name}"
    if kind == "ClusterNetworkPolicy":
        spec = policies[ref.policy].body["spec"]
        action = {"Accept": "allow"}.get(
            spec[ref.section][ref.index]["action"], spec[ref.section][ref.index]["action"].lower()
        )
        return f"{base}#{ref.section} prio={spec['priority'] + ref.index / 100:g} {action}"
    if kind == "NetworkPolicy":
        return f"{base}#0.{ref.section}"
    return f"{base}#{ref.spec}.{ref.section}[{ref.index}]"


def direction_of(verdict: DirectionVerdict, policies: Mapping[str, KubeObject], *, passes: bool = False) -> dict[str, Any]:
    """One direction in the words of the vectors. With pass rules the engine writes its default deny down as an entry."""
    outcome = WORDS.get(verdict.outcome.value, verdict.outcome.value)
    return {
        "verdict": outcome,
        "enforced": verdict.enforced,
        "matched": verdict.enforced and (verdict.outcome.value != "denied" or bool(verdict.rules) or passes),
        "rules": sorted({rule_name(r, policies) for r in verdict.rules}),
    }


def run_file(path: Path, limit: int = 0) -> Result:
    """Every scenario of one file (the first `limit` ones when given)."""
    result = Result(str(path))
    version = version_of(path)
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            if limit and number >= limit:
                break
            if line.strip():
                run_scenario(json.loads(line), version, result)
    return result


def run_scenario(scenario: Mapping[str, Any], version: tuple[int, ...], result: Result) -> None:
    result.cases += 1
    policy_set = compiled(scenario, version)
    ends = [endpoint_of(e) for e in scenario["endpoints"]]
    names = {f"{e.namespace}/{e.name}" if e.namespace else e.name: e for e in ends}
    check_rejected(scenario, policy_set, result)
    check_matrix(scenario, policy_set, ends, result)
    check_explained(scenario, policy_set, names, result)


def check_matrix(scenario: Mapping[str, Any], policy_set: PolicySet, ends: list[Endpoint], result: Result) -> None:
    for table in scenario.get("matrix") or ():
        protocol = Protocol(table["proto"])
        for source, row in zip(ends, table["rows"], strict=True):
            for destination, wanted in zip(ends, row, strict=True):
                if wanted == "-":
                    continue
                result.verdicts += 1
                edge = PeerEdge(source=source, destination=destination, port=table["port"], protocol=protocol)
                got = LETTERS[policy_set.evaluate(edge).outcome.value]
                if got != wanted:
                    where = f"{source.name} -> {destination.name} {protocol} {table['port']}"
                    result.miss(f"{scenario['name']}: {where}: engine {wanted}, we {got}")


def check_explained(
    scenario: Mapping[str, Any], policy_set: PolicySet, names: Mapping[str, Endpoint], result: Result
) -> None:
    policies = {p.ref: p for p in policy_set.policies}
    for query in scenario.get("queries") or scenario.get("explained") or ():
        edge = PeerEdge(
            source=names[query["from"]],
            destination=names[query["to"]],
            port=query["port"],
            protocol=Protocol(query["proto"]),
        )
        verdict = policy_set.evaluate(edge)
        got = WORDS.get(verdict.outcome.value, verdict.outcome.value)
        result.verdicts += 1
        head = f"{scenario['name']}: {query['from']} -> {query['to']} {query['proto']} {query['port']}"
        if got != query["verdict"]:
            result.miss(f"{head}: engine {query['verdict']}, we {got} ({verdict.reason})")
            continue
        for side, ours in (("egress", verdict.egress), ("ingress", verdict.ingress)):
            subject = edge.source if side == "egress" else edge.destination
            mine = direction_of(ours, policies, passes=has_pass(policy_set, ours.direction, subject))
            wanted = {k: sorted(set(v)) if k == "rules" else v for k, v in query[side].items()}
            if mine != wanted:
                parts = ", ".join(f"{k}: engine {wanted[k]}, we {mine[k]}" for k in wanted if wanted[k] != mine.get(k))
                result.miss(f"{head} {side}: {parts}")


def has_pass(policy_set: PolicySet, direction: Direction, subject: Endpoint) -> bool:
    chosen = policy_set.program.selected(direction, policy_set.program.view(subject))
    return any(c.action is Action.PASS for s in chosen.chosen for c in s.block.clauses)


def check_rejected(scenario: Mapping[str, Any], policy_set: PolicySet, result: Result) -> None:
    wanted = sorted(_normal(text) for text in scenario.get("rejected") or ())
    ours = sorted(_normal(f"REJECTED {r.policy.ref.replace(' ', '/', 1)}: {r.reason}") for r in policy_set.rejected)
    result.verdicts += 1
    if wanted != ours:
        result.miss(f"{scenario['name']}: rejected: engine {wanted}, we {ours}")


def _normal(text: str) -> str:
    """The agent names combined fields in the random order of a Go map."""
    return re.sub(r"combining (\w+) and (\w+)", lambda m: "combining " + " and ".join(sorted(m.groups())), text)
