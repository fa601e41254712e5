"""STL211: an L7 rule covers the ports of the ranks, so their traffic goes through a proxy."""

from __future__ import annotations

from collections.abc import Iterable

from stallscope.findings import Finding, Severity
from stallscope.judge.result import FlowJudgement, JobJudgement, Judgement
from stallscope.model.traffic import FlowKind, Outcome
from stallscope.rules.base import Report
from stallscope.rules.support.flows import end_name
from stallscope.rules.support.policies import label_lines
from stallscope.rules.support.words import count, label, listed, unique

_REPORT = Report("STL211", "l7-on-collective-ports", Severity.WARNING)
_KINDS = (FlowKind.COLLECTIVE, FlowKind.RENDEZVOUS, FlowKind.LAUNCHER)


def check(judgement: Judgement) -> Iterable[Finding]:
    for judged in judgement.jobs:
        groups: dict[tuple[str, ...], list[FlowJudgement]] = {}
        for flow in judged.with_outcome(Outcome.PROXIED):
            if flow.flow.kind in _KINDS and not flow.verdict.by_mesh:  # a sidecar without any L7 rule is STL206's
                rules = flow.verdict.deciding.rules
                groups.setdefault(tuple(sorted({r.policy for r in rules})), []).append(flow)
        for policies, flows in groups.items():
            yield _one(judgement, judged, policies, flows)


def _one(judgement: Judgement, judged: JobJudgement, policies: tuple[str, ...], flows: list[FlowJudgement]) -> Finding:
    first = flows[0]
    rules = first.verdict.deciding.rules
    roles = tuple(r for r in judged.job.roles if r.name in (first.source_role, first.destination_role))
    labels = [
        label(r.location, "an L7 rule: redirects what it covers to a proxy", primary=i == 0) for i, r in enumerate(rules)
    ]
    labels += label_lines(judgement, rules, roles)
    kinds = sorted({str(f.flow.kind) for f in flows})
    return _REPORT.finding(
        f"{end_name(first.source)} reaches {end_name(first.destination)} on {first.port} only through a proxy: "
        f"{listed(list(policies)) or 'an L7 rule'} applies L7 rules to {listed(kinds)} traffic",
        unique(labels) or (label(judged.job.source.at(), "proxied", primary=True),),
        subject=judged.job.ref,
        key=",".join(policies),
        notes=(
            f"{count(sum(f.pairs for f in flows), 'pair')} of this job are affected",
            "a redirect wins over every plain allow, broader or narrower",
            "what you will see: NCCL or Gloo bytes are no HTTP, so the proxy resets the connection; or all gradients pass "
            "through one proxy process at a fraction of line rate",
        ),
        help="restrict the L7 rule to the ports that speak the protocol, outside 32768-60999 and the rendezvous port",
    )


RULE = _REPORT.rule(
    check,
    what="An L7 rule (HTTP, DNS, TLS server names) of a policy covers ports on which ranks talk to each other. The verdict "
    "is 'proxied', not 'allowed'.",
    why="Envoy parses, delays or resets the bytes of collectives.",
    bad="""\
toPorts:
  - ports: [{port: "1024", endPort: 65535, protocol: TCP}]
    rules:
      http: [{}]
""",
    good="""\
toPorts:
  - ports: [{port: "8080", protocol: TCP}]
    rules:
      http: [{}]
""",
    fix="Keep L7 rules to the ports that really speak the protocol.",
    sources=("https://docs.cilium.io/en/stable/security/policy/language/#layer-7-examples",),
)
