"""STL201: two ranks of one job may not talk to each other."""

from __future__ import annotations

from collections.abc import Iterable

from stallscope.findings import Finding, Severity
from stallscope.judge.result import JobJudgement, Judgement
from stallscope.model.traffic import FlowKind
from stallscope.rules.base import Report
from stallscope.rules.support.flows import Denial, denial_findings, only_rendezvous, under_witness

_REPORT = Report("STL201", "peer-denied", Severity.ERROR, fixable=True)


def check(judgement: Judgement) -> Iterable[Finding]:
    return denial_findings(
        _REPORT,
        judgement,
        FlowKind.COLLECTIVE,
        sees="every pod Running; once the rendezvous is done, the first all_reduce waits: 'NET/Socket ... Connection timed "
        "out' or 'Watchdog caught collective operation timeout'; GPU utilisation near 100 % all the while",
        help="allow all TCP ports among the pods of this job (ingress and egress), on the job's own labels",
        keep=_keep,
    )


def _keep(judged: JobJudgement, denial: Denial) -> bool:
    """A denial that some other reachable placement would meet is STL216's; the classic wrong fix is STL203's."""
    return under_witness(judged, denial) and only_rendezvous(judged, denial) is None


RULE = _REPORT.rule(
    check,
    what="A network policy denies the connection between two ranks of one job on the ports their collectives use. The "
    "finding names the pair, their zones, the port, and the rule that denies; for a default deny the policies that isolate "
    "the pod and the closest rule.",
    why="A denied packet is dropped in silence. Every pod is Running, nothing restarts, and all GPUs wait for one peer.",
    bad="""\
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: {name: zone-boundary, namespace: train}
spec:
  endpointSelector: {matchLabels: {net-zone: gpu}}
  enableDefaultDeny: {ingress: false}
  ingressDeny:
    - fromEndpoints:
        - matchLabels: {net-zone: cpu}        # the coordinator lives there
""",
    good="""\
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: {name: zone-boundary, namespace: train}
spec:
  endpointSelector: {matchLabels: {net-zone: gpu}}
  ingress:
    - fromEndpoints:
        - matchLabels: {training.kubeflow.org/job-name: llm}      # all TCP ports among the ranks
      toPorts:
        - ports: [{port: "1", endPort: 65535, protocol: TCP}]
""",
    fix="Allow every TCP port among the pods of the job, in both directions, selected by the job's own label. A deny rule "
    "must be narrowed: in Cilium no allow overrides it. Or co-locate the ranks, so that the boundary is never crossed.",
    sources=(
        "https://github.com/NVIDIA/nccl/issues/388",
        "https://github.com/pytorch/pytorch/issues/48575",
        "https://docs.cilium.io/en/stable/security/policy/",
        "https://kubernetes.io/docs/concepts/services-networking/network-policies/",
    ),
)
