"""One question to a judgement: may this role (or pod) talk to that one on this port, and which line says so."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from stallscope.errors import UsageError
from stallscope.judge.flows import WORST_FIRST, judge_pair, zone_of
from stallscope.judge.members import members
from stallscope.judge.network import Member, Network
from stallscope.judge.outside import outside_end
from stallscope.judge.result import FlowJudgement, JobJudgement, Judgement
from stallscope.model.traffic import Flow, FlowKind, Outside, PortRange


def ask(
    judgement: Judgement, judged: JobJudgement, source: str, destination: str, ports: PortRange
) -> tuple[FlowJudgement, ...]:
    """
    Verdicts for every pair of classes of the two ends, worst first; nothing when both ends are one pod. `source` and
    `destination` are role names, pod names or `Outside` values. Raises UsageError when the job has no such end.
    """
    nodes = {n.name: n for n in judgement.topology.nodes} if judgement.topology else {}
    pods = members(judged.job, judged.witness, nodes, judgement.facts)
    sources, destinations = (_end(judged, name, pods, judgement) for name in (source, destination))
    network = Network(policies=judgement.policies, mesh=judgement.mesh, services=judged.job.services)
    flow = Flow(kind=FlowKind.SERVICE, source=source, destination=destination, ports=(ports,), reason="asked")
    found: dict[Hashable, FlowJudgement] = {}
    for a in sources:
        for b in destinations:
            if a.endpoint.name == b.endpoint.name:
                continue
            key = tuple((network.key(m), zone_of(m.endpoint)) for m in (a, b))
            known = found.get(key)
            found[key] = known._replace(pairs=known.pairs + 1) if known else judge_pair(flow, a, b, 1, ports, network)
    return tuple(sorted(found.values(), key=lambda f: WORST_FIRST.index(f.verdict.outcome)))


def _end(judged: JobJudgement, name: str, pods: Sequence[Member], judgement: Judgement) -> Sequence[Member]:
    """The members an end names. Role names match without regard to case."""
    job = judged.job
    named = [m for m in pods if m.endpoint.name == name] or [m for m in pods if m.role.lower() == name.lower()]
    if named:
        return named
    if name in set(Outside):
        known = outside_end(Outside(name), judgement.inputs.objects, job)
        if known.endpoint is None:
            raise UsageError(f"nothing is known about {name}: {known.why}", hint="add its manifest to the input")
        return [Member(role=name, index=0, endpoint=known.endpoint, annotations=known.annotations)]
    ends = ", ".join([*(r.name for r in job.roles), *Outside])
    raise UsageError(f"{job.ref} has no role or pod '{name}'", hint=f"one of: {ends}, or a pod name")
