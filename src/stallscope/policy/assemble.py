"""
Objects and options -> a compiled `PolicySet`: which dialects the engine enforces, and how it reads them. Engines and
dialects are imported where they are met: a cluster has one engine, and mostly one or two dialects.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stallscope.model.kube import KubeObject
from stallscope.model.labels import Selector
from stallscope.model.source import Location
from stallscope.model.traffic import Direction, RuleRef
from stallscope.policy.enforced import UNMODELLED, is_policy, why_ignored
from stallscope.policy.ir import Block, Tier
from stallscope.policy.kinds import is_calico, is_cilium, is_kcnp, is_netpol
from stallscope.policy.namespaces import Namespaces
from stallscope.policy.policyset import EngineOptions, PolicySet, Rejected
from stallscope.policy.program import Engine, Program

if TYPE_CHECKING:
    from stallscope.policy.cilium_context import CiliumContext
    from stallscope.policy.netpol import NetpolReading

ADMIN, NORMAL, BASELINE = range(3)

Refusal = tuple[str, Location]


@dataclass(slots=True)
class _Build:
    """What is collected while the objects are read."""

    options: EngineOptions
    blocks: list[Block] = field(default_factory=list)
    policies: list[KubeObject] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    ignored: list[Rejected] = field(default_factory=list)

    def add(self, policy: KubeObject, blocks: Sequence[Block], refused: Refusal | None = None) -> None:
        if refused is not None:
            self.rejected.append(Rejected(policy=policy, reason=refused[0], location=refused[1]))
            return
        self.policies.append(policy)
        self.blocks.extend(blocks)

    def relevant(self, objects: Sequence[KubeObject], *, cluster_policies: bool = False) -> list[KubeObject]:
        """The policy objects that are enforced here; the others are noted with the reason."""
        found = []
        for item in filter(is_policy, objects):
            reason = why_ignored(item, self.options.cni, self.options.version, cluster_policies=cluster_policies)
            if reason:
                self.ignored.append(Rejected(policy=item, reason=reason, location=item.at("kind")))
            else:
                found.append(item)
        return found

    def finish(self, tiers: Sequence[Tier], engine: Engine) -> PolicySet:
        return PolicySet(
            options=self.options,
            policies=tuple(self.policies),
            rejected=tuple(self.rejected),
            ignored=tuple(self.ignored),
            program=Program(self.blocks, tiers, engine),
        )


def assemble(objects: Sequence[KubeObject], options: EngineOptions) -> PolicySet:
    """Compile for the engine `options.cni` names; an unknown name is judged as the Kubernetes API documents it."""
    build = _Build(options)
    if options.cni == "cilium":
        return _cilium(objects, build)
    if options.cni == "calico":
        return _calico(objects, build)
    return _generic(objects, build)


def _cilium(objects: Sequence[KubeObject], build: _Build) -> PolicySet:
    from stallscope.policy.cilium_context import CiliumContext
    from stallscope.policy.cilium_engine import cilium_engine
    from stallscope.policy.options import cilium_options

    flags = cilium_options(build.options.version, build.options.options)
    context = CiliumContext(
        options=flags,
        normal_tier=NORMAL,
        services={(o.namespace, o.name): o for o in objects if o.kind == "Service" and o.api_version == "v1"},
        cidr_groups={o.name: o for o in objects if o.kind == "CiliumCIDRGroup" and o.group == "cilium.io"},
    )
    for item in build.relevant(objects, cluster_policies=flags.cluster_network_policy):
        _read_by_cilium(item, build, context)
    tiers = (Tier("admin", False), Tier("normal", False), Tier("baseline", False))
    return build.finish(tiers, cilium_engine(flags, Namespaces(build.options.namespaces, objects)))


def _read_by_cilium(item: KubeObject, build: _Build, context: CiliumContext) -> None:
    if is_netpol(item):
        from stallscope.policy.cilium_netpol import cilium_reading

        _netpol(item, build, cilium_reading(context))
    elif is_cilium(item):
        from stallscope.policy.cilium import compile_cilium
        from stallscope.policy.cilium_reject import rejection

        refused = rejection(item, context.options)
        build.add(item, [] if refused else compile_cilium(item, context), refused)
    elif is_kcnp(item):
        from stallscope.policy.clusternetpol import compile_kcnp, refusal

        build.add(item, compile_kcnp(item, admin=ADMIN, baseline=BASELINE, context=context), refusal(item, context))


def _calico(objects: Sequence[KubeObject], build: _Build) -> PolicySet:
    from stallscope.policy.calico import NETPOL_ORDER, calico_tiers, compile_calico
    from stallscope.policy.calico_engine import calico_engine, calico_netpol

    tiers = calico_tiers(objects)
    sets = [o for o in objects if o.kind in ("NetworkSet", "GlobalNetworkSet")]
    for item in build.relevant(objects):
        if is_netpol(item):
            _netpol(item, build, calico_netpol(tiers.index["default"], NETPOL_ORDER, item.name))
        elif is_calico(item):
            blocks, refused = compile_calico(item, tiers, sets)
            build.add(item, blocks, refused)
        else:
            _cluster_policy(item, build, tiers.admin, tiers.baseline)
    return build.finish(tiers.tiers, calico_engine(Namespaces(build.options.namespaces, objects)))


def _generic(objects: Sequence[KubeObject], build: _Build) -> PolicySet:
    from stallscope.policy.generic import generic_engine

    for item in build.relevant(objects):
        if is_netpol(item):
            _netpol(item, build)
        elif (item.group, item.kind) in UNMODELLED:
            build.add(item, _unmodelled(item))
        else:
            _cluster_policy(item, build, ADMIN, BASELINE)
    tiers = (Tier("admin", False), Tier("normal", True), Tier("baseline", False))
    return build.finish(tiers, generic_engine(Namespaces(build.options.namespaces, objects)))


def _netpol(item: KubeObject, build: _Build, reading: NetpolReading | None = None) -> None:
    """NetworkPolicy v1, plainly or as an engine reads it."""
    from stallscope.policy.netpol import compile_netpol, problem_of

    blocks = compile_netpol(item, reading) if reading else compile_netpol(item, tier=NORMAL)
    build.add(item, blocks, problem_of(item))


def _cluster_policy(item: KubeObject, build: _Build, admin: int, baseline: int) -> None:
    """ClusterNetworkPolicy or AdminNetworkPolicy; on an unnamed engine nobody knows whether they are enforced at all."""
    from stallscope.policy.adminnetpol import compile_anp
    from stallscope.policy.clusternetpol import compile_kcnp

    compiler = compile_kcnp if is_kcnp(item) else compile_anp
    blocks = compiler(item, admin=admin, baseline=baseline)
    if build.options.cni == "generic" and build.options.options.get("cluster-policies") != "true":
        fact = f"whether this cluster's engine implements {item.kind}"
        blocks = [_replace_subject(b, fact) for b in blocks]
    build.add(item, blocks)


def _replace_subject(block: Block, fact: str) -> Block:
    from stallscope.policy.subjects import UnsureSubject

    return Block(
        policy=block.policy,
        ref=block.ref,
        direction=block.direction,
        subject=UnsureSubject(block.subject, fact),
        tier=block.tier,
        isolates=block.isolates,
        clauses=block.clauses,
    )


def _unmodelled(policy: KubeObject) -> list[Block]:
    """A policy we cannot read: it may isolate any pod it can reach, so verdicts there name it."""
    from stallscope.policy.subjects import PodSubject, UnsureSubject

    namespace = policy.namespace
    everyone = PodSubject(Selector(), None if namespace else Selector(), namespace)
    fact = f"{policy.ref} ({policy.group} is not modelled)"
    return [
        Block(
            policy=policy,
            ref=RuleRef(policy=policy.ref, location=policy.at("spec")),
            direction=direction,
            subject=UnsureSubject(everyone, fact),
            tier=NORMAL,
            isolates=True,
            clauses=(),
        )
        for direction in Direction
    ]
