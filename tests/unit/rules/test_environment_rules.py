"""Environment rules: what NCCL, Gloo, torchrun and Kubernetes document about variables, ports, names and shared memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from stallscope.findings import Finding
from stallscope.rules.stl3xx_environment.stl305_timeout_shorter_than_checkpoint import parse_duration

Check = Callable[..., list[Finding]]
Build = Callable[..., dict[str, Any]]
Template = Callable[..., dict[str, Any]]


def severities(found: list[Finding]) -> list[str]:
    return sorted(str(f.severity) for f in found)


def env(**values: Any) -> list[dict[str, Any]]:
    return [{"name": k, "value": v} for k, v in values.items()]


def with_container(template: Template, **fields: Any) -> dict[str, Any]:
    return {"spec": {"containers": template(**fields)["spec"]["containers"]}}


# -- STL301 ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "host", "expected"),
    [
        ("NCCL_SOCKET_IFNAME", "eth0", False, []),
        ("NCCL_SOCKET_IFNAME", "=eth0", False, []),
        ("NCCL_SOCKET_IFNAME", "eth0,eth1", False, []),
        ("NCCL_SOCKET_IFNAME", "^lo", False, []),
        ("NCCL_SOCKET_IFNAME", "^docker,lo,veth", False, []),
        ("NCCL_SOCKET_IFNAME", "^docker0", False, ["warning"]),
        ("NCCL_SOCKET_IFNAME", "^=docker0", True, ["warning"]),
        ("NCCL_SOCKET_IFNAME", "lo", False, ["error"]),
        ("NCCL_SOCKET_IFNAME", "=lo", True, ["error"]),
        ("NCCL_SOCKET_IFNAME", "lo,eth0", False, []),
        ("NCCL_SOCKET_IFNAME", "eno1", False, ["warning"]),
        ("NCCL_SOCKET_IFNAME", "eno1", True, []),
        ("NCCL_SOCKET_IFNAME", "eno1,eth0", False, []),
        ("NCCL_SOCKET_IFNAME", "docker0", True, ["warning"]),
        ("GLOO_SOCKET_IFNAME", "eth0", False, []),
        ("GLOO_SOCKET_IFNAME", "^lo", False, ["error"]),
        ("GLOO_SOCKET_IFNAME", "=eth0", False, ["error"]),
        ("GLOO_SOCKET_IFNAME", "lo", False, ["error"]),
        ("NCCL_SOCKET_IFNAME", "$(NIC)", False, []),
        ("NCCL_SOCKET_IFNAME", "", False, []),
    ],
)
def test_interfaces(
    check: Check, pytorch: Build, template: Template, name: str, value: str, host: bool, expected: list[str]
) -> None:
    worker = with_container(template, env=env(**{name: value}))
    worker["spec"]["hostNetwork"] = host
    assert severities(check("STL301", pytorch(worker=worker))) == expected


def test_a_secondary_network_may_bring_other_names(check: Check, pytorch: Build, template: Template) -> None:
    worker = with_container(template, env=env(NCCL_SOCKET_IFNAME="ens8"))
    worker["metadata"] = {"annotations": {"k8s.v1.cni.cncf.io/networks": "rdma@ens8"}}
    assert check("STL301", pytorch(worker=worker)) == []


@pytest.mark.parametrize(
    ("command", "fires"),
    [
        (["bash", "-c", "export NCCL_SOCKET_IFNAME=lo\ntorchrun train.py"], True),
        (["bash", "-c", "# export NCCL_SOCKET_IFNAME=lo\ntorchrun train.py"], False),
        (["bash", "-c", "NCCL_SOCKET_IFNAME='lo' torchrun train.py"], True),
        (["bash", "-c", "export NCCL_SOCKET_IFNAME=$NIC; torchrun train.py"], False),
        (["mpirun", "-x", "NCCL_SOCKET_IFNAME=lo", "python", "train.py"], True),
    ],
)
def test_variables_in_the_command_line(
    check: Check, pytorch: Build, template: Template, command: list[str], fires: bool
) -> None:
    assert bool(check("STL301", pytorch(worker=with_container(template, command=command)))) is fires


def test_one_pod_may_use_loopback(check: Check, pytorch: Build, template: Template) -> None:
    lo = with_container(template, env=env(NCCL_SOCKET_IFNAME="lo"))
    assert check("STL301", pytorch(lo, lo, workers=0)) == []


# -- STL302 ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("resource", "count", "volume", "more", "fires"),
    [
        ("nvidia.com/gpu", 8, None, {}, True),
        ("amd.com/gpu", 2, None, {}, True),
        ("nvidia.com/gpu", 1, None, {}, False),
        ("google.com/tpu", 4, None, {}, False),
        ("nvidia.com/gpu", 8, {"emptyDir": {"medium": "Memory"}}, {}, False),
        ("nvidia.com/gpu", 8, {"emptyDir": {"medium": "Memory", "sizeLimit": "256Mi"}}, {}, True),
        ("nvidia.com/gpu", 8, {"emptyDir": {"medium": "Memory", "sizeLimit": "64Gi"}}, {}, False),
        ("nvidia.com/gpu", 8, {"hostPath": {"path": "/dev/shm"}}, {}, False),
        ("nvidia.com/gpu", 8, None, {"hostIPC": True}, False),
        ("nvidia.com/gpu", 8, None, {"env": env(NCCL_SHM_DISABLE="1")}, False),
    ],
)
def test_shared_memory(
    check: Check,
    pytorch: Build,
    template: Template,
    resource: str,
    count: int,
    volume: dict[str, Any] | None,
    more: dict[str, Any],
    fires: bool,
) -> None:
    mounts = [{"name": "dshm", "mountPath": "/dev/shm"}] if volume else []
    fields = {"resources": {"limits": {resource: count}}, "volumeMounts": mounts}
    worker = with_container(template, **fields, env=more.get("env", []))
    worker["spec"] |= {"volumes": [{"name": "dshm", **volume}] if volume else [], "hostIPC": more.get("hostIPC", False)}
    assert bool(check("STL302", pytorch(worker=worker))) is fires


# -- STL303, STL304, STL306 --------------------------------------------------------------------------------------


def test_a_role_without_the_flag_uses_the_operators_port(check: Check, pytorch: Build, template: Template) -> None:
    master = with_container(template, command=["torchrun", "--master_addr=llm-master-0", "--master_port=29500", "t.py"])
    (found,) = check("STL303", pytorch(master))
    assert "Worker" in found.message
    assert "23456" in found.message
    assert "29500" in found.message


def test_agreement_on_an_undeclared_port_is_an_info(check: Check, pytorch: Build, template: Template) -> None:
    both = with_container(template, command=["torchrun", "--master_addr=llm-master-0", "--master_port=29500", "t.py"])
    assert severities(check("STL303", pytorch(both, both))) == ["info"]


def indexed_job(endpoint: str, **spec: Any) -> dict[str, Any]:
    container = {"name": "t", "image": "x", "command": ["torchrun", "--nnodes=4", f"--rdzv_endpoint={endpoint}", "t.py"]}
    pod = {"subdomain": "llm", "containers": [container], **spec}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "llm", "namespace": "train"},
        "spec": {
            "completionMode": "Indexed",
            "completions": 4,
            "parallelism": 4,
            "template": {"metadata": {"labels": {"app": "llm"}}, "spec": pod},
        },
    }


def service(**spec: Any) -> dict[str, Any]:
    body = {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": {"app": "llm"}, **spec}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "llm", "namespace": "train"}, "spec": body}


@pytest.mark.parametrize(
    ("endpoint", "expected"),
    [
        ("llm-0.llm:29500", []),
        ("llm-0.llm.train.svc.cluster.local:29500", []),
        ("llm:29500", []),
        ("10.1.2.3:29500", []),
        ("etcd.storage.example.com:2379", []),
        ("$(RDZV_HOST):29500", []),
        ("localhost:29500", ["error"]),
        ("127.0.0.1:0", ["error"]),
        ("llm-master-0:29500", ["warning"]),
        ("llm-0.trainers:29500", ["warning"]),
    ],
)
def test_rendezvous_names(check: Check, endpoint: str, expected: list[str]) -> None:
    assert severities(check("STL304", indexed_job(endpoint), service())) == expected


def test_standalone_meets_nobody(check: Check) -> None:
    job = indexed_job("localhost:29500")
    job["spec"]["template"]["spec"]["containers"][0]["command"] = ["torchrun", "--standalone", "t.py"]
    assert check("STL304", job, service()) == []


@pytest.mark.parametrize(("port", "expected"), [(29500, []), (32767, []), (32768, ["info"]), (60999, ["info"]), (61000, [])])
def test_ephemeral_range(check: Check, port: int, expected: list[str]) -> None:
    assert severities(check("STL306", indexed_job(f"llm-0.llm:{port}"), service())) == expected


# -- STL305 ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("90s", 90), ("15m", 900), ("1h", 3600), ("1h30m", 5400), ("", None), ("soon", None), ("1d", None)],
)
def test_durations(text: str, seconds: int | None) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    ("flag", "annotation", "expected"),
    [
        ("--ddp_timeout=600", "15m", ["warning"]),
        ("--ddp_timeout=1800", "15m", []),
        ("--distributed-timeout-minutes=10", "15m", ["warning"]),
        ("--distributed-timeout-minutes=60", "15m", []),
        ("--ddp_timeout=60", None, ["info"]),
        ("--ddp_timeout=600", None, []),
        ("--ddp_timeout=abc", "15m", []),
    ],
)
def test_timeouts(
    check: Check, pytorch: Build, template: Template, flag: str, annotation: str | None, expected: list[str]
) -> None:
    worker = with_container(template, args=[flag])
    metadata = {"annotations": {"stallscope.dev/checkpoint-duration": annotation}} if annotation else {}
    assert severities(check("STL305", pytorch(worker=worker, metadata=metadata))) == expected


# -- STL307, STL308, STL309 --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("NCCL_ASYNC_ERROR_HANDLING", ["info"]),
        ("TORCH_NCCL_ASYNC_ERROR_HANDLING", []),
        ("NCCL_TIMEOUT", ["info"]),
        ("NCCL_SOCKET_IF_NAME", ["warning"]),
        ("NCCL_DEBUG", []),
    ],
)
def test_settings_nobody_reads(check: Check, pytorch: Build, template: Template, name: str, expected: list[str]) -> None:
    assert severities(check("STL307", pytorch(worker=with_container(template, env=env(**{name: "1"}))))) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, ["info"]),
        ({}, []),
        ({"clusterIP": ""}, ["warning"]),
        ({"selector": {"app": "other"}}, ["error"]),
        ({"publishNotReadyAddresses": False}, []),
    ],
)
def test_headless_service(check: Check, given: dict[str, Any] | None, expected: list[str]) -> None:
    objects = [indexed_job("llm-0.llm:29500")] + ([service(**given)] if given is not None else [])
    assert severities(check("STL308", *objects)) == expected


def test_readiness_and_names_wait_for_each_other(check: Check) -> None:
    job = indexed_job("llm-0.llm:29500")
    job["spec"]["template"]["spec"]["containers"][0]["readinessProbe"] = {"tcpSocket": {"port": 29500}}
    (found,) = check("STL308", job, service(publishNotReadyAddresses=False))
    assert "readiness" in found.message
    assert check("STL308", job, service()) == []


@pytest.mark.parametrize(("ports", "expected"), [([], ["info"]), ([{"containerPort": 8080}], [])])
def test_replicas_of_one_node_share_its_ports(check: Check, ports: list[dict[str, int]], expected: list[str]) -> None:
    """
    torchrun on a port that the template does not declare. Any declared port of a host-network pod is a host port (API server
    defaulting, defaultHostNetworkPorts), and the scheduler's NodePorts filter then keeps two such pods apart.
    """
    job = indexed_job("llm-0.llm:29500")
    spec = job["spec"]["template"]["spec"]
    spec["hostNetwork"] = True
    spec["containers"][0]["ports"] = ports
    assert severities(check("STL309", job, service())) == expected


def test_ports_the_operator_declares_keep_replicas_apart(check: Check, pytorch: Build, template: Template) -> None:
    small = with_container(template, resources={"limits": {"nvidia.com/gpu": 1}})
    small["spec"]["hostNetwork"] = True
    assert check("STL309", pytorch(small, small)) == []


# -- torchrun's own rendezvous ------------------------------------------------------------------------------------


def c10d(endpoint: str, *flags: str, image: str = "registry.example/pytorch:2.6.0", **spec: Any) -> dict[str, Any]:
    job = indexed_job(endpoint, **spec)
    container = job["spec"]["template"]["spec"]["containers"][0]
    container["command"] = [*container["command"][:-1], "--rdzv_backend=c10d", *flags, "t.py"]
    container["image"] = image
    return job


FRONT = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "front", "namespace": "train"},
    "spec": {"selector": {"app": "llm"}, "ports": [{"port": 29500}]},
}


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        (c10d("front:29500"), ["warning"]),  # an address that is no pod's: every rank is a client
        (c10d("front.train.svc.cluster.local:29500"), ["warning"]),
        (c10d("front:29500", "--rdzv_conf=is_host=1"), []),
        (indexed_job("front:29500"), []),  # the backend is not stated
        (c10d("llm-0.llm:29500"), []),  # current PyTorch compares addresses
        (c10d("llm-0.llm:29500", image="registry.example/pytorch:1.10.2-cuda11.3"), ["warning"]),
        (c10d("llm-0.llm:29500", image="registry.example/pytorch:1.13.1"), []),
        (c10d("10.20.0.7:29500"), []),
        (c10d("10.20.0.7:29500", subdomain=None), ["warning"]),  # agents are known by names nobody resolves
        (c10d("10.20.0.7:29500", "--local-addr=$(POD_IP)", subdomain=None), []),
    ],
)
def test_torchruns_own_rendezvous(check: Check, job: dict[str, Any], expected: list[str]) -> None:
    """torch/distributed/elastic/rendezvous: c10d_rendezvous_backend.py, utils.py, dynamic_rendezvous.py."""
    assert severities(check("STL304", job, service(), FRONT)) == expected


@pytest.mark.parametrize(
    ("patch", "expected"),
    [
        ({}, ["info"]),
        ({"resources": {"limits": {"nvidia.com/gpu": 8, "rdma/hca": 1}}, "env": []}, ["info"]),  # asks, but nothing pins it
        ({"resources": {"limits": {"nvidia.com/gpu": 8, "example.com/vf": 1}}}, []),  # may well be the fabric
        ({"securityContext": {"privileged": True}}, []),
    ],
)
def test_an_hca_in_a_pod_without_devices(
    check: Check, pytorch: Build, template: Template, patch: dict[str, Any], expected: list[str]
) -> None:
    worker = with_container(template, **{"env": [{"name": "NCCL_IB_HCA", "value": "mlx5"}], **patch})
    assert severities(check("STL311", pytorch(None, worker))) == expected
