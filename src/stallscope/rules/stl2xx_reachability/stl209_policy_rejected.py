"""STL209: the policy agent refuses the object, so it is absent although the API server accepted it."""

from __future__ import annotations

from collections.abc import Iterable

from stallscope.findings import Finding, Severity
from stallscope.judge.result import Judgement
from stallscope.rules.base import Report
from stallscope.rules.support.rejections import rejection, relevant

_REPORT = Report("STL209", "policy-rejected", Severity.WARNING)


def check(judgement: Judgement) -> Iterable[Finding]:
    for found in relevant(judgement, judgement.policies.rejected):
        yield rejection(
            _REPORT,
            found,
            f"{found.policy.ref} is refused by the policy engine and has no effect: {found.reason}",
            "the engine refuses the whole object because of this",
            (
                "the API server accepts it; only status.conditions[Valid]=False and the agent's log tell",
                "pods it should isolate stay open, connections it should allow stay closed by others",
            ),
            "correct the field; every spec of the object is dropped until then",
        )


RULE = _REPORT.rule(
    check,
    what="A policy object passes the API server's schema but is refused by the agent that should enforce it, with the "
    "agent's reason.",
    why="A rejected policy is a missing policy. The allow rule that the job needs is in the cluster, and does nothing.",
    bad="""\
egress:
  - toEndpoints: [{}]
    toCIDR: [10.0.0.0/8]          # two kinds of peers in one rule
""",
    good="""\
egress:
  - toEndpoints: [{}]
  - toCIDR: [10.0.0.0/8]
""",
    fix="Split or correct the rule as the reason says.",
    sources=(
        "https://github.com/cilium/cilium/issues/44504",
        "https://github.com/cilium/cilium/blob/main/pkg/policy/api/rule_validation.go",
    ),
)
