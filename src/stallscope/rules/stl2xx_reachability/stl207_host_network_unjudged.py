"""STL207: policies do not apply to pods on the host network, so nothing was judged for them."""

from __future__ import annotations

from collections.abc import Iterable

from stallscope.findings import Confidence, Finding, Severity
from stallscope.judge.result import JobJudgement, Judgement
from stallscope.model.source import Location
from stallscope.rules.base import Report
from stallscope.rules.support.containers import host_network, ranked_pods, ranked_roles
from stallscope.rules.support.policies import subject_selectors
from stallscope.rules.support.shapes import pod_shapes
from stallscope.rules.support.words import label, listed

_REPORT = Report("STL207", "host-network-unjudged", Severity.INFO)


def check(judgement: Judgement) -> Iterable[Finding]:
    if not judgement.policies.policies:
        return
    for judged in judgement.jobs:
        found = _one(judgement, judged)
        if found is not None:
            yield found


def _one(judgement: Judgement, judged: JobJudgement) -> Finding | None:
    job = judged.job
    roles = [r for r in ranked_roles(job) if host_network(r)]
    if not roles or ranked_pods(job) < 2:
        return None
    mixed = len(roles) < len(ranked_roles(job))
    aimed = _aimed(judgement, judged)
    use = "uses" if len(roles) == 1 else "use"
    return _REPORT.finding(
        f"{listed([r.name for r in roles])} of {job.ref} {use} the host network: pod policies neither protect nor stop them",
        (
            label(roles[0].template.at("spec", "hostNetwork"), "outside every pod policy", primary=True),
            *(label(place, "meant for these pods, without effect on them") for place in aimed[:1]),
        ),
        subject=job.ref,
        severity=Severity.WARNING if mixed else None,
        confidence=Confidence.DEPENDS,
        notes=(
            "their flows are unjudged: a host-network pod is its node for a policy engine (Cilium: host or remote-node; "
            "others: the node's address), and only host firewalls apply",
            *(
                (
                    "other ranks are ordinary pods: whether the two may talk then depends on who shares a node (always "
                    "allowed) and who does not",
                )
                if mixed
                else ()
            ),
        ),
        help="judge the node firewall or security group instead; or use the pod network",
    )


def _aimed(judgement: Judgement, judged: JobJudgement) -> list[Location]:
    """Policies whose selector matches the host-network pods' labels."""
    hosts = {r.name for r in ranked_roles(judged.job) if host_network(r)}
    shapes = pod_shapes(judged.job)
    return [
        policy.at(*route)
        for policy in judgement.policies.policies
        if policy.namespace in ("", judged.job.namespace)
        for selector, route in subject_selectors(policy)
        if selector.requirements and hosts & set(shapes.roles(selector))
    ]


RULE = _REPORT.rule(
    check,
    what="Ranks run with hostNetwork: true while there are network policies. Their flows are reported as unjudged, never as "
    "allowed. A warning when only some roles of the job use the host network.",
    why="Nobody should read 'no denial found' as 'reachable'. A job of both kinds gets verdicts that depend on which pods "
    "share a node.",
    bad="""\
Master: {template: {spec: {hostNetwork: true}}}
Worker: {template: {spec: {}}}             # policies apply to the workers only
""",
    good="""\
Master: {template: {spec: {hostNetwork: true}}}
Worker: {template: {spec: {hostNetwork: true}}}
""",
    fix="Use one network for all ranks, and check the node firewall when it is the host's.",
    sources=(
        "https://github.com/projectcalico/calico/issues/4493",
        "https://github.com/cilium/cilium/issues/12277",
        "https://kubernetes.io/docs/concepts/services-networking/network-policies/#networkpolicy-and-hostnetwork-pods",
    ),
)
