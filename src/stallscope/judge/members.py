"""A job's pods as the two ends of flows, under one placement."""

from __future__ import annotations

from collections.abc import Mapping

from stallscope.judge.inputs import ClusterFacts
from stallscope.judge.network import Member
from stallscope.judge.pods import endpoint
from stallscope.judge.witness import Witness
from stallscope.model.topology import Node
from stallscope.model.workload import TrainingJob


def members(job: TrainingJob, witness: Witness | None, nodes: Mapping[str, Node], facts: ClusterFacts) -> list[Member]:
    """Every pod of `job` where `witness` puts it (nowhere without one)."""
    roles = {role.name: role for role in job.roles}
    placed = witness.nodes if witness else {}
    return [
        Member(
            role=pod.role,
            index=pod.index,
            endpoint=endpoint(pod, roles[pod.role], nodes.get(placed.get(pod.name) or ""), facts),
            annotations=roles[pod.role].template.annotations,
        )
        for pod in job.pods
    ]
