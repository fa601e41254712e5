"""
HyperPodPyTorchJob, sagemaker.amazonaws.com/v1. The operator's source is closed; what is used here is its documentation
(docs.aws.amazon.com/sagemaker: "Using the training operator to run jobs"): replicaSpecs, nprocPerNode, and the agent's
port 8080. The labels it puts on pods are not documented: selectors can only be judged by the template's own.
"""

from __future__ import annotations

from collections.abc import Callable

from stallscope.judge.inputs import ProblemKind
from stallscope.load.kinds.context import Context, count, named_items, template
from stallscope.load.kinds.flows import collective, dns, metrics, to_rendezvous
from stallscope.load.kinds.launch import launch_of, ranks_per_pod
from stallscope.load.kinds.plan import Draft, PodIdentity, RolePlan, assemble
from stallscope.load.kinds.rendezvous import resolve
from stallscope.model.kube import KubeObject
from stallscope.model.source import Route
from stallscope.model.traffic import Flow, FlowKind, Outside, port
from stallscope.model.workload import Role, RoleKind, TrainingJob

#: HyperPodElasticAgent listens here for the operator.
AGENT_PORT = 8080


def expand_hyperpod(ctx: Context, obj: KubeObject) -> tuple[TrainingJob, ...]:
    """One role a replica spec, replicas 1 unless said, nprocPerNode ranks a pod."""
    base: Route = ("spec", "replicaSpecs")
    plans: list[RolePlan] = []
    launches = {}
    for index, name, _ in named_items(obj, *base):
        replicas = count(ctx, obj, (*base, index, "replicas"), default=1)
        found = template(ctx, obj, (*base, index, "template"))
        if replicas is None or found is None:
            return ()
        launches[name] = launch_of(found.spec)
        ranks, _note = ranks_per_pod(launches[name], obj.get("spec", "nprocPerNode", default="auto"), by_torchrun=True)
        role = Role(
            name=name,
            kind=RoleKind.WORKER,
            replicas=replicas,
            template=found,
            ranks_per_pod=ranks,
            replicas_route=(*base, index, "replicas"),
        )
        plans.append(RolePlan(role=role, identify=_identifier(obj, name)))
    if not plans:
        ctx.problem(ProblemKind.INVALID, obj, base, "spec.replicaSpecs has no entry with a name")
        return ()
    found_meeting = resolve(plans, obj.namespace, launches, None)
    roles = tuple(p.role for p in plans)
    agent = tuple(
        Flow(
            kind=FlowKind.SERVICE,
            source=Outside.OPERATOR,
            destination=r.name,
            ports=(port(AGENT_PORT),),
            reason="the HyperPod operator starts and watches ranks through the agent in each pod",
            required=False,
        )
        for r in roles
        if r.replicas > 0
    )
    draft = Draft(
        kind="HyperPodPyTorchJob",
        plans=tuple(plans),
        group_labels={},
        rendezvous=found_meeting.rendezvous,
        flows=(*to_rendezvous(roles, found_meeting.rendezvous), *collective(roles), *agent, *dns(roles), *metrics(roles)),
        notes=(
            "labels the HyperPod operator adds to pods are not documented; only the template's are known",
            *found_meeting.notes,
        ),
        unsupported=found_meeting.unsupported,
    )
    return (assemble(ctx, obj, draft),)


def _identifier(obj: KubeObject, name: str) -> Callable[[int], PodIdentity]:
    def identify(index: int) -> PodIdentity:
        return PodIdentity(name=f"{obj.name}-{name}-{index}")

    return identify
