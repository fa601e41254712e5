"""Systems that know topology: asked for the zone in their own words, only where the input shows that they can."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from stallscope.remedy.model import Strategy

ZONE = "topology.kubernetes.io/zone"
QUEUE = "  labels: {kueue.x-k8s.io/queue-name: team}\n"
TAS = """\
apiVersion: kueue.x-k8s.io/v1beta2
kind: Topology
metadata: {name: zonal}
spec:
  levels:
    - nodeLabel: topology.kubernetes.io/zone
    - nodeLabel: kubernetes.io/hostname
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: gpu}
spec:
  topologyName: zonal
"""


def templates(run: Any) -> dict[str, Any]:
    [job] = [d for d in yaml.safe_load_all(run.fixed.texts["0.yaml"]) if d["kind"] == "PyTorchJob"]
    return {role: body["template"] for role, body in job["spec"]["pytorchReplicaSpecs"].items()}


def test_kueue_keeps_one_coordinator_and_the_workers_in_one_zone(fix: Any) -> None:
    run = fix(fix.pytorchjob(labels=QUEUE), TAS)
    [remedy] = run.fixed.remedies
    assert remedy.slug == "gang-topology"
    for template in templates(run).values():
        assert template["metadata"]["annotations"] == {
            "kueue.x-k8s.io/podset-required-topology": ZONE,
            "kueue.x-k8s.io/podset-group-name": "llm",
        }
    assert templates(run)["Master"]["spec"]["tolerations"], "else the group could start in no GPU zone"
    assert any("Kueue" in text for text in remedy.unproved)
    [proof] = run.fixed.proofs
    assert "cannot be split: every placement the scheduler can choose is in one zone (zone-a or zone-b)" in proof.proved
    again = fix(run.fixed.texts["0.yaml"], TAS)
    assert again.changes == ()


def test_kueue_groups_only_two_podsets_of_which_one_is_a_single_pod(fix: Any) -> None:
    """kueue ValidatePodSetGroupingTopology: otherwise the job would be refused, so the pin is used."""
    text = fix.pytorchjob(labels=QUEUE).replace("    Master:\n      replicas: 1", "    Master:\n      replicas: 1")
    three = (Path(__file__).parent / "kinds" / "raycluster.yaml").read_text()
    three = three.replace("  namespace: train\n", "  namespace: train\n" + QUEUE)
    run = fix(three, TAS)
    assert [r.slug for r in run.fixed.remedies] == ["pin-zone"]
    refused = fix(three, TAS, strategy=Strategy.NATIVE)
    assert "Kueue keeps only two PodSets together" in refused.fixed.unfixed[0].reason
    assert fix(text, TAS, strategy=Strategy.NATIVE).changes


def test_kueue_without_topology_is_not_asked_for_one(fix: Any) -> None:
    flavor = TAS.split("---\n")[1].replace("  topologyName: zonal\n", "  nodeLabels: {pool: gpu}\n")
    run = fix(fix.pytorchjob(labels=QUEUE), flavor)
    assert [r.slug for r in run.fixed.remedies] == ["pin-zone"]
    refused = fix(fix.pytorchjob(labels=QUEUE), flavor, strategy=Strategy.NATIVE)
    assert "no ResourceFlavor of the input has a topologyName" in refused.fixed.unfixed[0].reason


def test_kueue_that_is_not_in_the_input_is_used_on_request_and_assumed(fix: Any) -> None:
    assert [r.slug for r in fix(fix.pytorchjob(labels=QUEUE)).fixed.remedies] == ["pin-zone"]
    [remedy] = fix(fix.pytorchjob(labels=QUEUE), strategy=Strategy.NATIVE).fixed.remedies
    assert remedy.assumptions == (f"the flavor that admits the job has a Topology with the level {ZONE}",)


HYPERNODES = """\
apiVersion: topology.volcano.sh/v1alpha1
kind: HyperNode
metadata: {name: leaf-a}
spec:
  tier: 1
  members:
    - {type: Node, selector: {regexMatch: {pattern: "^gpu-a-"}}}
---
apiVersion: topology.volcano.sh/v1alpha1
kind: HyperNode
metadata: {name: leaf-b}
spec:
  tier: 1
  members:
    - {type: Node, selector: {regexMatch: {pattern: "^gpu-b-"}}}
---
apiVersion: topology.volcano.sh/v1alpha1
kind: HyperNode
metadata: {name: zone-b}
spec:
  tier: 2
  members:
    - {type: HyperNode, selector: {exactMatch: {name: leaf-b}}}
---
apiVersion: topology.volcano.sh/v1alpha1
kind: HyperNode
metadata: {name: all}
spec:
  tier: 3
  members:
    - {type: HyperNode, selector: {exactMatch: {name: leaf-a}}}
    - {type: HyperNode, selector: {exactMatch: {name: zone-b}}}
"""


def test_volcano_gets_the_highest_tier_inside_a_zone(fix: Any) -> None:
    """Tier 3 spans zones a and b; tier 2 is all in zone b."""
    job = (Path(__file__).parent / "kinds" / "volcano-job.yaml").read_text()
    run = fix(job, HYPERNODES)
    [remedy] = run.fixed.remedies
    assert remedy.slug == "gang-topology"
    spec = yaml.safe_load(run.fixed.texts["0.yaml"])["spec"]
    assert spec["networkTopology"] == {"mode": "hard", "highestTierAllowed": 2}


def test_volcano_without_hypernodes_is_pinned(fix: Any) -> None:
    job = (Path(__file__).parent / "kinds" / "volcano-job.yaml").read_text()
    assert [r.slug for r in fix(job).fixed.remedies] == ["pin-zone"]
    assert "HyperNodes" in fix(job, strategy=Strategy.NATIVE).fixed.unfixed[0].reason


KAI = """\
apiVersion: kai.scheduler/v1alpha1
kind: Topology
metadata: {name: cluster}
spec:
  levels: [{nodeLabel: topology.kubernetes.io/zone}, {nodeLabel: kubernetes.io/hostname}]
"""


def test_kai_gets_its_annotations(fix: Any) -> None:
    scheduler = "          schedulerName: kai-scheduler\n"
    run = fix(fix.pytorchjob(master=scheduler, worker=scheduler), KAI)
    metadata = yaml.safe_load(run.fixed.texts["0.yaml"])["metadata"]
    assert metadata["annotations"] == {
        "kai.scheduler/topology": "cluster",
        "kai.scheduler/topology-required-placement": ZONE,
    }


PODGROUP = """\
apiVersion: scheduling.k8s.io/v1alpha2
kind: PodGroup
metadata: {name: llm, namespace: train}
spec:
  schedulingPolicy:
    POLICY
"""


@pytest.mark.parametrize(("policy", "works"), [("gang: {minCount: 4}", True), ("basic: {}", False)])
def test_native_pod_group_must_be_a_gang(fix: Any, policy: str, works: bool) -> None:
    group = "          schedulingGroup: {podGroupName: llm}\n"
    text, other = fix.pytorchjob(master=group, worker=group), PODGROUP.replace("POLICY", policy)
    run = fix(text, other, strategy=Strategy.NATIVE)
    if works:
        assert yaml.safe_load(run.fixed.texts["1.yaml"])["spec"]["schedulingConstraints"] == {"topology": [{"key": ZONE}]}
        assert [r.slug for r in fix(text, other).fixed.remedies] == ["pin-zone"], "the gate is off by default"
    else:
        assert "is no gang" in run.fixed.unfixed[0].reason
