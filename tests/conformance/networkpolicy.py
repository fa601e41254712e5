"""Runs vectors/networkpolicy: the cyclonus / policy-assistant cases against the generic engine."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from result import Result

from stallscope.model.kube import from_body
from stallscope.model.traffic import Endpoint, PeerEdge, Protocol
from stallscope.policy.engine import EngineOptions, compile_policies

LETTERS = {"allowed": "a", "denied": "d", "proxied": "r", "unjudged": "?"}


def endpoint_of(body: Mapping[str, Any]) -> Endpoint:
    return Endpoint(
        name=body["name"],
        namespace=body["namespace"],
        labels=tuple((body.get("labels") or {}).items()),
        named_ports=tuple((p["name"], Protocol(p["proto"]), p["port"]) for p in body.get("ports") or ()),
        ip=body.get("ip", ""),
    )


def run_file(path: Path, limit: int = 0) -> Result:
    """Every case of one file (the first `limit` ones when given)."""
    result = Result(str(path))
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            if limit and number >= limit:
                break
            if line.strip():
                run_case(json.loads(line), result)
    return result


def run_case(case: Mapping[str, Any], result: Result) -> None:
    result.cases += 1
    typed = ({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", **p} for p in case.get("policies") or ())
    objects = [from_body(p, file=f"{i}.yaml") for i, p in enumerate(typed)]
    policy_set = compile_policies(objects, EngineOptions(cni="generic", namespaces=case.get("namespaces") or {}))
    pods = [endpoint_of(p) for p in case.get("pods") or ()]
    for table in case["matrix"]:
        protocol = Protocol(table["proto"])
        for i, source in enumerate(pods):
            for j, destination in enumerate(pods):
                wanted = {side: table[side][i][j] for side in ("combined", "ingress", "egress")}
                if "-" in wanted.values():
                    continue
                verdict = policy_set.evaluate(
                    PeerEdge(source=source, destination=destination, port=table["port"], protocol=protocol)
                )
                got = {"combined": verdict.outcome, "ingress": verdict.ingress.outcome, "egress": verdict.egress.outcome}
                for side, letter in wanted.items():
                    result.verdicts += 1
                    if LETTERS[got[side].value] != letter:
                        where = f"{source.namespace}/{source.name} -> {destination.namespace}/{destination.name}"
                        asked = f"{where} {protocol} {table['port']} {side}"
                        result.miss(f"{case['name']}: {asked}: suite {letter}, we {got[side].value}")
