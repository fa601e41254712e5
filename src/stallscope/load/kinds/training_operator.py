"""
What the five kinds of Kubeflow Training Operator v1 that create one headless Service a replica have in common
(training-operator v1.9: pkg/controller.v1/common/{pod,service,job_controller}.go, pkg/apis/kubeflow.org/v1/*_defaults.go).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from stallscope.judge.inputs import ProblemKind
from stallscope.load.kinds.context import Context, count, describe, dotted, placeholder, shown, template
from stallscope.load.kinds.launch import Launch, launch_of, port_of, with_port
from stallscope.load.kinds.plan import PodIdentity, RolePlan
from stallscope.load.kinds.services import fqdn
from stallscope.model.kube import KubeObject
from stallscope.model.source import Route
from stallscope.model.workload import JobService, Role, RoleKind

PREFIX = "training.kubeflow.org"
JOB_NAME = f"{PREFIX}/job-name"


class Family(NamedTuple):
    """One kind: where its replica specs stand, its container and port, and its roles in the order of their ranks."""

    kind: str
    specs: str
    container: str
    port_name: str
    port: int
    roles: tuple[tuple[str, RoleKind], ...]
    #: Roles of which the API allows only one pod.
    single: tuple[str, ...] = ()

    def port_in(self, plan: RolePlan) -> int:
        """The port a role's main container declares under the kind's port name (the defaulting adds the default)."""
        return port_of(plan.role.template.spec, self.port_name, self.container) or self.port

    @property
    def operator(self) -> str:
        """Value of the label operator-name (`controllerName` of each reconciler)."""
        return f"{self.kind.lower()}-controller"


def read_roles(ctx: Context, obj: KubeObject, family: Family) -> tuple[RolePlan, ...] | None:
    """
    A plan for each replica spec present. ``None`` after reporting why nothing can be expanded.

    Role keys are matched without regard to case, as the operator's defaulting does (setTypeNameToCamelCase). Replicas
    default to 1. The operator walks a Go map of roles, so no order between them is promised: all are created together.
    """
    base: Route = ("spec", family.specs)
    specs = obj.get(*base)
    if not isinstance(specs, Mapping) or not specs:
        trouble = ProblemKind.UNRENDERED if placeholder(specs) else ProblemKind.INVALID
        found = "is missing" if specs is None else f"must map roles to replica specs, found {describe(specs)}"
        ctx.problem(trouble, obj, base, f"{dotted(base)} {found}")
        return None
    plans: list[RolePlan] = []
    known = {name.lower(): (name, kind) for name, kind in family.roles}
    keys = {str(k).lower(): k for k in specs}
    for unknown in (k for low, k in keys.items() if low not in known):
        names = ", ".join(name for name, _ in family.roles)
        ctx.problem(
            ProblemKind.INVALID, obj, (*base, unknown), f"unknown role {shown(str(unknown))}", f"the roles are {names}"
        )
        return None
    for low, (name, kind) in known.items():
        if low not in keys:
            continue
        plan = _read_role(ctx, obj, family, (*base, keys[low]), name, kind)
        if plan is None:
            return None
        plans.append(plan)
    return tuple(plans)


def _read_role(ctx: Context, obj: KubeObject, family: Family, route: Route, name: str, kind: RoleKind) -> RolePlan | None:
    maximum = 1 if name in family.single else 2**31 - 1
    replicas = count(ctx, obj, (*route, "replicas"), default=1, maximum=maximum)
    found = template(ctx, obj, (*route, "template"))
    if replicas is None or found is None:
        return None
    labels = {
        f"{PREFIX}/operator-name": family.operator,
        JOB_NAME: obj.name,
        f"{PREFIX}/replica-type": name.lower(),
    }
    role = Role(
        name=name,
        kind=kind,
        replicas=replicas,
        template=replace(found, spec=with_port(found.spec, family.port_name, family.port, family.container)),
        added_labels=labels,
        replicas_route=(*route, "replicas"),
    )

    def identify(index: int) -> PodIdentity:
        pod = f"{obj.name}-{name.lower()}-{index}"
        return PodIdentity(
            name=pod, labels={f"{PREFIX}/replica-index": str(index)}, host_names=(pod, fqdn(pod, obj.namespace))
        )

    return RolePlan(role=role, identify=identify)


def with_master(plan: RolePlan, *, only: int | None = None) -> RolePlan:
    """The plan whose pods (or whose pod number `only`) carry job-role=master, as IsMasterRole decides for each kind."""
    label = {f"{PREFIX}/job-role": "master"}
    if only is None:
        return RolePlan(role=replace(plan.role, added_labels={**plan.role.added_labels, **label}), identify=plan.identify)

    def identify(index: int) -> PodIdentity:
        identity = plan.identify(index)
        return replace(identity, labels={**identity.labels, **label}) if index == only else identity

    return RolePlan(role=plan.role, identify=identify)


def launches_of(plans: tuple[RolePlan, ...], family: Family) -> dict[str, Launch]:
    """The launch of each role's main container."""
    return {p.role.name: launch_of(p.role.template.spec, family.container) for p in plans}


def _service_labels(plan: RolePlan) -> dict[str, str]:
    """What CreateNewService selects by: the job's and the replica type's labels, not job-role."""
    return {k: v for k, v in plan.role.added_labels.items() if k != f"{PREFIX}/job-role"}


def replica_services(obj: KubeObject, family: Family, plans: tuple[RolePlan, ...], limit: int) -> tuple[JobService, ...]:
    """One headless Service a replica, named like its pod and selecting only it (service.go CreateNewService)."""
    if sum(p.role.replicas for p in plans) > limit:
        return ()
    return tuple(
        JobService(
            name=f"{obj.name}-{plan.role.name.lower()}-{index}",
            namespace=obj.namespace,
            selector={**_service_labels(plan), f"{PREFIX}/replica-index": str(index)},
            publish_not_ready=False,
            ports=(family.port_in(plan),),
        )
        for plan in plans
        for index in range(plan.role.replicas)
    )
