"""Placement rules on variations of one job; what to expect follows from the scheduler (placement.md §2, §3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from stallscope.findings import Confidence, Finding, Severity

Check = Callable[..., list[Finding]]
Build = Callable[..., dict[str, Any]]
ZONE = "topology.kubernetes.io/zone"
UNPINNED = {"spec": {"nodeSelector": {}}}
TOLERATION = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
#: No GPU, no toleration, no pin: the incident's coordinator.
CPU_COORDINATOR = {
    "spec": {
        "nodeSelector": {},
        "tolerations": [],
        "containers": [{"name": "pytorch", "image": "x", "resources": {"requests": {"cpu": "4"}}}],
    }
}


def zone_affinity(labels: dict[str, str], section: str = "podAffinity") -> dict[str, Any]:
    term = {"topologyKey": ZONE, "labelSelector": {"matchLabels": labels}}
    return {"affinity": {section: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def spread(key: str = ZONE, **more: Any) -> dict[str, Any]:
    body = {
        "topologyKey": key,
        "maxSkew": 1,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "llm"}},
        **more,
    }
    return {"topologySpreadConstraints": [body]}


def severities(found: list[Finding]) -> list[str]:
    return [str(f.severity) for f in found]


# -- STL101 ------------------------------------------------------------------------------------------------------


def test_a_job_in_a_cluster_of_one_zone_gets_no_warning(check: Check, pytorch: Build, node: Build) -> None:
    found = check("", pytorch(UNPINNED, UNPINNED), *(node(f"n{i}") for i in range(4)))
    assert [f.message for f in found if f.severity is not Severity.INFO] == []


def test_without_nodes_a_split_is_a_warning_that_names_its_condition(check: Check, pytorch: Build) -> None:
    (found,) = check("STL101", pytorch(UNPINNED, UNPINNED))
    assert found.severity is Severity.WARNING
    assert found.confidence is Confidence.DEPENDS


def test_with_nodes_the_witness_names_a_node_for_each_pod(check: Check, pytorch: Build, node: Build) -> None:
    nodes = [node(f"gpu-{z}-{i}", f"zone-{z}") for z in "ab" for i in range(4)]
    (found,) = check("STL101", pytorch(UNPINNED, UNPINNED), *nodes)
    assert found.severity is Severity.ERROR
    table = next(n for n in found.notes if "one placement" in n)
    assert all(f"llm-{pod} on gpu-" in table for pod in ("master-0", "worker-0", "worker-1", "worker-2"))
    assert "zone-a:" in table
    assert "zone-b:" in table


def test_cpu_jobs_are_advice_without_nodes(check: Check, pytorch: Build) -> None:
    cpu = {"spec": {"nodeSelector": {}, "containers": [{"name": "pytorch", "image": "x"}]}}
    assert severities(check("STL101", pytorch(cpu, cpu))) == ["info"]


def test_a_preference_is_shown_as_no_guarantee(check: Check, pytorch: Build, node: Build) -> None:
    preferred = {
        "podAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {
                    "weight": 100,
                    "podAffinityTerm": {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "llm"}}},
                }
            ]
        }
    }
    soft = {"spec": {"nodeSelector": {}, "affinity": preferred}}
    nodes = [node(f"gpu-{z}-{i}", f"zone-{z}") for z in "ab" for i in range(4)]
    (found,) = check("STL101", pytorch(soft, soft), *nodes)
    assert any("preference" in x.text for x in found.labels)


@pytest.mark.parametrize(
    ("master", "worker", "split"),
    [
        ({"t": "zone", "g": "llm"}, {"t": "zone", "g": "llm"}, False),
        ({"t": "zone"}, {"t": "zone"}, True),  # one PodSet each: two domains
        ({}, {"t": "zone", "g": "llm"}, True),
    ],
)
def test_kueue_topology_keeps_roles_together_only_as_one_group(
    check: Check, pytorch: Build, master: dict[str, str], worker: dict[str, str], split: bool
) -> None:
    keys = {"t": "kueue.x-k8s.io/podset-required-topology", "g": "kueue.x-k8s.io/podset-group-name"}
    roles = [
        {**UNPINNED, "metadata": {"annotations": {keys[k]: ZONE if k == "t" else v for k, v in role.items()}}}
        for role in (master, worker)
    ]
    job = pytorch(*roles, metadata={"labels": {"kueue.x-k8s.io/queue-name": "gpu"}})
    assert bool(check("STL101", job)) is split


def test_efa_is_named_because_it_cannot_cross_zones(check: Check, pytorch: Build) -> None:
    efa = {
        "spec": {
            "nodeSelector": {},
            "containers": [
                {
                    "name": "pytorch",
                    "image": "x",
                    "resources": {"limits": {"nvidia.com/gpu": 8, "vpc.amazonaws.com/efa": 32}},
                    "volumeMounts": [{"name": "dshm", "mountPath": "/dev/shm"}],
                }
            ],
        }
    }
    (found,) = check("STL101", pytorch(efa, efa))
    assert any("vpc.amazonaws.com/efa" in n for n in found.notes)


# -- STL102 ------------------------------------------------------------------------------------------------------


def test_coordinator_without_toleration_is_a_warning_without_nodes(check: Check, pytorch: Build) -> None:
    (found,) = check("STL102", pytorch(CPU_COORDINATOR, UNPINNED))
    assert (found.severity, found.confidence) == (Severity.WARNING, Confidence.DEPENDS)
    assert "nvidia.com/gpu" in found.message


def test_a_cpu_pool_in_the_workers_zone_is_a_choice(check: Check, pytorch: Build, node: Build) -> None:
    pinned_cpu = {"spec": {**CPU_COORDINATOR["spec"], "nodeSelector": {ZONE: "zone-a"}}}
    nodes = [*(node(f"gpu-{i}") for i in range(3)), node("cpu-0", gpus=0, tainted=False)]
    advice = {"STL112", "STL401", "STL402"}
    assert {f.rule for f in check("", pytorch(pinned_cpu), *nodes)} <= advice


# -- STL103 ------------------------------------------------------------------------------------------------------


def test_unschedulable_gives_the_schedulers_own_words(check: Check, pytorch: Build, node: Build) -> None:
    strict = {"spec": {"tolerations": []}}
    found = check("STL103", pytorch(strict, strict), *(node(f"n{i}") for i in range(2)))
    assert [f.key for f in found] == ["Master", "Worker"]
    assert "0/2 nodes are available: 2 node(s) had untolerated taint" in found[0].message


def test_a_job_larger_than_the_cluster_never_starts_whole(check: Check, pytorch: Build, node: Build) -> None:
    (found,) = check("STL103", pytorch(), *(node(f"n{i}") for i in range(3)))
    assert "can never start whole" in found.message
    assert "3 of 4 pods start" in found.message


# -- STL104 ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pinned", "constraint", "expected"),
    [
        (False, spread(), ["warning"]),
        (False, spread(maxSkew=4), []),  # as large as the job: permits co-location
        (False, spread(whenUnsatisfiable="ScheduleAnyway"), ["info"]),
        (False, spread(key="kubernetes.io/hostname"), []),
        (False, spread(labelSelector={"matchLabels": {"app": "other"}}), []),
        (True, spread(), []),  # one eligible domain: idle
        (True, spread(minDomains=2), ["error"]),
        (True, spread(nodeAffinityPolicy="Ignore"), ["warning"]),
    ],
)
def test_spread_over_zones_without_nodes(
    check: Check, pytorch: Build, pinned: bool, constraint: dict[str, Any], expected: list[str]
) -> None:
    worker = {"spec": {**constraint, **({} if pinned else {"nodeSelector": {}})}}
    assert severities(check("STL104", pytorch({} if pinned else UNPINNED, worker))) == expected


def test_spread_counts_a_zone_without_gpus_as_a_domain(check: Check, pytorch: Build, node: Build) -> None:
    worker = {"spec": {**spread(), "nodeSelector": {}}}
    nodes = [*(node(f"gpu-{i}") for i in range(4)), node("cpu-0", "zone-c", gpus=0, tainted=False)]
    (found,) = check("STL104", pytorch(UNPINNED, worker), *nodes)
    assert found.severity is Severity.ERROR
    assert any("zone-c" in n and "domain" in n for n in found.notes)


# -- STL105 ------------------------------------------------------------------------------------------------------


def roles_with(master: dict[str, Any], worker: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    labelled = [{"metadata": {"labels": {"role": r}}, "spec": s} for r, s in (("coordinator", master), ("worker", worker))]
    return labelled[0], labelled[1]


def test_workers_that_follow_a_cpu_coordinator_without_nodes(check: Check, pytorch: Build) -> None:
    master, worker = roles_with(CPU_COORDINATOR["spec"], {"nodeSelector": {}, **zone_affinity({"role": "coordinator"})})
    (found,) = check("STL105", pytorch(master, worker))
    assert (found.severity, found.confidence) == (Severity.WARNING, Confidence.DEPENDS)


def test_workers_that_follow_a_cpu_coordinator_show_the_stuck_placement(check: Check, pytorch: Build, node: Build) -> None:
    master, worker = roles_with(CPU_COORDINATOR["spec"], {"nodeSelector": {}, **zone_affinity({"role": "coordinator"})})
    nodes = [*(node(f"gpu-{i}") for i in range(4)), node("cpu-0", "zone-c", gpus=0, tainted=False)]
    (found,) = check("STL105", pytorch(master, worker), *nodes)
    assert found.severity is Severity.ERROR  # the coordinator only fits in zone-c
    assert "llm-master-0 in zone-c" in found.message
    assert any("Pending: llm-worker-0" in n for n in found.notes)


def test_the_right_direction_is_quiet(check: Check, pytorch: Build, node: Build) -> None:
    to_workers = zone_affinity({"role": "worker"})
    master, worker = roles_with({"nodeSelector": {}, **to_workers}, {"nodeSelector": {}, **to_workers})
    nodes = [node(f"gpu-{z}-{i}", f"zone-{z}") for z in "ab" for i in range(4)]
    assert check("STL105", pytorch(master, worker), *nodes) == []


def test_affinity_to_nobody(check: Check, pytorch: Build, node: Build) -> None:
    lost = {"spec": zone_affinity({"app": "typo"})}
    (found,) = check("STL105", pytorch(worker=lost))
    assert found.severity is Severity.WARNING
    assert "app=typo" in found.message
    assert severities(check("STL105", pytorch(worker=lost), node("n0"))) == ["error"]


# -- STL106, STL107 ----------------------------------------------------------------------------------------------


def test_spread_that_does_not_count_its_own_pods_is_idle(check: Check, pytorch: Build) -> None:
    idle = {"spec": spread(key="kubernetes.io/hostname", labelSelector={"matchLabels": {"app": "other"}})}
    assert severities(check("STL106", pytorch(worker=idle))) == ["info"]


def test_one_zone_term_with_two_zones_is_a_limit_not_a_mistake(check: Check, pytorch: Build) -> None:
    term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["zone-a", "zone-b"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    limited = {"spec": {"nodeSelector": {}, "affinity": {"nodeAffinity": required}}}
    assert check("STL106", pytorch(limited, limited)) == []


def test_unlabelled_gpu_nodes_beside_labelled_ones(check: Check, pytorch: Build, node: Build) -> None:
    nodes = [*(node(f"gpu-{i}") for i in range(4)), node("gpu-new", "")]
    (found,) = check("STL107", pytorch(UNPINNED, UNPINNED), *nodes)
    assert found.severity is Severity.WARNING
    assert "gpu-new" in found.message


def test_unlabelled_control_plane_is_no_finding(check: Check, pytorch: Build, node: Build) -> None:
    nodes = [*(node(f"gpu-{i}") for i in range(4)), node("control-plane", "", gpus=0)]
    assert check("STL107", pytorch(), *nodes) == []


def test_no_labels_and_no_use_of_them_is_an_info(check: Check, pytorch: Build, node: Build) -> None:
    assert severities(check("STL107", pytorch(UNPINNED, UNPINNED), *(node(f"n{i}", "") for i in range(4)))) == ["info"]


# -- STL108, STL109, STL110 --------------------------------------------------------------------------------------


def test_a_gang_rules_out_a_partial_start(check: Check, pytorch: Build, node: Build) -> None:
    affine = {"spec": {"nodeSelector": {}, **zone_affinity({"app": "llm"})}}
    nodes = [*(node(f"a{i}", "zone-a") for i in range(2)), *(node(f"b{i}", "zone-b") for i in range(8))]
    (found,) = check("STL108", pytorch(affine, affine), *nodes)
    assert "zone-a, which is too small: 2 pods of 4" in found.message
    queued = pytorch(affine, affine, metadata={"labels": {"kueue.x-k8s.io/queue-name": "gpu"}})
    assert check("STL108", queued, *nodes) == []


def jobset(replicas: int, key: str, own: bool) -> dict[str, Any]:
    annotation = {"alpha.jobset.sigs.k8s.io/exclusive-topology": key}
    pod = {"spec": {"containers": [{"name": "node", "image": "x", "command": ["torchrun", "train.py"]}]}}
    child = {"spec": {"parallelism": 2, "completions": 2, "template": pod}}
    if own:
        child["metadata"] = {"annotations": annotation}
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "llm", "namespace": "train", **({} if own else {"annotations": annotation})},
        "spec": {"replicatedJobs": [{"name": "node", "replicas": replicas, "template": child}]},
    }


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize(
    ("replicas", "key", "expected"), [(2, ZONE, 1), (1, ZONE, 0), (2, "cloud.google.com/gke-nodepool", 0)]
)
def test_exclusive_topology(check: Check, replicas: int, key: str, expected: int, own: bool) -> None:
    assert len(check("STL109", jobset(replicas, key, own))) == expected


def test_two_jobs_with_one_label_share_a_zone(check: Check, pytorch: Build) -> None:
    affine = {"spec": zone_affinity({"app": "llm"})}
    found = check("STL110", pytorch(affine, affine), pytorch(affine, affine, metadata={"name": "other"}))
    assert {f.subject for f in found} == {"PyTorchJob train/llm", "PyTorchJob train/other"}
    assert {f.confidence for f in found} == {Confidence.DEPENDS}


def test_the_jobs_own_running_pods_are_not_leftovers(check: Check, pytorch: Build, node: Build) -> None:
    affine = {"spec": zone_affinity({"app": "llm"})}
    own = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "llm-worker-0", "namespace": "train", "labels": {"app": "llm"}},
        "spec": {"nodeName": "n0", "containers": [{"name": "pytorch"}]},
        "status": {"phase": "Running"},
    }
    assert check("STL110", pytorch(affine, affine), own, *(node(f"n{i}") for i in range(4))) == []
