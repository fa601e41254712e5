"""STL219: a policy opens a named port that the pods it is about do not declare."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stallscope.findings import Finding, Severity
from stallscope.judge.pods import named_ports
from stallscope.judge.result import Judgement
from stallscope.model.kube import KubeObject
from stallscope.model.source import Route, as_list, as_map
from stallscope.model.workload import Role, TrainingJob
from stallscope.rules.base import Report
from stallscope.rules.support.policies import subject_selectors
from stallscope.rules.support.words import label, listed

_REPORT = Report("STL219", "named-port-unresolved", Severity.WARNING)
_KINDS = ("NetworkPolicy", "CiliumNetworkPolicy", "CiliumClusterwideNetworkPolicy")


def check(judgement: Judgement) -> Iterable[Finding]:
    for policy in judgement.policies.policies:
        named = tuple(_named(policy)) if policy.file and policy.kind in _KINDS else ()
        for judged in judgement.jobs if named else ():
            if policy.namespace in ("", judged.job.namespace):
                yield from _one(policy, judged.job, named)


def _one(policy: KubeObject, job: TrainingJob, named: tuple[tuple[Route, str], ...]) -> Iterator[Finding]:
    """Ingress ports are looked up on the selected pods themselves, so the files alone decide."""
    selected = _selected(policy, job)
    if not selected:
        return
    declared = {name for role in selected for name, _, _ in named_ports(role.template.spec)}
    for route, name in named:
        if name in declared:
            continue
        yield _REPORT.finding(
            f"{policy.ref} opens the named port {name}, which no container of {listed([r.name for r in selected])} in "
            f"{job.ref} declares",
            (
                label(policy.at(*route), "matches no port at all", primary=True),
                label(selected[0].template.at("spec", "containers"), f"no container port is named {name}"),
            ),
            subject=job.ref,
            key=f"{policy.ref}:{name}",
            notes=(
                "a named port is looked up in the container ports of the destination pod; without one it matches nothing",
                "what you will see: the port that 'is in the policy' stays closed: connections to it time out",
            ),
            help=f"declare the port with name: {name}, or write its number in the policy",
        )


def _selected(policy: KubeObject, job: TrainingJob) -> tuple[Role, ...]:
    return tuple(
        role
        for role in job.roles
        if any(s.matches(p.labels) for p in job.pods_of(role.name)[:1] for s, _ in subject_selectors(policy))
    )


def _named(policy: KubeObject) -> Iterator[tuple[Route, str]]:
    """Ports of ingress rules that are given by name, where they stand."""
    bodies: list[tuple[Route, object]] = [(("spec",), policy.get("spec"))]
    bodies += [(("specs", i), s) for i, s in enumerate(as_list(policy.get("specs")))]
    for base, body in bodies:
        for i, rule in enumerate(as_list(as_map(body).get("ingress"))):
            here: Route = (*base, "ingress", i)
            for j, entry in enumerate(as_list(as_map(rule).get("ports"))):
                yield from _name((*here, "ports", j), entry)
            for j, group in enumerate(as_list(as_map(rule).get("toPorts"))):
                for k, entry in enumerate(as_list(as_map(group).get("ports"))):
                    yield from _name((*here, "toPorts", j, "ports", k), entry)


def _name(route: Route, entry: object) -> Iterator[tuple[Route, str]]:
    value = as_map(entry).get("port")
    if isinstance(value, str) and value and not value.isdigit():
        yield (*route, "port"), value


RULE = _REPORT.rule(
    check,
    what="An ingress rule names a port that no container of the selected job pods declares under that name.",
    why="The rule matches nothing, so the port it was written for stays closed.",
    bad="""\
ingress:
  - ports:
      - port: rendezvous         # the pods declare pytorchjob-port
""",
    good="""\
ingress:
  - ports:
      - port: pytorchjob-port
""",
    fix="Use the name the pods declare, or the number.",
    sources=(
        "https://github.com/antrea-io/antrea/issues/241",
        "https://kubernetes.io/docs/concepts/services-networking/network-policies/",
    ),
)
