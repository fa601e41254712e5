"""The traps of placement, each with the patch a person would want and the outcome it must have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from stallscope.cli import fixrun
from stallscope.judge.result import Answer
from stallscope.remedy.model import Coordinator, Strategy

ZONE = "topology.kubernetes.io/zone"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def specs(run: fixrun.Run, name: str = "0.yaml") -> dict[str, Any]:
    """Role -> pod spec of the patched PyTorchJob."""
    [job] = [d for d in yaml.safe_load_all(run.fixed.texts[name]) if d["kind"] == "PyTorchJob"]
    return {role: body["template"]["spec"] for role, body in job["spec"]["pytorchReplicaSpecs"].items()}


def outcome(run: fixrun.Run) -> Any:
    [judged] = run.fixed.after.judgement.jobs
    return judged


def test_a_zone_the_user_names(fix: Any) -> None:
    run = fix(fix.pytorchjob(), zone="zone-a")
    assert {s["nodeSelector"][ZONE] for s in specs(run).values()} == {"zone-a"}


def test_a_named_zone_replaces_the_pin_that_is_there(fix: Any) -> None:
    pin = "          nodeSelector: {topology.kubernetes.io/zone: zone-c}\n"
    run = fix(fix.pytorchjob(master=pin), zone="zone-a")
    assert {s["nodeSelector"][ZONE] for s in specs(run).values()} == {"zone-a"}
    assert outcome(run).can_split is Answer.NO


def test_without_a_named_zone_an_impossible_pin_is_left_and_explained(fix: Any) -> None:
    pin = "          nodeSelector: {topology.kubernetes.io/zone: zone-c}\n"
    run = fix(fix.pytorchjob(master=pin))
    assert run.changes == ()
    [left] = run.fixed.unfixed
    assert "nodeSelector" in left.reason and "already set" in left.reason


def test_a_zone_that_does_not_exist(fix: Any) -> None:
    run = fix(fix.pytorchjob(), zone="zone-x")
    assert run.changes == ()
    assert "no node is in zone zone-x" in run.fixed.unfixed[0].reason


def test_no_zone_is_large_enough(fix: Any) -> None:
    run = fix(fix.pytorchjob(workers=8))  # zone b has six GPU nodes, zone a four
    assert run.changes == ()
    assert "zone-b: it does not hold all 9 pods at once" in run.fixed.unfixed[0].reason


def test_ored_terms_the_pin_is_a_node_selector_to_the_zone_that_was_meant(fix: Any) -> None:
    """Two nodeSelectorTerms are ORed; zone a was meant although zone b has more room (gardener/gardener#7166)."""
    terms = """\
          affinity:
            nodeAffinity:
              requiredDuringSchedulingIgnoredDuringExecution:
                nodeSelectorTerms:
                  - matchExpressions:
                      - {key: kubernetes.io/hostname, operator: Exists}
                  - matchExpressions:
                      - {key: topology.kubernetes.io/zone, operator: In, values: [zone-a]}
"""
    run = fix(fix.pytorchjob(master=terms, worker=terms))
    assert {s["nodeSelector"][ZONE] for s in specs(run).values()} == {"zone-a"}
    assert outcome(run).can_split is Answer.NO


def test_portable_limits_every_ored_term(fix: Any) -> None:
    terms = """\
          affinity:
            nodeAffinity:
              requiredDuringSchedulingIgnoredDuringExecution:
                nodeSelectorTerms:
                  - matchExpressions:
                      - {key: kubernetes.io/hostname, operator: Exists}
                  - matchFields:
                      - {key: metadata.name, operator: In, values: [gpu-b-0]}
"""
    run = fix(fix.pytorchjob(worker=terms), strategy=Strategy.PORTABLE)
    limit = {"key": ZONE, "operator": "In", "values": ["zone-a", "zone-b"]}
    found = specs(run)["Worker"]["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    assert [limit in term["matchExpressions"] for term in found] == [True, True]


def test_portable_leaves_out_a_zone_that_would_lock_the_job(fix: Any) -> None:
    """Zone a has two free nodes, zone b four: podAffinity alone may lock zone a (placement.md §0.2)."""
    few = [fix.node(f"a-{i}", "a", gpus=8) for i in range(2)]
    many = [fix.node(f"b-{i}", "b", gpus=8) for i in range(4)]
    run = fix(fix.pytorchjob(), nodes=fix.nodes(*few, *many), strategy=Strategy.PORTABLE)
    terms = specs(run)["Worker"]["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    assert terms == [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["b"]}]}]
    assert outcome(run).placement.must_start_whole


def test_portable_points_from_the_coordinator_to_the_workers(fix: Any) -> None:
    run = fix(fix.pytorchjob(), strategy=Strategy.PORTABLE)
    selector = {"matchLabels": {"training.kubeflow.org/job-name": "llm", "training.kubeflow.org/replica-type": "worker"}}
    for spec in specs(run).values():
        assert spec["affinity"]["podAffinity"][REQUIRED] == [{"labelSelector": selector, "topologyKey": ZONE}]


@pytest.mark.parametrize(
    ("coordinator", "tolerates"), [(Coordinator.AUTO, False), (Coordinator.CPU_POOL, False), (Coordinator.GPU_NODES, True)]
)
def test_a_zone_with_a_cpu_pool(fix: Any, coordinator: Coordinator, tolerates: bool) -> None:
    nodes = [
        *(fix.node(f"a-{i}", "a", gpus=8) for i in range(3)),
        fix.node("a-cpu", "a"),
        fix.node("c-cpu", "c"),
        *(fix.node(f"b-{i}", "b", gpus=8) for i in range(2)),
    ]
    run = fix(fix.pytorchjob(), nodes=fix.nodes(*nodes), coordinator=coordinator)
    master = specs(run)["Master"]
    assert master["nodeSelector"] == {ZONE: "a"}
    assert ("tolerations" in master) is tolerates
    assert outcome(run).placement.must_start_whole


def test_cpu_pool_is_refused_where_the_zone_has_none(fix: Any) -> None:
    run = fix(fix.pytorchjob(), coordinator=Coordinator.CPU_POOL)
    assert run.changes == ()
    assert "Master fits on none of its nodes: node(s) had untolerated taint(s)" in run.fixed.unfixed[0].reason


def test_the_toleration_is_the_workers_own(fix: Any) -> None:
    nodes = [
        fix.node(f"{z}-{i}", z, gpus=8).replace("key: nvidia.com/gpu, value: present", "key: team-gpu, value: red")
        for z in "ab"
        for i in range(3)
    ]
    text = fix.pytorchjob(workers=2).replace("key: nvidia.com/gpu, operator: Exists,", "key: team-gpu, value: red,")
    run = fix(text, nodes=fix.nodes(*nodes, fix.node("c", "c")))
    assert specs(run)["Master"]["tolerations"] == [{"key": "team-gpu", "value": "red", "effect": "NoSchedule"}]


def test_a_maintenance_taint_is_nobodys_to_tolerate(fix: Any) -> None:
    closed = [fix.node(f"b-{i}", "b", gpus=8).replace("nvidia.com/gpu, value", "maintenance, value") for i in range(6)]
    open_ = [fix.node(f"a-{i}", "a", gpus=8, taint=False) for i in range(4)]
    run = fix(fix.pytorchjob(), nodes=fix.nodes(*closed, *open_, fix.node("c", "c")))
    assert {s["nodeSelector"][ZONE] for s in specs(run).values()} == {"a"}
    assert "tolerations" not in specs(run)["Master"]


SPREAD = """\
          topologySpreadConstraints:
            - maxSkew: 1
              topologyKey: topology.kubernetes.io/zone
              whenUnsatisfiable: DoNotSchedule{extra}
              labelSelector:
                matchLabels: {{training.kubeflow.org/job-name: llm}}
"""


def test_a_zone_spread_is_idle_under_a_pin_and_stays(fix: Any) -> None:
    run = fix(fix.pytorchjob(worker=SPREAD.format(extra="")))
    [constraint] = specs(run)["Worker"]["topologySpreadConstraints"]
    assert constraint["topologyKey"] == ZONE
    assert specs(run)["Worker"]["nodeSelector"] == {ZONE: "zone-b"}


@pytest.mark.parametrize("extra", ["\n              nodeAffinityPolicy: Ignore", "\n              minDomains: 2"])
def test_a_zone_spread_that_still_acts_goes_over_hosts(fix: Any, extra: str) -> None:
    """nodeAffinityPolicy Ignore or minDomains 2 leave 1 of 4 pods running under a pin (placement.md, measured cases)."""
    run = fix(fix.pytorchjob(worker=SPREAD.format(extra=extra)))
    [constraint] = specs(run)["Worker"]["topologySpreadConstraints"]
    assert constraint["topologyKey"] == "kubernetes.io/hostname"
    assert outcome(run).placement.must_start_whole


def test_portable_never_stands_beside_a_zone_spread(fix: Any) -> None:
    run = fix(fix.pytorchjob(worker=SPREAD.format(extra="")), strategy=Strategy.PORTABLE)
    [constraint] = specs(run)["Worker"]["topologySpreadConstraints"]
    assert constraint["topologyKey"] == "kubernetes.io/hostname"
    assert outcome(run).placement.must_start_whole


def test_a_host_spread_is_a_preference(fix: Any) -> None:
    run = fix(fix.pytorchjob(), spread_hosts=True)
    for spec in specs(run).values():
        [constraint] = spec["topologySpreadConstraints"]
        assert constraint == {
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": {"training.kubeflow.org/job-name": "llm"}},
        }
    assert outcome(run).placement.must_start_whole


def test_without_nodes_the_fix_is_portable_and_says_what_it_assumes(fix: Any) -> None:
    run = fix(fix.pytorchjob(), nodes=None)
    [remedy] = run.fixed.remedies
    assert remedy.slug == "zone-affinity"
    assert "whichever zone the first pod takes holds the whole job" in remedy.assumptions
    assert any("no nodes were given" in text for text in remedy.unproved)
    assert specs(run)["Master"]["tolerations"][0]["key"] == "nvidia.com/gpu"


def test_without_nodes_a_pin_needs_a_zone(fix: Any) -> None:
    run = fix(fix.pytorchjob(), nodes=None, strategy=Strategy.PIN)
    assert "a pin needs a zone" in run.fixed.unfixed[0].reason
    assert specs(fix(fix.pytorchjob(), nodes=None, strategy=Strategy.PIN, zone="eu-1a"))["Worker"]["nodeSelector"] == {
        ZONE: "eu-1a"
    }


def test_a_fixed_job_has_nothing_left_to_fix(fix: Any) -> None:
    for strategy in (Strategy.PIN, Strategy.PORTABLE):
        first = fix(fix.pytorchjob(), strategy=strategy)
        again = fix(first.fixed.texts["0.yaml"], strategy=strategy)
        assert again.changes == ()
        assert again.fixed.unfixed == ()


def test_a_runtime_keeps_its_own_tolerations(fix: Any) -> None:
    """Lists in runtimePatches replace the runtime's: the team's toleration must be in the patch as well."""
    text = (Path(__file__).parent / "kinds" / "trainjob-own-runtime.yaml").read_text()
    text = text.replace("                    - {key: nvidia.com/gpu, operator: Exists}\n", "")
    run = fix(text)
    job = next(yaml.safe_load_all(run.fixed.texts["0.yaml"]))
    [patch] = job["spec"]["runtimePatches"]
    [replicated] = patch["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"]
    assert (patch["manager"], replicated["name"]) == ("stallscope.dev/placement", "node")
    assert replicated["template"]["spec"]["template"]["spec"]["tolerations"] == [
        {"key": "team", "value": "ml"},
        {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
    ]


def test_an_anchor_that_both_roles_use_is_edited_once(fix: Any) -> None:
    text = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: llm, namespace: train}
spec:
  pytorchReplicaSpecs:
    Master:
      replicas: 1
      template: &pod
        spec:
          tolerations:
            - {key: nvidia.com/gpu, operator: Exists}
          containers:
            - name: pytorch
              image: registry.example/train:1
              command: [torchrun, train.py]
              resources: {limits: {nvidia.com/gpu: 8}}
    Worker:
      replicas: 3
      template: *pod
"""
    run = fix(text)
    assert run.fixed.texts["0.yaml"] == text.replace(
        "        spec:\n          tolerations",
        "        spec:\n          nodeSelector:\n            topology.kubernetes.io/zone: zone-b\n          tolerations",
    )


def test_an_anchor_that_something_else_uses_is_refused_with_the_snippet(fix: Any) -> None:
    text = """\
apiVersion: v1
kind: List
items:
  - apiVersion: kubeflow.org/v1
    kind: PyTorchJob
    metadata: {name: llm, namespace: train}
    spec:
      pytorchReplicaSpecs:
        Worker:
          replicas: 4
          template: &pod
            spec:
              tolerations:
                - {key: nvidia.com/gpu, operator: Exists}
              containers:
                - name: pytorch
                  image: registry.example/train:1
                  command: [torchrun, train.py]
                  resources: {limits: {nvidia.com/gpu: 8}}
  - apiVersion: apps/v1
    kind: Deployment
    metadata: {name: other, namespace: train}
    spec:
      template: *pod
"""
    run = fix(text)
    assert run.changes == ()
    [left] = run.fixed.unfixed
    assert "is anchored and used elsewhere" in left.reason
    assert "topology.kubernetes.io/zone: zone-b" in left.hint
    assert left.hint.startswith("# in 0.yaml, at items[0].spec.pytorchReplicaSpecs.Worker.template.spec.nodeSelector:")


def test_a_dump_of_a_running_job_says_that_it_must_be_created_again(fix: Any) -> None:
    live = fix.pytorchjob().replace("  name: llm\n", "  name: llm\n  uid: 6b1e\n", 1)
    [remedy] = fix(live).fixed.remedies
    assert (
        "the PyTorchJob exists: its pod template cannot be changed in place, delete and create it again"
        in remedy.assumptions
    )


def test_a_suspended_job_may_be_pinned_in_place_but_not_by_affinity(fix: Any) -> None:
    text = (Path(__file__).parent / "kinds" / "job.yaml").read_text()
    live = text.replace("  name: llm\n", "  name: llm\n  uid: 6b1e\n", 1).replace("spec:\n", "spec:\n  suspend: true\n", 1)
    [pin] = fix(live, strategy=Strategy.PIN).fixed.remedies
    [affinity] = fix(live, strategy=Strategy.PORTABLE).fixed.remedies
    assert any("may be changed before it is resumed" in text for text in pin.assumptions)
    assert any("create it again" in text for text in affinity.assumptions)
