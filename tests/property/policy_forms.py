"""
Random Cilium policies of the less usual forms (SCTP, ICMP, node selectors, entities, reserved and namespace selectors, named
ports, empty lists, ``specs``, L7 kinds), and a naive reading of them: one edge, one rule at a time, nothing precomputed.

The reading follows cilium/cilium pkg/policy/api and pkg/policy/mapstate.go in the words of reference/policy.md §1.
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_address, ip_network
from random import Random
from typing import Any

from stallscope.model.traffic import Endpoint, Protocol

Body = dict[str, Any]
NAMESPACES = {"train": {"team": "ml"}, "other": {"team": "web"}, "bare": {}}
OPTIONS = (
    {},
    {"allow-localhost": "policy"},
    {"enable-policy": "always"},
    {"enable-node-selector-labels": "true", "enable-host-firewall": "true"},
    {"policy-default-local-cluster": "false", "enable-ipv6": "true"},
    {"policy-cidr-match-mode": "nodes", "enable-policy": "never"},
)
META = "io.cilium.k8s.namespace.labels."
NAMED = (("web", Protocol.TCP, 80), ("web", Protocol.UDP, 8080), ("rdzv", Protocol.TCP, 29500))
ENDS = (
    Endpoint(name="a", namespace="train", labels=(("app", "job"), ("zone", "a")), named_ports=NAMED),
    Endpoint(name="b", namespace="train", labels=(("app", "web"), ("host", "x"))),
    Endpoint(name="c", namespace="other", labels=(("app", "job"),), named_ports=NAMED[:1]),
    Endpoint(name="d", namespace="bare", labels=(("zone", "b"), ("init", "y"))),
    Endpoint(name="host", reserved=("host",), node_labels=(("pool", "gpu"),), ip="10.0.0.1"),
    Endpoint(name="node", reserved=("remote-node",), node_labels=(("pool", "cpu"),), ip="10.0.0.2"),
    Endpoint(name="api", reserved=("kube-apiserver", "remote-node"), ip="10.0.0.3"),
    Endpoint(name="health", reserved=("health",)),
    Endpoint(name="init", reserved=("init",)),
    Endpoint(name="ingress", reserved=("ingress",)),
    Endpoint(name="odd", reserved=("unmanaged",)),
    Endpoint(name="v4", ip="8.8.8.8"),
    Endpoint(name="v6", ip="2001:db8::9"),
)
PORTS = (0, 8, 53, 80, 80, 80, 8080, 29500, 29500, 40000)
ENTITY_NAMES = ("all", "cluster", "host", "remote-node", "kube-apiserver", "health", "init", "ingress", "unmanaged", "none")
WORLDS = ("world", "world-ipv4", "world-ipv6")
CIDRS = ("0.0.0.0/0", "8.8.0.0/16", "10.0.0.0/30", "2001:db8::/32", "::/0", "8.8.8.8")


def make(random: Random) -> tuple[list[Body], dict[str, str]]:
    """Policies and agent options; an object whose name starts with ``bad`` is one that the agent refuses."""
    options = dict(random.choice(OPTIONS))
    return [_object(random, f"p{i}", options) for i in range(random.randint(1, 5))], options


def _object(random: Random, name: str, options: dict[str, str]) -> Body:
    wide = random.random() < 0.4
    body: Body = {
        "apiVersion": "cilium.io/v2",
        "kind": "CiliumClusterwideNetworkPolicy" if wide else "CiliumNetworkPolicy",
        "metadata": {"name": name} if wide else {"name": name, "namespace": random.choice(["train", "other"])},
    }
    if random.random() < 0.3:
        body["specs"] = [_spec(random, wide, options) for _ in range(random.randint(1, 2))]
    else:
        body["spec"] = _spec(random, wide, options)
    if random.random() < 0.1:
        first = body.get("spec") or body["specs"][0]
        first["ingress"] = [{"fromEntities": ["nobody"]}]
        body["metadata"]["name"] = f"bad-{name}"
    return body


def _spec(random: Random, wide: bool, options: dict[str, str]) -> Body:
    host = wide and random.random() < 0.25
    spec: Body = {"nodeSelector" if host else "endpointSelector": _nodes(random) if host else _selector(random)}
    for section in random.sample(("ingress", "egress", "ingressDeny", "egressDeny"), random.randint(1, 3)):
        spec[section] = [_rule(random, section, host, options) for _ in range(random.randint(1, 2))]
    if random.random() < 0.3:
        spec["enableDefaultDeny"] = {d: random.random() < 0.5 for d in random.sample(("ingress", "egress"), 1)}
    return spec


def _nodes(random: Random) -> Body:
    return random.choice(
        [{}, {"matchLabels": {"pool": "gpu"}}, {"matchExpressions": [{"key": "pool", "operator": "Exists"}]}]
    )


def _selector(random: Random) -> Body:
    pick = random.random()
    if pick < 0.3:
        return {}
    if pick < 0.55:
        return {"matchLabels": {random.choice(["app", "k8s:app", "any:app"]): random.choice(["job", "web"])}}
    if pick < 0.65:
        return {"matchLabels": {META + "team": random.choice(["ml", "web"])}}
    if pick < 0.75:
        return {"matchLabels": {f"reserved:{random.choice(['health', 'init', 'host', 'remote-node'])}": ""}}
    key = random.choice(["zone", "app", META + "team", "k8s:io.kubernetes.pod.namespace"])
    operator = random.choice(["In", "NotIn", "Exists", "DoesNotExist"])
    values = {"values": random.sample(["a", "job", "ml", "train", "other"], 2)} if operator.endswith("In") else {}
    return {"matchExpressions": [{"key": key, "operator": operator, **values}]}


def _rule(random: Random, section: str, host: bool, options: dict[str, str]) -> Body:
    prefix = "from" if section.startswith("ingress") else "to"
    rule: Body = {}
    kinds = ["Endpoints", "Endpoints", "Entities", "Entities", "CIDR", "CIDRSet", ""]
    kind = random.choice([*kinds, "Nodes"] if "enable-node-selector-labels" in options else kinds)
    if kind:
        rule[prefix + kind] = [_peer(random, kind) for _ in range(random.choice([0, 1, 1, 2, 2]))]
    if random.random() < 0.2:
        fields = [{"type": random.choice([0, 8, "EchoRequest"])}, {"type": 128, "family": "IPv6"}]
        rule["icmps"] = [{"fields": random.sample(fields, random.randint(1, 2))}]
    elif random.random() < 0.75:
        rule["toPorts"] = [_ports(random, section, host) for _ in range(random.choice([0, 1, 1, 2]))]
    return rule


def _peer(random: Random, kind: str) -> Any:
    match kind:
        case "Endpoints":
            return _selector(random)
        case "Nodes":
            return _nodes(random)
        case "Entities":
            return random.choice([*ENTITY_NAMES, *WORLDS, *WORLDS])
        case "CIDR":
            return random.choice(CIDRS)
    return {"cidr": "8.0.0.0/8", "except": random.sample(["8.8.0.0/16", "8.9.0.0/16"], random.randint(0, 2))}


def _ports(random: Random, section: str, host: bool) -> Body:
    if random.random() < 0.35 and not section.endswith("Deny") and not host:
        rules = random.choice([{"http": [{}]}, {"http": []}, {"l7proto": "x"}, {"kafka": [{"topic": "t"}]}])
        return {"ports": [{"port": random.choice(["80", "29500"]), "protocol": "TCP"}], "rules": rules}
    return {"ports": [_port(random) for _ in range(random.randint(0, 2))]} if random.random() < 0.9 else {}


def _port(random: Random) -> Body:
    protocol: Body = random.choice([{}, {"protocol": random.choice(["TCP", "UDP", "SCTP", "ANY", "tcp"])}])
    pick = random.random()
    if pick < 0.25:
        return {"port": random.choice(["web", "rdzv", "nope"]), **protocol}
    if pick < 0.4:
        return {"port": "0", **protocol, **random.choice([{}, {"endPort": 80}])}
    return {"port": random.choice(["53", "80", "8080", "29500"]), **protocol, **random.choice([{}, {"endPort": 40000}])}


class Naive:
    """The verdict of one edge, rule after rule."""

    def __init__(self, bodies: list[Body], options: dict[str, str]) -> None:
        self.options = options
        self.specs = [(b["metadata"].get("namespace", ""), s) for b in bodies for s in b.get("specs", [b.get("spec")])]

    def outcome(self, source: Endpoint, destination: Endpoint, port: int, protocol: Protocol) -> str:
        sides = (
            self._side("egress", source, destination, destination, port, protocol),
            self._side("ingress", destination, source, destination, port, protocol),
        )
        return next((o for o in ("denied", "proxied") if o in sides), "allowed")

    def labels(self, end: Endpoint) -> dict[str, str]:
        if end.namespace:
            own = {f"k8s:{k}": v for k, v in end.labels}
            own |= {f"k8s:{META}{k}": v for k, v in NAMESPACES[end.namespace].items()}
            return own | {"k8s:io.kubernetes.pod.namespace": end.namespace, "k8s:io.cilium.k8s.policy.cluster": "default"}
        found = {f"reserved:{r}": "" for r in end.reserved}
        if end.ip and not end.reserved:
            dual = "enable-ipv6" in self.options
            found[f"reserved:world-ipv{ip_address(end.ip).version}" if dual else "reserved:world"] = ""
        if "host" in end.reserved:
            found |= {f"k8s:{k}": v for k, v in end.node_labels}
        elif "remote-node" in end.reserved and "enable-node-selector-labels" in self.options:
            found |= {f"node:{k}": v for k, v in end.node_labels} | {"k8s:io.cilium.k8s.policy.cluster": "default"}
        return found

    def _side(self, way: str, subject: Endpoint, peer: Endpoint, server: Endpoint, port: int, protocol: Protocol) -> str:
        firewall = "enable-host-firewall" in self.options
        managed = {"health", "init", "ingress"} | ({"host"} if firewall else set())
        keys = {k.partition(":")[2] for k in self.labels(subject)}
        if not (subject.namespace or managed & set(subject.reserved)) or self.options.get("enable-policy") == "never":
            return "allowed"
        if "host" in keys and not firewall:
            return "allowed"
        chosen = [(ns, s) for ns, s in self.specs if self._selects(ns, s, subject)]
        if self._hits(chosen, way + "Deny", peer, server, port, protocol):
            return "denied"
        hits = self._hits(chosen, way, peer, server, port, protocol)
        if hits:
            return "proxied" if "proxied" in hits else "allowed"
        isolated = (
            any(_isolates(s, way) for _, s in chosen) or self.options.get("enable-policy") == "always" or "init" in keys
        )
        own = way == "ingress" and "host" in peer.reserved and "host" not in subject.reserved
        return "denied" if isolated and not (own and "allow-localhost" not in self.options) else "allowed"

    def _selects(self, namespace: str, spec: Body, end: Endpoint) -> bool:
        if "nodeSelector" in spec:
            return "host" in end.reserved and self._matches(spec["nodeSelector"], end)
        if "host" in end.reserved or (namespace and end.namespace != namespace):
            return False
        return self._matches(spec["endpointSelector"], end)

    def _matches(self, selector: Body, end: Endpoint) -> bool:
        held = self.labels(end)
        for key, operator, values in _needs(selector):
            value = next((v for k, v in held.items() if key in (k, "any:" + k.partition(":")[2])), None)
            if not {
                "In": value in values,
                "NotIn": value is None or value not in values,
                "Exists": value is not None,
                "DoesNotExist": value is None,
            }[operator]:
                return False
        return True

    def _hits(
        self, chosen: list[tuple[str, Body]], section: str, peer: Endpoint, server: Endpoint, port: int, protocol: Protocol
    ) -> list[str]:
        found = []
        for namespace, spec in chosen:
            init = any(k == "reserved:init" for k, _, _ in _needs(spec.get("endpointSelector", {})))
            for rule in spec.get(section, []):
                if self._admits(rule, namespace, init, peer):
                    found += _layer4(rule, server, port, protocol)
        return found

    def _admits(self, rule: Body, namespace: str, init: bool, peer: Endpoint) -> bool:
        lists = {k: v for k, v in rule.items() if k.startswith(("from", "to")) and k != "toPorts"}
        if not lists:
            return True
        [(field, items)] = lists.items()
        return any(self._peer(field.removeprefix("from").removeprefix("to"), i, namespace, init, peer) for i in items)

    def _peer(self, kind: str, item: Any, namespace: str, init: bool, peer: Endpoint) -> bool:
        held = self.labels(peer)
        if kind == "Entities":
            if item == "cluster":
                inner = {"host", "remote-node", "init", "ingress", "health", "unmanaged", "kube-apiserver"}
                return bool(peer.namespace) or bool(inner & set(peer.reserved))
            wanted = {"reserved:" + w for w in (WORLDS if item == "world" else (item,))}
            return item == "all" or (item != "none" and bool(wanted & set(held)))
        if kind in ("CIDR", "CIDRSet"):
            return self._inside(item, peer)
        if kind == "Nodes":
            return "remote-node" in peer.reserved and self._matches(item, peer)
        keys = [k for k, _, _ in _needs(item)]
        if not any(k.startswith("reserved:") for k in keys):
            if not any(k.endswith(":io.kubernetes.pod.namespace") for k in keys):
                if namespace and not any(META in k for k in keys) and peer.namespace != namespace:
                    return False
                if not namespace and not init and not peer.namespace:
                    return False
            local = self.options.get("policy-default-local-cluster") != "false"
            if local and "k8s:io.cilium.k8s.policy.cluster" not in held:
                return False
        return self._matches(item, peer)

    def _inside(self, item: Any, peer: Endpoint) -> bool:
        node = {"host", "remote-node"} & set(peer.reserved)
        if not peer.ip or (node and "policy-cidr-match-mode" not in self.options):
            return False
        address = ip_address(peer.ip)
        if isinstance(item, str):
            return address in ip_network(item)
        return address in ip_network(item["cidr"]) and not any(address in ip_network(e) for e in item["except"])


def _needs(selector: Body) -> Iterator[tuple[str, str, list[str]]]:
    for key, value in selector.get("matchLabels", {}).items():
        yield (key if ":" in key else f"any:{key}"), "In", [value]
    for item in selector.get("matchExpressions", []):
        yield (item["key"] if ":" in item["key"] else f"any:{item['key']}"), item["operator"], item.get("values", [])


def _isolates(spec: Body, way: str) -> bool:
    present = bool(spec.get(way) or spec.get(way + "Deny"))
    return present and bool(spec.get("enableDefaultDeny", {}).get(way, True))


def _layer4(rule: Body, server: Endpoint, port: int, protocol: Protocol) -> list[str]:
    """One word per L4 part of the rule that covers the port; a rule without L3, L4 and ICMP says nothing."""
    if "icmps" in rule:
        fields = [f for i in rule["icmps"] for f in i["fields"] if f.get("family", "IPv4") == "IPv4"]
        types = [{"EchoRequest": 8}.get(f["type"], f["type"]) for f in fields]
        return ["allowed"] if protocol is Protocol.ICMP and (0 in types or port in types) else []
    if not rule.get("toPorts"):
        peers = any(k.startswith(("from", "to")) and k != "toPorts" for k in rule)
        return ["allowed"] if peers else []
    found = []
    for item in rule["toPorts"]:
        for wanted in item.get("ports", []):
            if protocol is Protocol.ICMP or wanted.get("protocol", "ANY").upper() not in ("ANY", protocol):
                continue
            if _covers(wanted, server, port, protocol):
                rules = item.get("rules", {})
                found.append("proxied" if any(rules.values()) else "allowed")
    return found


def _covers(wanted: Body, server: Endpoint, port: int, protocol: Protocol) -> bool:
    text = wanted["port"]
    if not text.isdigit():
        return (text, protocol, port) in server.named_ports
    first, last = int(text), wanted.get("endPort", 0)
    return (first == 0 and not last) or first <= port <= max(first, last)
