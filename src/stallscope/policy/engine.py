"""
The seam of the policy package: objects -> `PolicySet` -> `Verdict` of an edge.
"""

from __future__ import annotations

from collections.abc import Iterable

from stallscope.model.kube import KubeObject
from stallscope.policy.assemble import assemble
from stallscope.policy.policyset import EngineOptions, PolicySet, Rejected

__all__ = ["EngineOptions", "PolicySet", "Rejected", "compile_policies"]


def compile_policies(objects: Iterable[KubeObject], options: EngineOptions) -> PolicySet:
    """
    Compile every policy object among `objects`. Other kinds give facts (Namespace, Service, CiliumCIDRGroup) or are skipped.
    """
    return assemble(tuple(objects), options)
