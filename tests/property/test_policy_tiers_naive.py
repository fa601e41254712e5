"""
ClusterNetworkPolicy around NetworkPolicy in Cilium against a naive walk through the tiers (cilium/cilium 1.20 development
tree, pkg/k8s/cluster_network_policy.go; order of one priority: deny, allow, pass; isolation stands below the baseline).
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from stallscope.model.kube import from_body
from stallscope.model.traffic import Endpoint, PeerEdge, Protocol
from stallscope.policy.engine import EngineOptions, compile_policies

Body = dict[str, Any]
NAMESPACES = {"x": {"team": "ml"}, "y": {"team": "web"}}
NAMED = (("web", Protocol.TCP, 80), ("web", Protocol.UDP, 81))
PODS = [
    Endpoint(name=f"{app}{zone}", namespace=space, labels=(("app", app), ("zone", zone)), named_ports=NAMED)
    for space in NAMESPACES
    for app in ("job", "web")
    for zone in ("a", "b")
]
OTHERS = [Endpoint(name="node", reserved=("remote-node",)), Endpoint(name="out", ip="8.8.8.8")]
ACTIONS = ("Deny", "Accept", "Pass")
OPTIONS = {"enable-k8s-cluster-network-policy": "true", "allow-localhost": "policy"}


def _labels(random: Random, keys: dict[str, list[str]]) -> Body:
    key = random.choice(list(keys))
    pick = random.random()
    if pick < 0.3:
        return {}
    if pick < 0.7:
        return {"matchLabels": {key: random.choice(keys[key])}}
    return {"matchExpressions": [{"key": key, "operator": random.choice(["In", "NotIn"]), "values": [keys[key][0]]}]}


def _who(random: Random) -> Body:
    spaces = _labels(random, {"team": ["ml", "web"]})
    if random.random() < 0.4:
        return {"namespaces": spaces}
    return {
        "pods": {"namespaceSelector": spaces, "podSelector": _labels(random, {"app": ["job", "web"], "zone": ["a", "b"]})}
    }


def _peer(random: Random, way: str) -> Body:
    if random.random() < 0.15:
        return {"networks": ["8.8.0.0/16"]} if way == "egress" else {}
    return _who(random)


def _protocol(random: Random) -> Body:
    name = random.choice(["tcp", "tcp", "udp", "sctp"])
    port = random.choice([{}, {"number": 80}, {"range": {"start": 80, "end": 81}}])
    return random.choice([{name: {"destinationPort": port} if port else {}}, {"destinationNamedPort": "web"}])


def cluster_policy(random: Random, index: int) -> Body:
    spec: Body = {
        "tier": random.choice(["Admin", "Admin", "Baseline"]),
        "priority": random.choice([1, 1, 2]),
        "subject": _who(random),
    }
    for way, key in (("ingress", "from"), ("egress", "to")):
        if random.random() < 0.8:
            spec[way] = []
            for _ in range(random.randint(1, 3)):
                rule: Body = {
                    "action": random.choice(ACTIONS),
                    key: [_peer(random, way) for _ in range(random.randint(0, 2))],
                }
                if random.random() < 0.5:
                    rule["protocols"] = [_protocol(random) for _ in range(random.randint(1, 2))]
                spec[way].append(rule)
    name = {"name": f"k{index}"}
    return {
        "apiVersion": "policy.networking.k8s.io/v1alpha2",
        "kind": "ClusterNetworkPolicy",
        "metadata": name,
        "spec": spec,
    }


def namespaced(random: Random, index: int) -> Body:
    rule = {"from": [{"podSelector": _labels(random, {"app": ["job", "web"]})}]}
    spec = {"podSelector": _labels(random, {"app": ["job", "web"]}), "policyTypes": ["Ingress"], "ingress": [rule]}
    place = {"name": f"n{index}", "namespace": random.choice("xy")}
    return {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": place, "spec": spec}


def holds(selector: Body, labels: dict[str, str]) -> bool:
    for key, value in selector.get("matchLabels", {}).items():
        if labels.get(key) != value:
            return False
    return all(
        (labels.get(i["key"]) in i["values"]) is (i["operator"] == "In") for i in selector.get("matchExpressions", [])
    )


def identifies(who: Body, end: Endpoint) -> bool:
    """
    A selector of pods or namespaces. A node or an outside address has no labels: a selector of namespaces that only says
    what a label is not matches it all the same (kcnpProcessNamespaceSelector); pods are also asked for their cluster.
    """
    if not end.namespace:
        return bool(who.get("namespaces")) and holds(who["namespaces"], {})
    labels, own = dict(end.labels), NAMESPACES[end.namespace]
    if "namespaces" in who:
        return holds(who["namespaces"], own)
    return holds(who["pods"]["namespaceSelector"], own) and holds(who["pods"]["podSelector"], labels)


def covers(item: Body, server: Endpoint, port: int, protocol: Protocol) -> bool:
    if "destinationNamedPort" in item:
        return (item["destinationNamedPort"], protocol, port) in server.named_ports
    [(name, body)] = item.items()
    wanted = body.get("destinationPort")
    if name.upper() != protocol:
        return False
    if wanted is None:
        return True
    span = wanted.get("range", {"start": wanted.get("number"), "end": wanted.get("number")})
    return bool(span["start"] <= port <= span["end"])


def entries(bodies: list[Body], tier: str, way: str, subject: Endpoint) -> list[tuple[tuple[float, int], str, Body, Body]]:
    """((priority, rank), action, peer, rule) of the rules about `subject`; an unknown peer fails closed."""
    found = []
    for spec in (b["spec"] for b in bodies if b["kind"] == "ClusterNetworkPolicy"):
        if spec["tier"] != tier or not identifies(spec["subject"], subject):
            continue
        for index, rule in enumerate(spec.get(way, [])):
            for peer in rule["from" if way == "ingress" else "to"] or [{"everybody": {}}]:
                action, who = rule["action"], peer
                if not peer:
                    if action == "Accept":
                        continue
                    action, who = "Deny", {"everybody": {}}
                found.append(((spec["priority"] + index / 100, ACTIONS.index(action)), action, who, rule))
    return sorted(found, key=lambda e: e[0])


def decide(
    bodies: list[Body], way: str, subject: Endpoint, peer: Endpoint, server: Endpoint, port: int, protocol: Protocol
) -> str:
    def tier(name: str) -> str:
        for _, action, who, rule in entries(bodies, name, way, subject):
            met = (
                "everybody" in who
                or ("networks" in who and peer.name == "out")
                or ("networks" not in who and identifies(who, peer))
            )
            if met and ("protocols" not in rule or any(covers(p, server, port, protocol) for p in rule["protocols"])):
                return action
        return "Pass"

    if not subject.namespace:
        return "allowed"
    first = tier("Admin")
    if first != "Pass":
        return "denied" if first == "Deny" else "allowed"
    isolated = False
    for body in (b for b in bodies if b["kind"] == "NetworkPolicy" and way == "ingress"):
        space, spec = body["metadata"]["namespace"], body["spec"]
        if subject.namespace == space and holds(spec["podSelector"], dict(subject.labels)):
            isolated = True
            if peer.namespace == space and holds(spec["ingress"][0]["from"][0]["podSelector"], dict(peer.labels)):
                return "allowed"
    last = tier("Baseline")
    if last != "Pass":
        return "denied" if last == "Deny" else "allowed"
    return "denied" if isolated else "allowed"


@pytest.mark.parametrize("seed", range(40))
def test_verdicts_are_those_of_the_naive_walk(seed: int) -> None:
    random = Random(seed)
    for _ in range(5):
        bodies = [cluster_policy(random, i) for i in range(random.randint(1, 4))]
        bodies += [namespaced(random, i) for i in range(random.randint(0, 2))]
        objects = [from_body(b, file=f"{b['metadata']['name']}.yaml") for b in bodies]
        cilium = EngineOptions(cni="cilium", version=(1, 20, 0), options=OPTIONS, namespaces=NAMESPACES)
        policy_set = compile_policies(objects, cilium)
        assert not policy_set.rejected
        for _ in range(120):
            source, destination = random.sample([*PODS, *OTHERS], 2)
            port, protocol = random.choice([79, 80, 81]), random.choice([Protocol.TCP, Protocol.UDP, Protocol.SCTP])
            verdict = policy_set.evaluate(PeerEdge(source=source, destination=destination, port=port, protocol=protocol))
            expected = (
                decide(bodies, "egress", source, destination, destination, port, protocol),
                decide(bodies, "ingress", destination, source, destination, port, protocol),
            )
            assert (verdict.egress.outcome, verdict.ingress.outcome) == expected, (
                bodies,
                source,
                destination,
                port,
                protocol,
            )
