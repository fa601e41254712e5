"""One question to a judgement: may this role (or pod) talk to that one on this port, and which line says so."""

from __future__ import annotations

from functools import partial

from stallscope.errors import UsageError
from stallscope.judge.flows import judge_flows
from stallscope.judge.members import members
from stallscope.judge.outside import outside_endpoint
from stallscope.judge.result import FlowJudgement, JobJudgement, Judgement
from stallscope.model.traffic import Endpoint, Flow, FlowKind, Outside, PortRange
from stallscope.model.workload import TrainingJob


def ask(
    judgement: Judgement, judged: JobJudgement, source: str, destination: str, ports: PortRange
) -> tuple[FlowJudgement, ...]:
    """
    Verdicts for every pair of classes of the two ends, worst first. `source` and `destination` are role names, pod names
    or `Outside` values. Raises UsageError when the job has no such end.
    """
    job = judged.job
    nodes = {n.name: n for n in judgement.topology.nodes} if judgement.topology else {}
    ends = [_end(job, source), _end(job, destination)]
    flow = Flow(kind=FlowKind.SERVICE, source=ends[0][0], destination=ends[1][0], ports=(ports,), reason="asked")
    pods = [
        m
        for m in members(job, judged.witness, nodes, judgement.facts)
        if not any(role == m.role and pod and pod != m.endpoint.name for role, pod in ends if ends[0][0] != ends[1][0])
    ]
    found = judge_flows([flow], pods, judgement.policies, partial(_outside, judgement=judgement))
    wanted = [pod for _, pod in ends]
    exact = tuple(f for f in found if wanted[0] in ("", f.source) and wanted[1] in ("", f.destination))
    return exact or found


def _outside(which: Outside, *, judgement: Judgement) -> tuple[Endpoint | None, str]:
    return outside_endpoint(which, judgement.inputs.objects)


def _end(job: TrainingJob, name: str) -> tuple[str, str]:
    """(role, pod) of an end; the pod is empty for a whole role. Role names match without regard to case."""
    for role in job.roles:
        if role.name.lower() == name.lower():
            return role.name, ""
    for pod in job.pods:
        if pod.name == name:
            return pod.role, pod.name
    if name in set(Outside):
        return name, ""
    known = ", ".join([*(r.name for r in job.roles), *Outside])
    raise UsageError(f"{job.ref} has no role or pod '{name}'", hint=f"one of: {known}, or a pod name")
