"""The cluster backend against recorded answers: what it asks, what it creates, what it leaves (nothing)."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from stallscope.cli.options import InputOptions
from stallscope.cli.pipeline import judged
from stallscope.cli.rehearse_cluster import _must_be_kind, cluster_objects, rejudge
from stallscope.errors import ClusterError
from stallscope.judge.result import Judgement
from stallscope.lab.backend.kubectl import Answer, get, real_kubectl
from stallscope.lab.backend.manifests import RUN_LABEL, kind_config, kind_steps, probe_name, probe_pod
from stallscope.lab.backend.preflight import enforces_policy, nodes
from stallscope.lab.backend.run import ClusterRequest, rehearse_on_cluster
from stallscope.lab.cast import cast
from stallscope.lab.matrix import cached_segments
from stallscope.model.topology import ZONE, Taint
from stallscope.model.traffic import Endpoint, Outcome, PortRange, Protocol

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
ABSENT = "error: the server doesn't have a resource type"


def node_body(name: str, zone: str, role: str = "") -> dict[str, Any]:
    labels = {"kubernetes.io/hostname": name, **({ZONE: zone} if zone else {}), **({role: ""} if role else {})}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}


@dataclass
class Recorded:
    """
    A cluster that answers as kubectl does. `open_to(source pod, destination pod, port)` is its CNI; every call is kept.
    """

    open_to: Callable[[str, str, int], bool] = lambda *_: True
    nodes: list[dict[str, Any]] = field(default_factory=list)
    namespaces: set[str] = field(default_factory=set)
    jobs: str = ""
    context: str = "kind-test"
    calls: list[list[str]] = field(default_factory=list)
    pods: dict[tuple[str, str], str] = field(default_factory=dict)
    objects: list[dict[str, Any]] = field(default_factory=list)
    fail_wait: bool = False

    def __call__(self, words: Sequence[str], text: str = "", /) -> Answer:
        self.calls.append(list(words))
        match list(words):
            case ["get", "nodes", *_]:
                return self._json({"items": self.nodes})
            case ["get", "namespace", name, *_]:
                return Answer(0 if name in self.namespaces else 1, f"namespace/{name}", "Error from server (NotFound)")
            case ["get", "pods", "-n", space, *_]:
                items = [
                    {"metadata": {"name": n}, "status": {"podIP": ip}} for (s, n), ip in self.pods.items() if s == space
                ]
                return self._json({"items": items})
            case ["get", "networkpolicies.networking.k8s.io" | "namespaces", *_]:
                return self._json({"items": []})
            case ["get", kind, *_] if kind.startswith("pytorchjob"):
                return Answer(0, self.jobs)
            case ["get", *_]:
                return Answer(1, "", f'{ABSENT} "x"')
            case ["create", *_]:
                return self._create(json.loads(text)["items"])
            case ["wait", *_]:
                return Answer(1, "", "error: timed out waiting for the condition") if self.fail_wait else Answer(0, "")
            case ["exec", "-n", space, pod, "--", "sh", "-c", script]:
                return Answer(
                    0, "".join(self._connect(space, pod, line) for line in script.splitlines() if "connect" in line)
                )
            case ["config", "current-context"]:
                return Answer(0, self.context + "\n")
            case ["delete", "namespace", name, *_]:
                self.namespaces.discard(name)
                self.pods = {k: v for k, v in self.pods.items() if k[0] != name}
                return Answer(0, "")
            case ["delete", "pods", "-n", space, *_]:
                self.pods = {k: v for k, v in self.pods.items() if k[0] != space}
                return Answer(0, "")
            case ["delete", *_]:
                return Answer(0, "")
        raise AssertionError(f"unexpected call {words}")

    def _create(self, items: list[dict[str, Any]]) -> Answer:
        for item in items:
            self.objects.append(item)
            meta = item["metadata"]
            if item["kind"] == "Namespace":
                self.namespaces.add(meta["name"])
            if item["kind"] == "Pod":
                assert meta["namespace"] in self.namespaces
                self.pods[meta["namespace"], meta["name"]] = f"10.244.0.{len(self.pods) + 1}"
        return Answer(0, "created")

    def _connect(self, space: str, pod: str, line: str) -> str:
        ip, port = line.split("/agnhost connect ")[1].split(" ")[0].split(":")
        target = next(name for (s, name), address in self.pods.items() if address == ip)
        return f"{'open' if self.open_to(pod, target, int(port)) else 'shut'} {ip} {port}\n"

    @staticmethod
    def _json(body: dict[str, Any]) -> Answer:
        return Answer(0, json.dumps(body))


def isolates(source: str, target: str, port: int) -> bool:
    """A CNI that enforces the probe pair's policy and lets all else through."""
    return not target.endswith("-isolated")


