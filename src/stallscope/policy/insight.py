"""
Questions about policies that are not verdicts: which zone labels they select and what comes of it, which policies select
nobody, what a pod's identity is made of. Rules and remedies ask them; reference/policy.md §0.1, §0.6, §5.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

from stallscope.model.kube import KubeObject
from stallscope.model.labels import Requirement
from stallscope.model.source import Location, Route, as_list, as_map
from stallscope.model.traffic import Direction, Endpoint
from stallscope.policy.cilium_selectors import split_key
from stallscope.policy.identity import filter_labels, label_filter
from stallscope.policy.options import cilium_options
from stallscope.policy.policyset import EngineOptions, PolicySet

TOPOLOGY = "topology.kubernetes.io/"

_SUBJECTS = frozenset({"endpointSelector", "podSelector", "subject"})
_NODES = frozenset({"nodeSelector", "fromNodes", "toNodes", "nodes"})
_NEGATIVE = frozenset({"NotIn", "DoesNotExist"})
_MAX_DEPTH = 24


class Effect(StrEnum):
    """What a selector on a topology label does on a given engine."""

    WORKS = "works"
    INERT = "inert"  # it matches no pod
    INVERTED = "inverted"  # it matches every pod
    NODES = "nodes"  # it is about nodes: host-network peers only


class ZoneLabelUse(NamedTuple):
    """
    One requirement on a ``topology.kubernetes.io`` key. `subject`: it chooses whom the policy applies to; else it is a peer
    of `section` (``ingress``, ``egressDeny``…). `effect` is on the engine of the set, `elsewhere` on an engine that keeps
    the label in identity (Cilium before 1.18.7, any other CNI).
    """

    policy: KubeObject
    location: Location
    need: Requirement
    subject: bool
    section: str
    effect: Effect
    elsewhere: Effect


def zone_label_users(policies: PolicySet) -> tuple[ZoneLabelUse, ...]:
    """Every use of a topology label in the policies in force, in reading order."""
    return tuple(use for policy in policies.policies for use in _uses(policy, policies.options))


def _uses(policy: KubeObject, options: EngineOptions) -> Iterator[ZoneLabelUse]:
    for route, need in _requirements(policy.body, ()):
        _, key = split_key(need.key)
        if not key.startswith(TOPOLOGY):
            continue
        names = [step for step in route if isinstance(step, str)]
        about_nodes = not _NODES.isdisjoint(names)
        kept = options.cni != "cilium" or label_filter(options.version, options.options.get("labels", "")).keeps(key)
        lost = Effect.INVERTED if need.operator in _NEGATIVE else Effect.INERT
        works = Effect.NODES if about_nodes else Effect.WORKS
        section = next((s for s in names if s.startswith(("ingress", "egress"))), "")
        yield ZoneLabelUse(
            policy=policy,
            location=policy.at(*route),
            need=Requirement(key, need.operator, need.values),
            subject=not section and not _SUBJECTS.isdisjoint(names),
            section=section,
            effect=works if kept or about_nodes else lost,
            elsewhere=works,
        )


def _requirements(node: Any, route: Route, depth: int = 0) -> Iterator[tuple[Route, Requirement]]:
    """Every label requirement below a body, with its route."""
    if depth > _MAX_DEPTH:
        return
    if isinstance(node, Mapping):
        for key, value in as_map(node.get("matchLabels")).items():
            yield (*route, "matchLabels", str(key)), Requirement(str(key), "In", (str(value),))
        for index, item in enumerate(as_list(node.get("matchExpressions"))):
            body = as_map(item)
            values = tuple(str(v) for v in as_list(body.get("values")))
            need = Requirement(str(body.get("key", "")), str(body.get("operator", "")), values)
            yield (*route, "matchExpressions", index), need
        for key, value in node.items():
            if key not in ("matchLabels", "matchExpressions", "metadata", "status"):
                yield from _requirements(value, (*route, str(key)), depth + 1)
    for index, value in enumerate(as_list(node)):
        yield from _requirements(value, (*route, index), depth + 1)


class SelectsNobody(NamedTuple):
    """A policy none of the given endpoints is selected by; `location` is its selector."""

    policy: KubeObject
    location: Location


def selects_nothing(policies: PolicySet, endpoints: Iterable[Endpoint]) -> tuple[SelectsNobody, ...]:
    """
    Policies whose subject matches none of `endpoints` (a match that depends on an unknown fact counts as one). Give every
    pod there is: for a part of the cluster, the answer is about that part.
    """
    program = policies.program
    views = {view.key: view for view in map(program.view, endpoints)}
    used = {s.block.policy for view in views.values() for d in Direction for s in program.selected(d, view).chosen}
    places: dict[KubeObject, Location] = {}
    for block in program.blocks:
        places.setdefault(block.policy, block.ref.location)
    return tuple(SelectsNobody(policy=p, location=where) for p, where in places.items() if p not in used)


def identity_labels(labels: Mapping[str, str], options: EngineOptions) -> dict[str, str]:
    """The labels that policies can select: on Cilium what its filter keeps, elsewhere all of them."""
    if options.cni != "cilium":
        return dict(labels)
    return filter_labels(labels, options.version, options.options.get("labels", ""))


class IdentityKey(NamedTuple):
    """A label key that stays in identity, and how many values the pods have for it."""

    key: str
    values: int


def identity_exploding_keys(
    pods: Sequence[Mapping[str, str]], options: EngineOptions
) -> tuple[int, tuple[IdentityKey, ...]]:
    """
    How many Cilium identities these pods (label sets of one namespace and service account) need, and the keys whose values
    account for at least half of that. (0, ()) on engines without identities.
    """
    if options.cni != "cilium":
        return 0, ()
    kept = [identity_labels(labels, options) for labels in pods]
    identities = len({tuple(sorted(labels.items())) for labels in kept})
    values: dict[str, set[str]] = {}
    for labels in kept:
        for key, value in labels.items():
            values.setdefault(key, set()).add(value)
    many = (IdentityKey(k, len(v)) for k, v in sorted(values.items()) if len(v) > 1 and 2 * len(v) >= identities)
    return identities, tuple(many)


#: cilium#46305, v1.19 #46456: an ingress peer with only an ipBlock also admits the policy's whole namespace.
IP_BLOCK_WINDOW = ((1, 19, 0), (1, 19, 4))


def ip_block_admits_namespace(policies: PolicySet) -> tuple[tuple[KubeObject, Location], ...]:
    """
    NetworkPolicy ingress peers that a Cilium of this set's version reads too widely (a bug of 1.19.0 to 1.19.4 with
    policy-default-local-cluster, its default there). Verdicts are those of the fixed agent.
    """
    options = policies.options
    flags = cilium_options(options.version, options.options)
    if options.cni != "cilium" or not options.version or not flags.local_cluster_peers:
        return ()
    if not IP_BLOCK_WINDOW[0] <= flags.version <= IP_BLOCK_WINDOW[1]:
        return ()
    return tuple(
        (policy, policy.at("spec", "ingress", index, "from", place))
        for policy in policies.policies
        if policy.kind == "NetworkPolicy"
        for index, rule in enumerate(as_list(policy.get("spec", "ingress")))
        for place, peer in enumerate(as_list(as_map(rule).get("from")))
        if as_map(as_map(peer).get("ipBlock"))
    )
