"""TrainJob: where its parts come from and where a patch goes. Strategic merge rules: kubernetes core/v1 patchMergeKey."""

from __future__ import annotations

from typing import Any

import pytest

from stallscope.load.kinds import expand
from stallscope.load.kinds.trainjob_patch import MANAGER, merge, overlay_for
from stallscope.load.stream import parse_stream
from stallscope.model.kube import KubeObject, from_body
from stallscope.model.workload import TrainingJob

PATCHED = """\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: llm}
spec:
  runtimeRef:
    name: torch-distributed
  trainer:
    numNodes: 2
    image: mine
    env:
      - {name: A, value: "1"}
  runtimePatches:
    - manager: someone.example/else
      trainingRuntimeSpec:
        template:
          spec:
            replicatedJobs:
              - name: node
                template:
                  spec:
                    template:
                      spec:
                        tolerations:
                          - {key: gpu, operator: Exists}
"""


def objects(text: str) -> list[KubeObject]:
    return [from_body(d.value, file="job.yaml") for d in parse_stream(text, file="job.yaml")[0]]


def only(text: str) -> TrainingJob:
    jobs, problems = expand(objects(text))
    assert not problems
    (job,) = jobs
    return job


def test_a_built_in_template_cannot_be_patched_but_the_trainjob_can() -> None:
    template = only(PATCHED).role("node").template
    assert not template.patchable
    assert "built into Trainer" in template.why_not
    assert template.overlay is not None
    assert template.overlay.keys == ("nodeSelector", "affinity", "tolerations", "schedulingGates")
    # The existing patch of `node` is extended: its spec is where tolerations already stand (line 23).
    assert template.overlay.source.at(*template.overlay.route).span.line == 22
    assert template.overlay.identities == {}


def test_positions_follow_each_part_to_where_it_was_written() -> None:
    template = only(PATCHED).role("node").template
    assert template.at("spec", "tolerations", 0).span.line == 24
    assert template.at("spec", "containers", 0, "env").span.line == 7  # spec.trainer
    assert template.at("spec", "nodeSelector").span.line == 5  # nowhere: the runtime reference
    assert template.spec["containers"][0]["image"] == "mine"
    assert template.spec["containers"][0]["env"] == [{"name": "A", "value": "1"}]


def test_a_new_patch_gets_an_entry_of_its_own() -> None:
    body = {"spec": {"runtimePatches": [{"manager": "a/b", "trainingRuntimeSpec": {}}]}}
    overlay = overlay_for(from_body(body), "node")
    jobs = ("spec", "runtimePatches", 1, "trainingRuntimeSpec", "template", "spec", "replicatedJobs")
    assert overlay.route == (*jobs, 0, "template", "spec", "template", "spec")
    assert overlay.identities == {("spec", "runtimePatches", 1): {"manager": MANAGER}, (*jobs, 0): {"name": "node"}}


def test_a_second_role_joins_the_own_entry() -> None:
    inner = {"template": {"spec": {"replicatedJobs": [{"name": "launcher"}]}}}
    body = {"spec": {"runtimePatches": [{"manager": MANAGER, "trainingRuntimeSpec": inner}]}}
    overlay = overlay_for(from_body(body), "node")
    assert overlay.route[:3] == ("spec", "runtimePatches", 0)
    assert overlay.route[7] == 1
    assert list(overlay.identities.values()) == [{"name": "node"}]


@pytest.mark.parametrize(
    ("form", "tail", "keys"),
    [
        ("podTemplateOverrides", ("spec",), ("nodeSelector", "affinity", "tolerations", "schedulingGates")),
        ("podSpecOverrides", (), ("nodeSelector", "tolerations", "schedulingGates")),
    ],
)
def test_older_forms_are_kept(form: str, tail: tuple[str, ...], keys: tuple[str, ...]) -> None:
    body = {"spec": {form: [{"targetJobs": [{"name": "other"}]}]}}
    overlay = overlay_for(from_body(body), "node")
    assert overlay.route == ("spec", form, 1, *tail)
    assert overlay.keys == keys
    assert overlay.identities == {("spec", form, 1): {"targetJobs": [{"name": "node"}]}}


def test_pod_spec_overrides_of_v20_apply() -> None:
    text = PATCHED.partition("  runtimePatches:")[0] + (
        "  podSpecOverrides:\n    - targetJobs: [{name: node}]\n      nodeSelector: {zone: a}\n"
    )
    template = only(text).role("node").template
    assert template.spec["nodeSelector"] == {"zone": "a"}
    assert "targetJobs" not in template.spec
    assert template.at("spec", "nodeSelector").span.line == 14


@pytest.mark.parametrize(
    ("base", "patch", "wanted"),
    [
        ({"nodeSelector": {"a": "1"}}, {"nodeSelector": {"b": "2"}}, {"nodeSelector": {"a": "1", "b": "2"}}),
        ({"tolerations": [{"key": "a"}]}, {"tolerations": [{"key": "b"}]}, {"tolerations": [{"key": "b"}]}),  # atomic
        (
            {"containers": [{"name": "a", "image": "x"}, {"name": "b"}]},
            {"containers": [{"name": "a", "env": [{"name": "E"}]}]},
            {"containers": [{"name": "a", "image": "x", "env": [{"name": "E"}]}, {"name": "b"}]},
        ),
        ({"containers": [{"name": "a"}]}, {"containers": [{"name": "c"}]}, {"containers": [{"name": "a"}, {"name": "c"}]}),
        (
            {"env": [{"name": "A", "value": "1"}]},
            {"env": [{"name": "A", "value": "2"}]},
            {"env": [{"name": "A", "value": "2"}]},
        ),
        ({"a": 1, "b": 2}, {"a": None}, {"b": 2}),  # null deletes
        (
            {"affinity": {"nodeAffinity": {"required": {"terms": [1]}}}},
            {"affinity": {"nodeAffinity": {"required": {"terms": [2]}}}},
            {"affinity": {"nodeAffinity": {"required": {"terms": [2]}}}},
        ),
    ],
)
def test_strategic_merge(base: Any, patch: Any, wanted: Any) -> None:
    assert merge(base, patch) == wanted


def test_a_namespaced_runtime_must_be_in_the_jobs_namespace() -> None:
    text = """\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainingRuntime
metadata: {name: mine, namespace: other}
spec: {template: {spec: {replicatedJobs: []}}}
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: a, namespace: train}
spec: {runtimeRef: {kind: TrainingRuntime, name: mine}}
"""
    _, problems = expand(objects(text))
    assert [str(p.kind) for p in problems] == ["unsupported"]
    assert "TrainingRuntime mine" in problems[0].hint
