"""Deny rules that may not be touched, by the reason."""

from __future__ import annotations

from typing import Any

import pytest

from stallscope.errors import PatchRefused
from stallscope.load.inputs import load_text
from stallscope.model.kube import from_body
from stallscope.model.traffic import RuleRef
from stallscope.remedy.exempt import exempt
from stallscope.remedy.groups import Group, group_of
from stallscope.remedy.workbench import Bench

JOB = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: llm, namespace: train}
spec:
  pytorchReplicaSpecs:
    Worker: {replicas: 2, template: {spec: {containers: [{name: pytorch, image: x}]}}}
"""


def policy(kind: str = "CiliumNetworkPolicy", namespace: str = "train", **spec: Any) -> Any:
    body = {"apiVersion": "x/v1", "kind": kind, "metadata": {"name": "p", "namespace": namespace}}
    return from_body({**body, "spec": {"endpointSelector": {}, "ingressDeny": [{"fromEndpoints": [{}]}], **spec}})


def refusal(target: Any, group: Group | None = None, section: str = "ingressDeny") -> str:
    [job] = load_text({"job.yaml": JOB}).jobs
    rule = RuleRef(policy=target.ref, section=section, index=0)
    bench = Bench()
    with pytest.raises(PatchRefused) as refused:
        exempt(bench, job, group or group_of(job), target, [rule])
    return refused.value.message


@pytest.mark.parametrize(
    "kind", ["CiliumClusterwideNetworkPolicy", "ClusterNetworkPolicy", "AdminNetworkPolicy", "GlobalNetworkPolicy"]
)
def test_policies_that_reach_beyond_the_namespace(kind: str) -> None:
    assert "no allow overrides a deny there" in refusal(policy(kind))


def test_a_policy_of_another_namespace() -> None:
    assert "its owner has to narrow it" in refusal(policy(namespace="platform"))


def test_a_job_without_one_telling_label() -> None:
    two = Group(labels={"app": "llm", "part": "trainer"})
    assert "no single label tells the pods" in refusal(policy(), two)


@pytest.mark.parametrize("rule", [{"fromEntities": ["all"]}, {"toPorts": []}, {"fromEndpoints": []}, "text", None])
def test_rules_that_deny_more_than_pods_by_selector(rule: Any) -> None:
    assert "denies more than pods by selector" in refusal(policy(ingressDeny=[rule]))


def test_the_copy_made_for_the_job_is_not_copied_again() -> None:
    selector = {"matchLabels": {"training.kubeflow.org/job-name": "llm"}}
    assert "is made for this job and denies it" in refusal(policy(endpointSelector=selector))
