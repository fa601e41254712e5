"""STL213: collectives may use a secondary network, where no pod policy applies."""

from __future__ import annotations

from collections.abc import Iterable

from stallscope.findings import Confidence, Finding, Severity
from stallscope.judge.result import Judgement
from stallscope.rules.base import Report
from stallscope.rules.support.containers import ranked_pods, ranked_roles
from stallscope.rules.support.settings import role_setting
from stallscope.rules.support.words import label

_REPORT = Report("STL213", "secondary-network-not-judged", Severity.INFO)
_ANNOTATIONS = ("k8s.v1.cni.cncf.io/networks", "networking.gke.io/interfaces")


def check(judgement: Judgement) -> Iterable[Finding]:
    if not judgement.policies.policies:
        return
    for judged in judgement.jobs:
        job = judged.job
        if ranked_pods(job) < 2:
            continue
        for role in ranked_roles(job):
            key = next((k for k in _ANNOTATIONS if k in role.template.annotations), None)
            if key is None:
                continue
            chosen = role_setting(role, "NCCL_SOCKET_IFNAME")
            labels = [label(role.template.at("metadata", "annotations", key), "a further network", primary=True)]
            if chosen is not None:
                labels.append(label(chosen.location, "NCCL's choice of interface"))
            yield _REPORT.finding(
                f"{role.name} of {job.ref} has a secondary network, where pod policies do not apply",
                labels,
                subject=job.ref,
                key=role.name,
                confidence=Confidence.DEPENDS,
                notes=(
                    "verdicts of this report hold for the pod network (eth0): rendezvous, bootstrap and everything else "
                    "that is not bound to the other interface",
                    "traffic on the secondary network is not judged: it is neither isolated nor proved reachable",
                ),
                help="judge that network by its own means (fabric ACLs, MultiNetworkPolicy)",
            )
            break


RULE = _REPORT.rule(
    check,
    what="Ranks have a secondary network (Multus, SR-IOV, GKE multi-networking) while there are network policies.",
    why="CNI policies cover the default network only. A deny there does not stop the data path, and an allow does not prove "
    "it; but the rendezvous still uses the pod network.",
    bad="""\
annotations:
  k8s.v1.cni.cncf.io/networks: rdma-net        # judged: eth0 only
""",
    good="""\
# nothing to repair: read the verdicts as verdicts about eth0
""",
    fix="Nothing to repair in the job. Know which path a verdict is about.",
    sources=(
        "https://github.com/k8snetworkplumbingwg/sriov-cni/issues/101",
        "https://github.com/k8snetworkplumbingwg/sriov-network-device-plugin/issues/397",
    ),
)
