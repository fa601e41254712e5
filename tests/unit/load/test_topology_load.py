"""Topology from node objects, snapshots and kind configs."""

from __future__ import annotations

from fractions import Fraction

import pytest

from stallscope.load.objects import objects_from
from stallscope.load.stream import parse_stream
from stallscope.load.topology import topology_from
from stallscope.model.topology import Taint, Topology


def topology_of(text: str) -> Topology | None:
    documents, problems = parse_stream(text, file="nodes.yaml")
    assert problems == ()
    objects, problems = objects_from(documents)
    assert problems == ()
    return topology_from(objects)


SNAPSHOT = """\
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Node
  metadata:
    name: gpu-1
    labels: {topology.kubernetes.io/zone: zone-a}
  spec:
    taints:
    - {key: nvidia.com/gpu, value: present, effect: NoSchedule}
  status:
    allocatable: {cpu: "96", nvidia.com/gpu: "8", memory: 1Ti}
- apiVersion: v1
  kind: Node
  metadata: {name: cpu-1, labels: {topology.kubernetes.io/zone: zone-c}}
  spec: {unschedulable: true}
  status: {allocatable: {cpu: 3920m}}
- apiVersion: v1
  kind: Namespace
  metadata: {name: ml, labels: {team: a}}
- apiVersion: v1
  kind: Pod
  metadata: {name: p, namespace: ml, labels: {app: x}}
  spec: {nodeName: gpu-1, containers: []}
  status: {phase: Running}
- apiVersion: v1
  kind: Pod
  metadata: {name: done, namespace: ml}
  spec: {nodeName: gpu-1}
  status: {phase: Succeeded}
- apiVersion: v1
  kind: Pod
  metadata: {name: waiting, namespace: ml}
  spec: {}
"""


def test_snapshot() -> None:
    topology = topology_of(SNAPSHOT)
    assert topology is not None
    gpu, cpu = topology.nodes
    assert (gpu.name, gpu.zone, gpu.unschedulable) == ("gpu-1", "zone-a", False)
    assert gpu.taints == (Taint("nvidia.com/gpu", "present", "NoSchedule"),)
    assert gpu.allocatable == {"cpu": 96, "nvidia.com/gpu": 8, "memory": 2**40}
    assert str(gpu.location) == "nodes.yaml:4:3"
    assert (cpu.zone, cpu.unschedulable, cpu.allocatable) == ("zone-c", True, {"cpu": Fraction(3920, 1000)})
    assert topology.capacity_known
    assert [(p.namespace, p.name, p.node, dict(p.labels)) for p in topology.bound_pods] == [
        ("ml", "p", "gpu-1", {"app": "x"})
    ]
    # the API server adds the name label (KEP-2161)
    assert topology.namespaces == {"ml": {"kubernetes.io/metadata.name": "ml", "team": "a"}}
    assert topology.zones == ("zone-a", "zone-c")
    assert topology.source == "2 nodes from nodes.yaml"


def test_one_node_document() -> None:
    topology = topology_of("apiVersion: v1\nkind: Node\nmetadata: {name: a}\n")
    assert topology is not None
    assert len(topology.nodes) == 1
    assert not topology.capacity_known
    assert topology.zones == ()


def test_no_nodes_no_topology() -> None:
    assert topology_of("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {nodeName: x}\n") is None
    assert topology_of("apiVersion: example.com/v1\nkind: Node\nmetadata: {name: a}\n") is None


def test_nodes_of_the_wrong_shape_are_no_crash() -> None:
    topology = topology_of(
        "apiVersion: v1\nkind: Node\nmetadata: {name: a}\nspec: {taints: [1, {key: [x]}], unschedulable: 'yes'}\n"
        "status: {allocatable: [cpu]}\n"
    )
    assert topology is not None
    assert not topology.nodes[0].unschedulable
    assert topology.nodes[0].allocatable == {}


KIND = """\
kind: Cluster
apiVersion: kind.x-k8s.io/v1alpha4
name: lab
nodes:
- role: control-plane
- role: control-plane
- role: worker
  labels:
    topology.kubernetes.io/zone: zone-a
  kubeadmConfigPatches:
  - |
    kind: JoinConfiguration
    nodeRegistration:
      kubeletExtraArgs:
        register-with-taints: "nvidia.com/gpu=present:NoSchedule,spot:PreferNoSchedule"
- role: worker
  labels: {lost: "yes"}
  kubeadmConfigPatches:
  - |
    kind: InitConfiguration
    nodeRegistration:
      kubeletExtraArgs: {node-labels: "not=mine"}
    ---
    kind: JoinConfiguration
    nodeRegistration:
      taints:
      - {key: dedicated, value: cpu, effect: NoExecute}
      kubeletExtraArgs:
      - {name: v, value: "4"}
      - {name: node-labels, value: "topology.kubernetes.io/zone=zone-b,team=a"}
"""


def test_kind_config() -> None:
    topology = topology_of(KIND)
    assert topology is not None
    assert not topology.capacity_known
    assert [n.name for n in topology.nodes] == ["lab-control-plane", "lab-control-plane2", "lab-worker", "lab-worker2"]
    first, second, gpu, cpu = topology.nodes
    control_plane = Taint("node-role.kubernetes.io/control-plane", "", "NoSchedule")
    assert first.taints == second.taints == (control_plane,)
    assert gpu.zone == "zone-a"
    assert gpu.taints == (Taint("nvidia.com/gpu", "present", "NoSchedule"), Taint("spot", "", "PreferNoSchedule"))
    # a merge patch of node-labels replaces those that kind makes of `labels`
    assert cpu.labels == {"kubernetes.io/hostname": "lab-worker2", "topology.kubernetes.io/zone": "zone-b", "team": "a"}
    assert cpu.taints == (Taint("dedicated", "cpu", "NoExecute"),)
    assert str(gpu.location) == "nodes.yaml:7:3"
    assert topology.source == "4 nodes of the kind config nodes.yaml"


def test_kind_config_of_one_node_has_no_taint() -> None:
    """kubeadminit/init.go: "if we are only provisioning one node, remove the control plane taint"."""
    for nodes in ("", "nodes: [{role: control-plane}]\n"):
        topology = topology_of(f"kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\n{nodes}")
        assert topology is not None
        assert [(n.name, n.taints) for n in topology.nodes] == [("kind-control-plane", ())]


def test_kind_config_with_patches_for_all_nodes() -> None:
    topology = topology_of(
        "kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\nnodes: [{role: control-plane}, {role: worker}]\n"
        "kubeadmConfigPatches:\n- |\n  kind: InitConfiguration\n  nodeRegistration: {taints: []}\n"
        "- |\n  kind: JoinConfiguration\n  nodeRegistration: {kubeletExtraArgs: {node-labels: zone=x}}\n"
    )
    assert topology is not None
    control_plane, worker = topology.nodes
    assert control_plane.taints == ()
    assert worker.labels == {"kubernetes.io/hostname": "kind-worker", "zone": "x"}


@pytest.mark.parametrize("nodes", ["5", "[5, [], null]", "[{role: 5, labels: [], kubeadmConfigPatches: {a: 1}}]"])
def test_kind_config_of_the_wrong_shape(nodes: str) -> None:
    topology = topology_of(f"kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\nnodes: {nodes}\n")
    assert topology is not None
    assert all(n.name for n in topology.nodes)


def test_node_objects_count_before_a_kind_config() -> None:
    topology = topology_of(KIND + "---\napiVersion: v1\nkind: Node\nmetadata: {name: real}\n")
    assert topology is not None
    assert [n.name for n in topology.nodes] == ["real"]
