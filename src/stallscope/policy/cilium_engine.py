"""
Cilium's enforcement around the rules: who is an endpoint, what its identity is, modes, allow-localhost.

Source: cilium/cilium pkg/policy/repository.go, pkg/policy/mapstate.go, pkg/labels/cidr.go; reference/policy.md §1.4, §1.5.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from ipaddress import ip_address

from stallscope.model.traffic import Direction, DirectionVerdict, Endpoint, Outcome, RuleRef
from stallscope.policy.case import Case
from stallscope.policy.cilium_attribution import deciding
from stallscope.policy.identity import CLUSTER, NAMESPACE, NAMESPACE_LABELS, SERVICE_ACCOUNT, label_filter
from stallscope.policy.ir import Clause
from stallscope.policy.namespaces import Namespaces
from stallscope.policy.options import CiliumOptions
from stallscope.policy.peers import NODES, parse_network
from stallscope.policy.program import Engine
from stallscope.policy.view import Address, View

#: Reserved identities that are endpoints with a policy of their own on the node (pkg/identity/reserved.go).
MANAGED_RESERVED = frozenset({"init", "health", "ingress"})


#: Repository.computePolicyEnforcementAndRules asks for the label ``host`` and ``init`` of *any* source (LabelArray.Has).
_HOST_LABEL = 'a label with the key "host" makes the agent take the endpoint for the host, which has no policy here'


def cilium_engine(options: CiliumOptions, namespaces: Namespaces) -> Engine:
    """The engine of one agent configuration."""

    def view(endpoint: Endpoint) -> View:
        return make_view(endpoint, options, namespaces)

    def exempt(direction: Direction, subject: View, _peer: View) -> DirectionVerdict | None:
        if subject.governed is False:
            return DirectionVerdict(
                outcome=Outcome.ALLOWED, direction=direction, enforced=False, reason=_unmanaged(subject, options)
            )
        if options.enforcement == "never":
            return DirectionVerdict(
                outcome=Outcome.ALLOWED, direction=direction, reason="policy enforcement is off (enable-policy=never)"
            )
        if "host" in subject.bare and not options.host_firewall:
            return DirectionVerdict(outcome=Outcome.ALLOWED, direction=direction, reason=_HOST_LABEL)
        return None

    def after(case: Case, verdict: DirectionVerdict, _port: int) -> DirectionVerdict:
        return _after(case, verdict, options)

    def attribution(case: Case, clauses: Sequence[Clause], port: int) -> tuple[RuleRef, ...]:
        own_entry = options.version < (1, 20) and options.localhost != "policy" and _from_host(case)
        named = case.destination.named_ports
        return deciding(clauses, case.peer, case.protocol, named, port, localhost=own_entry)

    return Engine(
        view=view,
        exempt=exempt,
        after=after,
        resolve=resolve,
        attribution=attribution,
        nodes=True,
        reads=frozenset({"host", "init"}),
        missing="whether both ends share a node (host network)",
    )


def _unmanaged(view: View, options: CiliumOptions) -> str:
    if view.endpoint.host_network or NODES & view.reserved:
        reason = "host network: pod policy does not apply to this end"
        return reason if not options.host_firewall else f"{reason}, and no host policy is known for it"
    return "not an endpoint of this cluster"


def resolve(source: Endpoint, destination: Endpoint) -> Sequence[tuple[Endpoint, Endpoint]]:
    """
    A host-network pod has no identity of its own: its peers see ``host`` on the same node, ``remote-node`` on another.
    Without node names both are possible.
    """
    return [
        (left, right)
        for left in _as_peer(source, destination)
        for right in _as_peer(destination, source)
        if not _contradiction(source, destination, left, right)
    ]


def _as_peer(end: Endpoint, other: Endpoint) -> Sequence[Endpoint]:
    if not (end.host_network and end.namespace):
        return (end,)
    if end.node and other.node:
        names: tuple[str, ...] = ("host",) if end.node == other.node else ("remote-node",)
    else:
        names = ("host", "remote-node")
    return tuple(replace(end, namespace="", reserved=(name,), labels=(), named_ports=()) for name in names)


def _contradiction(source: Endpoint, destination: Endpoint, left: Endpoint, right: Endpoint) -> bool:
    both = source.host_network and destination.host_network
    return both and left.reserved != right.reserved


def make_view(endpoint: Endpoint, options: CiliumOptions, namespaces: Namespaces) -> View:
    """Identity labels, address and enforcement of one endpoint."""
    labels: dict[str, str] = {}
    sourced: dict[str, str] = {}
    known = True
    raw = _raw(endpoint.raw_labels)
    address = parse_address(endpoint.ip) or _raw_address(raw)
    reserved = frozenset(endpoint.reserved) | {k[9:] for k in raw if k.startswith("reserved:")}
    if endpoint.is_pod:
        keeps = label_filter(options.version, options.labels).keeps
        labels = {k: v for k, v in endpoint.labels if keeps(k)}
        own, known = namespaces.of(endpoint.namespace)
        derived = {f"{NAMESPACE_LABELS}.{k}": v for k, v in own.items()}
        derived |= {NAMESPACE: endpoint.namespace, CLUSTER: options.cluster}
        if endpoint.service_account:
            derived[SERVICE_ACCOUNT] = endpoint.service_account
        sourced.update((f"k8s:{k}", v) for k, v in labels.items())
        sourced.update((f"k8s:{k}", v) for k, v in derived.items() if keeps(k))
        address = None
    else:
        reserved, address = _reserved(reserved, address, endpoint, options)
        if NODES & reserved and not raw:
            sourced.update(_node_labels(endpoint, "host" in reserved, options))
    sourced.update((f"reserved:{name}", "") for name in reserved)
    sourced.update(raw)
    governed = endpoint.is_pod or bool(MANAGED_RESERVED & reserved) or ("host" in reserved and options.host_firewall)
    bare = {k.partition(":")[2]: v for k, v in sourced.items()}
    return View(
        endpoint=endpoint,
        labels=labels,
        sourced=sourced,
        bare=bare,
        namespace_known=known,
        reserved=reserved,
        address=address,
        governed=governed and not endpoint.host_network,
    )


def _node_labels(endpoint: Endpoint, host: bool, options: CiliumOptions) -> Mapping[str, str]:
    """
    A node's own labels, and its cluster's, are part of its identity only with enable-node-selector-labels
    (pkg/node/manager nodeIdentityLabels); the local node is its host endpoint, whose labels host policies select.
    """
    source = "k8s" if host else "node"
    found = {f"{source}:{k}": v for k, v in endpoint.node_labels} if host or options.node_selectors else {}
    if options.node_selectors and (not host or options.version >= (1, 20)):
        found[f"k8s:{CLUSTER}"] = options.cluster
    return found


def _raw(labels: Sequence[str]) -> Mapping[str, str]:
    found = {}
    for label in labels:
        key, _, value = label.partition("=")
        found[key if ":" in key else f"unspec:{key}"] = value
    return found


def _raw_address(raw: Mapping[str, str]) -> Address | None:
    """The address behind a label ``cidr:1.2.3.4/32``, as identities of single addresses carry it."""
    for key in raw:
        network = parse_network(key[5:]) if key.startswith("cidr:") else None
        if network is not None and network.num_addresses == 1:
            return network.network_address
    return None


def _reserved(
    reserved: frozenset[str], address: Address | None, endpoint: Endpoint, options: CiliumOptions
) -> tuple[frozenset[str], Address | None]:
    """Nodes are known by identity (by address only with policy-cidr-match-mode=nodes); other addresses are the world."""
    if NODES & reserved:
        return reserved, address if options.cidr_matches_nodes else None
    if address is not None and not reserved & {"init", "health", "ingress", "unmanaged"}:
        world = f"world-ipv{address.version}" if options.dual_stack else "world"  # pkg/labels/cidr.go getWorldLabel
        return reserved | {world}, address
    if not reserved and endpoint.ip == "" and not endpoint.raw_labels:
        return frozenset({"world"}), None
    return reserved, address


def parse_address(text: str) -> Address | None:
    try:
        return ip_address(text) if text else None
    except ValueError:
        return None


def _after(case: Case, verdict: DirectionVerdict, options: CiliumOptions) -> DirectionVerdict:
    """Mode ``always``, endpoints still initialising, and the host's right to reach its own pods."""
    subject = case.subject
    silent = verdict.outcome is Outcome.ALLOWED and not verdict.rules
    isolated = any(s.block.isolates for s in case.selected)
    if silent and not isolated and (options.enforcement == "always" or "init" in subject.bare):
        reason = (
            "enable-policy=always denies what no rule admits"
            if options.enforcement == "always"
            else 'the endpoint is initialising (or carries a label with the key "init")'
        )
        verdict = DirectionVerdict(outcome=Outcome.DENIED, direction=case.direction, reason=reason)
    if _from_host(case):
        return _localhost(case, verdict, options)
    return verdict


def _from_host(case: Case) -> bool:
    return case.direction is Direction.INGRESS and "host" in case.peer.reserved and "host" not in case.subject.reserved


def _localhost(case: Case, verdict: DirectionVerdict, options: CiliumOptions) -> DirectionVerdict:
    """
    allow-localhost auto/always: the node reaches its pods unless a rule denies it. From 1.20 the exception stands below all
    rules, so it does not help an endpoint that no rule selects under enable-policy=always (reference/policy.md §1.4).
    """
    if options.localhost == "policy" or verdict.rules or verdict.outcome not in (Outcome.DENIED, Outcome.UNJUDGED):
        return verdict
    if verdict.outcome is Outcome.UNJUDGED:
        return verdict
    if options.version >= (1, 20) and options.enforcement == "always" and not case.selected:
        return verdict
    return DirectionVerdict(
        outcome=Outcome.ALLOWED, direction=case.direction, reason="the node may always reach its own pods"
    )
