"""STL210: a policy of a kind that no engine of this cluster enforces."""

from __future__ import annotations

from collections.abc import Iterable

from stallscope.findings import Finding, Severity
from stallscope.judge.result import Judgement
from stallscope.rules.base import Report
from stallscope.rules.support.rejections import rejection, relevant

_REPORT = Report("STL210", "policy-not-enforced", Severity.WARNING)


def check(judgement: Judgement) -> Iterable[Finding]:
    cni = judgement.policies.options.cni
    for found in relevant(judgement, judgement.policies.ignored):
        yield rejection(
            _REPORT,
            found,
            f"nothing enforces {found.policy.ref}: {found.reason}",
            f"not enforced with CNI '{cni}'",
            ("the object exists and looks active, but no packet is ever compared with it",),
            "state the cluster's CNI with --cni if this is wrong, or write the policy in a dialect the CNI enforces",
        )


RULE = _REPORT.rule(
    check,
    what="A policy object whose kind the cluster's CNI does not enforce: a CiliumNetworkPolicy without Cilium, a "
    "NetworkPolicy on a CNI without policy engine, a tier that is off by default.",
    why="What holds on the laptop or in staging is not what holds in production, and the other way round.",
    bad="""\
# stallscope check --cni calico
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
""",
    good="""\
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
""",
    fix="Use a kind that the CNI enforces, or correct --cni.",
    sources=(
        "https://github.com/ray-project/kuberay/pull/1282",
        "https://kubernetes.io/docs/concepts/services-networking/network-policies/#prerequisites",
    ),
)
