"""Objects and options -> a compiled `PolicySet`: which dialects the engine enforces, and how it reads them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stallscope.model.kube import KubeObject
from stallscope.policy.cilium import CLUSTERWIDE, NAMESPACED, compile_cilium
from stallscope.policy.cilium_context import CiliumContext
from stallscope.policy.cilium_engine import cilium_engine
from stallscope.policy.cilium_netpol import cilium_reading
from stallscope.policy.cilium_reject import rejection
from stallscope.policy.generic import generic_engine
from stallscope.policy.ir import ONE_TIER, Block
from stallscope.policy.namespaces import Namespaces
from stallscope.policy.netpol import compile_netpol
from stallscope.policy.options import cilium_options
from stallscope.policy.policyset import EngineOptions, PolicySet, Rejected
from stallscope.policy.program import Program


def assemble(objects: Sequence[KubeObject], options: EngineOptions) -> PolicySet:
    if options.cni == "cilium":
        return _cilium(objects, options)
    return _generic(objects, options)


def is_netpol(item: KubeObject) -> bool:
    return item.kind == "NetworkPolicy" and item.group == "networking.k8s.io"


def _cilium(objects: Sequence[KubeObject], options: EngineOptions) -> PolicySet:
    namespaces = Namespaces(options.namespaces, objects)
    flags = cilium_options(options.version, options.options)
    context = CiliumContext(
        options=flags,
        services={(o.namespace, o.name): o for o in objects if o.kind == "Service" and o.api_version == "v1"},
        cidr_groups={o.name: o for o in objects if o.kind == "CiliumCIDRGroup"},
    )
    blocks: list[Block] = []
    policies: list[KubeObject] = []
    rejected: list[Rejected] = []
    reading = cilium_reading(context)
    for item in objects:
        if is_netpol(item):
            policies.append(item)
            blocks.extend(compile_netpol(item, reading))
        elif item.kind in (NAMESPACED, CLUSTERWIDE) and item.group == "cilium.io":
            refused = rejection(item, flags)
            if refused is not None:
                rejected.append(Rejected(policy=item, reason=refused[0], location=refused[1]))
                continue
            policies.append(item)
            blocks.extend(compile_cilium(item, context))
    program = Program(blocks, ONE_TIER, cilium_engine(flags, namespaces))
    return PolicySet(options=options, policies=tuple(policies), rejected=tuple(rejected), program=program)


def _generic(objects: Sequence[KubeObject], options: EngineOptions) -> PolicySet:
    policies = tuple(o for o in objects if is_netpol(o))
    blocks: list[Any] = [b for p in policies for b in compile_netpol(p)]
    program = Program(blocks, ONE_TIER, generic_engine(Namespaces(options.namespaces, objects)))
    return PolicySet(options=options, policies=policies, program=program)
