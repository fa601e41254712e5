"""``rehearse --backend kind|current`` and ``--write-kind``: the exercise on a real cluster."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from stallscope.errors import ClusterError, UsageError

if TYPE_CHECKING:
    from stallscope.collective.rehearsal import Rehearsal
    from stallscope.judge.result import JobJudgement, Judgement
    from stallscope.lab.backend.kubectl import Kubectl
    from stallscope.lab.backend.run import Say
    from stallscope.model.kube import KubeObject
    from stallscope.model.topology import Topology

#: What is fetched from a cluster whose own policies are in force; absent kinds are skipped.
POLICY_KINDS = (
    "networkpolicies.networking.k8s.io",
    "ciliumnetworkpolicies.cilium.io",
    "ciliumclusterwidenetworkpolicies.cilium.io",
    "adminnetworkpolicies.policy.networking.k8s.io",
    "baselineadminnetworkpolicies.policy.networking.k8s.io",
    "networkpolicies.crd.projectcalico.org",
    "globalnetworkpolicies.crd.projectcalico.org",
    "namespaces",
)


def write_kind(file: str, topology: Topology | None) -> None:
    """Write the kind config of the topology and print the steps. Raises UsageError."""
    from stallscope.cli.outputs import replace_file
    from stallscope.lab.backend.manifests import kind_config, kind_steps

    if topology is None or not topology.nodes:
        raise UsageError("--write-kind: no nodes in the input", hint="add --nodes FILE (kubectl get nodes -o yaml)")
    replace_file(file, kind_config(topology))
    click.echo(f"wrote {file}: {len(topology.nodes)} workers, zones {', '.join(topology.zones)}; then:")
    for step in kind_steps(file):
        click.echo(f"  {step}")


def rehearse_cluster(
    backend: str, context: str, judgement: Judgement, judged: JobJudgement, *, ranks: int, image: str, say: Say
) -> Rehearsal:
    """The rehearsal on the cluster of `context`. Raises ClusterError and LabError."""
    from stallscope.collective.rehearsal import Rehearsal, Scale
    from stallscope.lab.backend.kubectl import real_kubectl
    from stallscope.lab.backend.manifests import IMAGE
    from stallscope.lab.backend.run import ClusterRequest, rehearse_on_cluster
    from stallscope.lab.cast import cast
    from stallscope.lab.matrix import cached_segments

    kubectl = real_kubectl(context)
    if backend == "kind":
        _must_be_kind(kubectl, context)
        policies = judgement.policies.policies
    else:
        judgement, judged = rejudge(judgement, judged, kubectl)
        policies = ()
    if judged.witness is None:
        raise ClusterError(f"{judged.job.ref}: without nodes there is no placement", hint="add --nodes FILE")
    made = cast(judgement, judged.job, judged.witness.nodes, max_ranks=ranks)
    request = ClusterRequest(
        job=judged.job,
        cast=made,
        segments=cached_segments(judgement.policies),
        policies=policies,
        image=image or IMAGE,
        by_label=backend == "kind",
    )
    result = rehearse_on_cluster(request, kubectl, say)
    return Rehearsal(
        job=judged.job.ref,
        transport=f"probe pods on {context or 'the current context'}",
        profile="the cluster's own",
        scale=Scale(rate=1, time=1, machine_rate=0),
        results=(result,),
        said=(*made.notes, result.not_run),
    )


def _must_be_kind(kubectl: Kubectl, context: str) -> None:
    """Backend kind applies the input's policies, so it must not meet a cluster that people use. Raises ClusterError."""
    from stallscope.lab.backend.kubectl import must

    name = context or must(kubectl, ["config", "current-context"]).strip()
    if not name.startswith("kind-"):
        raise ClusterError(
            f"--backend kind: context {name!r} is no kind cluster", hint="--context kind-NAME, or --backend current"
        )


def rejudge(judgement: Judgement, judged: JobJudgement, kubectl: Kubectl) -> tuple[Judgement, JobJudgement]:
    """The judgement with the cluster's own nodes and policies in place of the input's. Raises ClusterError."""
    from stallscope.judge.joint import judge
    from stallscope.lab.backend.preflight import nodes

    given = set(judgement.policies.policies)
    kept = tuple(o for o in judgement.inputs.objects if o not in given)
    inputs = replace(judgement.inputs, objects=(*kept, *cluster_objects(kubectl)), topology=nodes(kubectl))
    after = judge(inputs)
    return after, next(j for j in after.jobs if j.job.ref == judged.job.ref)


def cluster_objects(kubectl: Kubectl) -> tuple[KubeObject, ...]:
    """Policies and namespaces of the cluster. Raises ClusterError for anything but an absent kind."""
    import json

    from stallscope.lab.backend.kubectl import complaint
    from stallscope.model.kube import from_body
    from stallscope.model.source import as_list, as_map, as_str, dig

    found: list[KubeObject] = []
    for kind in POLICY_KINDS:
        answer = kubectl(["get", kind, "-A", "-o", "json"])
        if answer.code:
            if "doesn't have a resource type" in answer.err:
                continue
            raise ClusterError(f"kubectl get {kind}: {complaint(answer)}")
        try:
            items = as_list(dig(json.loads(answer.out), "items"))
        except ValueError:
            raise ClusterError(f"kubectl get {kind}: the answer is not JSON") from None
        found += [
            from_body(as_map(b), namespace=as_str(dig(b, "metadata", "namespace")), file=f"cluster:{kind}") for b in items
        ]
    return tuple(found)