def says(answer: Answer) -> Callable[..., Answer]:
    """A kubectl that always answers the same."""

    def call(words: Sequence[str], text: str = "", /) -> Answer:
        return answer

    return call


def incident() -> Judgement:
    return judged(InputOptions(paths=(str(EXAMPLES / "incident"),))).judgement


def test_nodes_need_zones_and_control_planes_do_not_count() -> None:
    plane = node_body("plane", "", "node-role.kubernetes.io/control-plane")
    assert nodes(Recorded(nodes=[plane, node_body("a", "z1")])).zones == ("z1",)
    with pytest.raises(ClusterError, match=r"1 of 2 nodes have no topology.kubernetes.io/zone label \(b\)"):
        nodes(Recorded(nodes=[plane, node_body("a", "z1"), node_body("b", "")]))
    with pytest.raises(ClusterError, match="no node"):
        nodes(Recorded())


def test_a_cni_that_enforces_nothing_is_told_apart_and_cleaned_up() -> None:
    good = Recorded(open_to=isolates)
    enforces_policy(good, "abcd1234", "image")
    with pytest.raises(ClusterError, match="does not enforce NetworkPolicy"):
        enforces_policy(bad := Recorded(), "abcd1234", "image")
    with pytest.raises(ClusterError, match="cannot reach another"):
        enforces_policy(shut := Recorded(open_to=lambda *_: False), "abcd1234", "image")
    with pytest.raises(ClusterError, match="timed out"):
        enforces_policy(slow := Recorded(fail_wait=True), "abcd1234", "image")
    for cluster in (good, bad, shut, slow):
        assert cluster.namespaces == set()
        assert all(o["metadata"]["labels"][RUN_LABEL] == "abcd1234" for o in cluster.objects)


def request(judgement: Judgement, **more: Any) -> ClusterRequest:
    job = judgement.jobs[0]
    assert job.witness is not None
    made = cast(judgement, job.job, job.witness.nodes)
    fields = {"segments": cached_segments(judgement.policies), "settle": lambda: None} | more
    return ClusterRequest(job=job.job, cast=made, **fields)


def test_the_jobs_pairs_are_measured_under_the_clusters_cni_and_nothing_stays() -> None:
    judgement = incident()
    wanted = request(judgement, policies=judgement.policies.policies, by_label=True)
    by_probe = {probe_name("abcd1234", pod): end for pod, end in wanted.cast.endpoints.items()}

    def cni(source: str, target: str, port: int) -> bool:
        if source not in by_probe:
            return isolates(source, target, port)
        verdict = judgement.policies.evaluate_range(by_probe[source], by_probe[target], PortRange(port, port))[0][1]
        return verdict.outcome is not Outcome.DENIED

    cluster = Recorded(open_to=cni)
    lines: list[str] = []
    result = rehearse_on_cluster(wanted, cluster, lines.append, "abcd1234")
    assert len(result.edges) == 5 * 4 * 2
    assert result.disagreements == ()
    assert {(e.source, e.destination) for e in result.denied} >= {("llm-worker-0", "llm-master-0")}
    assert "policy.yaml:" in result.denied[0].reason
    assert cluster.pods == {} and cluster.namespaces == set()  # train did not exist: made and removed
    pods = {o["metadata"]["name"]: o for o in cluster.objects if o["kind"] == "Pod"}
    worker = pods["stsc-abcd1234-llm-worker-0"]
    assert worker["metadata"]["labels"]["net-zone"] == "gpu"  # what the policy selects
    assert worker["spec"]["nodeSelector"] == {"stallscope.dev/node": judgement.jobs[0].witness.nodes["llm-worker-0"]}
    assert [o["metadata"]["name"] for o in cluster.objects if o["kind"] == "CiliumNetworkPolicy"] == ["zone-boundary"]
    assert next(c for c in cluster.calls if c[:2] == ["delete", "ciliumnetworkpolicy.cilium.io"])[:4] == [
        "delete",
        "ciliumnetworkpolicy.cilium.io",
        "-n",
        "train",
    ]


def test_a_cluster_that_disagrees_is_reported_after_a_second_look() -> None:
    looks = []
    wanted = request(incident(), settle=lambda: looks.append(1))
    result = rehearse_on_cluster(wanted, Recorded(open_to=isolates), lambda _: None, "abcd1234")  # it lets all pairs talk
    assert len(looks) == 5  # once a source: each has a denied peer
    assert len(result.disagreements) == 16


def test_an_existing_namespace_is_kept_and_a_running_job_refused() -> None:
    cluster = Recorded(open_to=isolates, namespaces={"train"})
    rehearse_on_cluster(request(incident()), cluster, lambda _: None, "abcd1234")
    assert cluster.namespaces == {"train"}
    with pytest.raises(ClusterError, match="is in this cluster"):
        rehearse_on_cluster(request(incident()), Recorded(jobs="pytorchjob.kubeflow.org/llm"), lambda _: None)


