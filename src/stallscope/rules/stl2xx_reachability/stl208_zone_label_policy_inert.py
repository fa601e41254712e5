"""STL208: a policy draws a zone boundary on labels that the engine does not see on pods."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stallscope.findings import Finding, Label, Severity
from stallscope.judge.result import Judgement
from stallscope.model.kube import KubeObject
from stallscope.policy.insight import TOPOLOGY, Effect, ZoneLabelUse, zone_label_users
from stallscope.rules.base import Report
from stallscope.rules.support.policies import ZONE_LABELS_SINCE
from stallscope.rules.support.words import label, unique

_REPORT = Report("STL208", "zone-label-policy-inert", Severity.WARNING)
_NEGATIVE = frozenset({"NotIn", "DoesNotExist"})


def check(judgement: Judgement) -> Iterable[Finding]:
    namespaces = {j.job.namespace for j in judgement.jobs}
    found: dict[KubeObject, list[ZoneLabelUse]] = {}
    for use in zone_label_users(judgement.policies):
        if use.effect is not Effect.NODES and (not use.policy.namespace or use.policy.namespace in namespaces):
            found.setdefault(use.policy, []).append(use)
    for policy, uses in found.items():
        yield from _one(judgement, policy, uses)


def _one(judgement: Judgement, policy: KubeObject, found: list[ZoneLabelUse]) -> Iterator[Finding]:
    cilium = judgement.policies.options.cni == "cilium"
    version = judgement.policies.options.version
    on_pods = judgement.facts.kubernetes_version >= ZONE_LABELS_SINCE or _in_templates(judgement, found)
    key = found[0].need.key
    if not on_pods:
        why = f"pods do not carry {key} before Kubernetes 1.35"
    elif found[0].effect is not Effect.WORKS:
        which = f"this Cilium ({'.'.join(map(str, version))})" if version else "current Cilium"
        why = f"{which} leaves {TOPOLOGY}* out of pod identity"
    elif cilium:
        yield _flips(policy, found, version)
        return
    else:
        return
    inverted = any(u.need.operator in _NEGATIVE for u in found)
    yield _REPORT.finding(
        f"the zone boundary of {policy.ref} {'is inverted' if inverted else 'does nothing'}: {why}",
        _labels(found),
        subject=policy.ref,
        key=found[0].need.key,
        notes=(*_consequences(found), *(_VERSIONS if cilium else ())),
        help="select an ordinary pod label (set by the template or a webhook), or a namespace label, instead",
    )


def _flips(policy: KubeObject, found: list[ZoneLabelUse], version: tuple[int, ...]) -> Finding:
    shown = ".".join(map(str, version)) or "as configured"
    return _REPORT.finding(
        f"the zone boundary of {policy.ref} holds on this Cilium ({shown}) and flips with a patch upgrade",
        _labels(found),
        subject=policy.ref,
        key=found[0].need.key,
        notes=(*_consequences(found, prefix="after the upgrade: "), *_VERSIONS),
        help="select an ordinary pod label before Cilium is upgraded",
    )


def _in_templates(judgement: Judgement, found: list[ZoneLabelUse]) -> bool:
    return any(u.need.key in p.labels for u in found for j in judgement.jobs for p in j.job.pods)


_VERSIONS = (
    "Cilium up to 1.18.6 on Kubernetes 1.35 or later: works as written",
    "Cilium 1.18.7 and later, and every 1.19: these labels are not part of identity, so no selector sees them",
    "adding them to the agent's 'labels' option makes that list inclusive: every other label then leaves identity",
)


def _consequences(found: list[ZoneLabelUse], prefix: str = "") -> Iterator[str]:
    for use in found[:3]:
        need = use.need
        where = f"{need.key} {need.operator}" + (f" [{', '.join(need.values)}]" if need.values else "")
        if need.operator in _NEGATIVE:
            effect = (
                "selects every pod of its scope"
                if use.subject
                else "matches every pod: a rule against other zones hits its own zone too"
            )
        else:
            effect = "selects no pod: what it should isolate stays open" if use.subject else "matches no pod at all"
        yield f"{prefix}'{where}' {effect}"


def _labels(found: list[ZoneLabelUse]) -> tuple[Label, ...]:
    return unique(
        label(m.location, "a label the engine does not see on pods", primary=i == 0) for i, m in enumerate(found[:4])
    )


RULE = _REPORT.rule(
    check,
    what="A policy selects pods by topology.kubernetes.io/zone or region, and the engine does not have that label on pods: "
    "Cilium 1.18.7+ and 1.19+ leave it out of identity, and before Kubernetes 1.35 pods do not carry it at all. On older "
    "Cilium the finding says that a patch upgrade flips the policy.",
    why="The boundary everybody believes in is inert, or inverted so that it denies its own zone, and nothing reports it.",
    bad="""\
endpointSelector:
  matchLabels: {topology.kubernetes.io/zone: zone-a}
ingressDeny:
  - fromEndpoints:
      - matchExpressions:
          - {key: topology.kubernetes.io/zone, operator: NotIn, values: [zone-a]}    # matches every pod
""",
    good="""\
endpointSelector:
  matchLabels: {net-zone: a}             # an ordinary label on the pod template
ingressDeny:
  - fromEndpoints:
      - matchExpressions:
          - {key: net-zone, operator: NotIn, values: [a]}
""",
    fix="Draw the boundary on an ordinary pod or namespace label. State the cluster's versions with --cni cilium@VERSION.",
    sources=(
        "https://github.com/cilium/cilium/pull/43725",
        "https://github.com/cilium/cilium/issues/43723",
        "https://github.com/kubernetes/enhancements/tree/master/keps/sig-node/4742-pod-topology-labels",
    ),
)
