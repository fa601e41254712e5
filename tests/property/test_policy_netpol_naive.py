"""
NetworkPolicy against a naive reading of its API text (k8s.io/api networking/v1 types.go), as the matcher of
kubernetes-sigs/network-policy-api cmd/policy-assistant reads it: one edge, one rule at a time.
"""

from __future__ import annotations

from ipaddress import ip_address, ip_network
from random import Random
from typing import Any

import pytest

from stallscope.model.kube import from_body
from stallscope.model.traffic import Endpoint, PeerEdge, Protocol
from stallscope.policy.engine import EngineOptions, compile_policies

Body = dict[str, Any]
NAMESPACES = {n: {"ns": n, "kubernetes.io/metadata.name": n} for n in ("x", "y", "z")}
PODS = [
    Endpoint(
        name=name,
        namespace=space,
        labels=(("pod", name), *((("tier", "db"),) if name == "a" else ())),
        ip=f"10.0.{i}.{j}",
        named_ports=(("serve-80-tcp", Protocol.TCP, 80), ("serve-81-udp", Protocol.UDP, 81), ("s", Protocol.SCTP, 80)),
    )
    for i, space in enumerate(NAMESPACES)
    for j, name in enumerate("abc", start=1)
]
OUTSIDE = Endpoint(name="out", ip="1.2.3.4")
TRANSPORT = (Protocol.TCP, Protocol.UDP, Protocol.SCTP)


def _selector(random: Random, key: str, values: str) -> Body:
    pick = random.random()
    if pick < 0.25:
        return {}
    if pick < 0.6:
        return {"matchLabels": {key: random.choice(values)}}
    name, operator = random.choice([key, key, "tier"]), random.choice(["In", "NotIn", "Exists", "DoesNotExist"])
    chosen = {"values": random.sample([*values, "db"], 2)} if operator.endswith("In") else {}
    return {"matchExpressions": [{"key": name, "operator": operator, **chosen}]}


def _peer(random: Random) -> Body:
    pick = random.random()
    if pick < 0.25:
        block: Body = {"cidr": random.choice(["10.0.0.0/16", "10.0.1.0/24", "0.0.0.0/0", "10.0.2.1/32", "::/0"])}
        if block["cidr"] == "10.0.0.0/16" and random.random() < 0.6:
            block["except"] = random.sample(["10.0.1.0/24", "10.0.2.2/32"], random.randint(1, 2))
        return {"ipBlock": block}
    pods, spaces = {"podSelector": _selector(random, "pod", "abc")}, {"namespaceSelector": _selector(random, "ns", "xyz")}
    return random.choice([pods, spaces, pods | spaces])


def _port(random: Random) -> Body:
    protocol: Body = random.choice([{}, {"protocol": random.choice(["TCP", "UDP", "SCTP"])}])
    port = random.choice([None, 80, 81, 79, "serve-80-tcp", "serve-81-udp", "s", "nope"])
    if port is None:
        return protocol
    return {"port": port, **protocol, **({"endPort": 81} if isinstance(port, int) and random.random() < 0.4 else {})}


def _policy(random: Random, index: int) -> Body:
    spec: Body = {"podSelector": _selector(random, "pod", "abc")}
    for way, key in (("ingress", "from"), ("egress", "to")):
        if random.random() < 0.7:
            spec[way] = [_rule(random, key) for _ in range(random.choice([0, 1, 1, 2]))]
    if random.random() < 0.6:
        spec["policyTypes"] = random.sample(["Ingress", "Egress"], random.randint(1, 2))
    place = {"name": f"np{index}", "namespace": random.choice("xy")}
    return {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": place, "spec": spec}


def _rule(random: Random, key: str) -> Body:
    rule: Body = {}
    if random.random() < 0.7:
        rule[key] = [_peer(random) for _ in range(random.choice([0, 1, 1, 2]))]
    if random.random() < 0.6:
        rule["ports"] = [_port(random) for _ in range(random.choice([0, 1, 1, 2]))]
    return rule


def holds(selector: Body, labels: dict[str, str]) -> bool:
    for key, value in selector.get("matchLabels", {}).items():
        if labels.get(key) != value:
            return False
    for item in selector.get("matchExpressions", []):
        value, listed = labels.get(item["key"]), item.get("values", [])
        if not {
            "In": value in listed,
            "NotIn": value is None or value not in listed,
            "Exists": value is not None,
            "DoesNotExist": value is None,
        }[item["operator"]]:
            return False
    return True


def admits(peer: Body, namespace: str, end: Endpoint) -> bool:
    if "ipBlock" in peer:
        block, address = peer["ipBlock"], ip_address(end.ip)
        return address in ip_network(block["cidr"]) and not any(address in ip_network(e) for e in block.get("except", []))
    if not end.namespace or ("namespaceSelector" not in peer and end.namespace != namespace):
        return False
    spaces = holds(peer.get("namespaceSelector", {}), NAMESPACES[end.namespace])
    return spaces and holds(peer.get("podSelector", {}), dict(end.labels))


def covers(wanted: Body, server: Endpoint, port: int, protocol: Protocol) -> bool:
    if wanted.get("protocol", "TCP") != protocol:
        return False
    number = wanted.get("port")
    if isinstance(number, str):
        return (number, protocol, port) in server.named_ports
    return number is None or number <= port <= wanted.get("endPort", number)


def side(
    bodies: list[Body], way: str, subject: Endpoint, peer: Endpoint, server: Endpoint, port: int, protocol: Protocol
) -> bool:
    isolated, key = False, "from" if way == "ingress" else "to"
    for body in bodies:
        spec, namespace = body["spec"], body["metadata"]["namespace"]
        types = spec.get("policyTypes") or ["Ingress", *(["Egress"] if spec.get("egress") else [])]
        if way.capitalize() not in types or subject.namespace != namespace:
            continue
        if not holds(spec["podSelector"], dict(subject.labels)):
            continue
        isolated = True
        for rule in spec.get(way, []):
            if (not rule.get(key) or any(admits(p, namespace, peer) for p in rule[key])) and (
                not rule.get("ports") or any(covers(p, server, port, protocol) for p in rule["ports"])
            ):
                return True
    return not isolated


@pytest.mark.parametrize("seed", range(40))
def test_verdicts_are_those_of_the_naive_reading(seed: int) -> None:
    random = Random(seed)
    for _ in range(5):
        bodies = [_policy(random, i) for i in range(random.randint(1, 4))]
        objects = [from_body(b, file=f"{b['metadata']['name']}.yaml") for b in bodies]
        policy_set = compile_policies(objects, EngineOptions(cni="generic", namespaces=NAMESPACES))
        for _ in range(150):
            source, destination = random.sample([*PODS, OUTSIDE], 2)
            port, protocol = random.choice([79, 80, 81, 82]), random.choice(TRANSPORT)
            leaves = side(bodies, "egress", source, destination, destination, port, protocol)
            enters = side(bodies, "ingress", destination, source, destination, port, protocol)
            edge = PeerEdge(source=source, destination=destination, port=port, protocol=protocol)
            verdict = policy_set.evaluate(edge)
            assert (verdict.egress.outcome, verdict.ingress.outcome) == (
                "allowed" if leaves else "denied",
                "allowed" if enters else "denied",
            ), (bodies, edge)