def test_a_failure_midway_still_cleans_up() -> None:
    cluster = Recorded(open_to=isolates)
    wanted = request(incident())

    def break_after_preflight(_: str) -> None:
        cluster.fail_wait = True

    with pytest.raises(ClusterError, match="timed out"):
        rehearse_on_cluster(wanted, cluster, break_after_preflight, "abcd1234")
    assert cluster.pods == {} and cluster.namespaces == set()


def test_the_current_clusters_own_nodes_and_policies_replace_the_inputs() -> None:
    judgement = incident()
    cluster = Recorded(nodes=[node_body(n, z) for n, z in (("x", "z1"), ("y", "z2"))])
    after, job = rejudge(judgement, judgement.jobs[0], cluster)
    assert after.policies.policies == ()  # the cluster has none, whatever the files say
    assert {n.name for n in after.topology.nodes} == {"x", "y"}
    assert job.job.ref == "PyTorchJob train/llm"


def test_an_absent_policy_kind_is_skipped_and_a_broken_answer_is_not() -> None:
    assert cluster_objects(Recorded()) == ()
    with pytest.raises(ClusterError, match="Forbidden"):
        cluster_objects(says(Answer(1, "", "retrying\nError from server (Forbidden): no")))
    with pytest.raises(ClusterError, match="not JSON"):
        cluster_objects(says(Answer(0, "<html>")))
    with pytest.raises(ClusterError, match="not JSON"):
        get(says(Answer(0, "<html>")), ["nodes"])


def test_backend_kind_touches_kind_clusters_only() -> None:
    _must_be_kind(Recorded(), "")
    with pytest.raises(ClusterError, match="'prod' is no kind cluster"):
        _must_be_kind(Recorded(), "prod")


def test_probe_names_are_dns_labels_that_do_not_collide() -> None:
    assert probe_name("abcd1234", "llm-node-0-0-*") == "stsc-abcd1234-llm-node-0-0"
    long = [probe_name("abcd1234", "x" * 60 + tail) for tail in ("a", "b")]
    assert len(set(long)) == 2 and all(len(n) <= 63 for n in long)


def test_a_probe_looks_like_the_pod_to_a_policy() -> None:
    end = Endpoint(
        name="w",
        namespace="train",
        labels=(("app", "x"), (ZONE, "z1")),
        service_account="trainer",
        named_ports=(("rdzv", Protocol.TCP, 29500),),
    )
    pod = probe_pod("abcd1234", end, {"kubernetes.io/hostname": "n"}, (29500, 32768), "image")
    assert pod["metadata"]["labels"] == {"app": "x", RUN_LABEL: "abcd1234"}  # zone labels come from the node
    assert pod["spec"]["serviceAccountName"] == "trainer"
    container = pod["spec"]["containers"][0]
    assert container["ports"] == [{"name": "rdzv", "containerPort": 29500, "protocol": "TCP"}]
    assert [e["name"] for e in container["env"]] == ["SERVE_PORT_29500", "SERVE_PORT_32768"]


def test_the_kind_config_has_zones_taints_and_no_cni() -> None:
    topology = incident().topology
    assert topology is not None
    body = yaml.safe_load(kind_config(topology))
    assert body["networking"] == {"disableDefaultCNI": True}
    worker = next(n for n in body["nodes"] if n.get("labels", {}).get("stallscope.dev/node") == "gpu-a-0")
    assert worker["labels"][ZONE] == "zone-a"
    assert not any(k.startswith("kubernetes.io/") for k in worker["labels"])  # a kubelet may not set those
    patch = yaml.safe_load(worker["kubeadmConfigPatches"][0])
    assert patch["nodeRegistration"]["taints"] == [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}]
    assert Taint("nvidia.com/gpu", "present", "NoSchedule") in next(n for n in topology.nodes if n.name == "gpu-a-0").taints
    assert any("cilium install" in s for s in kind_steps("k.yaml"))


def test_kubectl_that_is_missing_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(ClusterError, match="kubectl is not installed"):
        real_kubectl()(["version"])


def test_against_a_real_cluster() -> None:
    if not os.environ.get("STALLSCOPE_TEST_CLUSTER"):
        pytest.skip("no cluster: set KUBECONFIG, and STALLSCOPE_TEST_CLUSTER to a context whose CNI enforces policies")
    enforces_policy(real_kubectl(os.environ["STALLSCOPE_TEST_CLUSTER"]), "0a1b2c3d", probe_image())


def probe_image() -> str:
    from stallscope.lab.backend.manifests import IMAGE

    return IMAGE
