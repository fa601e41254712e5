"""What containers say about ranks and meeting points. Sources: torch.distributed.run's options, kubelet's $(VAR) rules."""

from __future__ import annotations

from typing import Any

import pytest

from stallscope.load.kinds.context import placeholder
from stallscope.load.kinds.launch import launch_of, ranks_per_pod, with_port
from stallscope.load.kinds.mpi_common import ssh_port
from stallscope.load.kinds.rendezvous import written_address


def pod(
    command: Any = None, args: Any = None, env: dict[str, str] | None = None, gpus: Any = None, **more: Any
) -> dict[str, Any]:
    container: dict[str, Any] = {"name": "main", **more}
    if command is not None:
        container["command"] = command
    if args is not None:
        container["args"] = args
    if env:
        container["env"] = [{"name": k, "value": v} for k, v in env.items()]
    if gpus is not None:
        container["resources"] = {"limits": {"nvidia.com/gpu": gpus}}
    return {"containers": [container]}


@pytest.mark.parametrize(
    ("spec", "declared", "ranks"),
    [
        (pod(["torchrun", "--nproc_per_node=4", "t.py"]), None, 4),  # the flag
        (pod(["torchrun", "--nproc-per-node", "4", "t.py"]), "8", 4),  # the flag wins over what the job declares
        (pod(["bash", "-c", "exec torchrun --nproc_per_node $G t.py"], env={"G": "6"}), None, 6),  # a shell variable
        (pod(["torchrun", "t.py"], env={"PET_NPROC_PER_NODE": "3"}), None, 3),  # torchrun's variable
        (pod(["torchrun", "t.py"], gpus=8), "auto", 8),  # auto: one a device
        (pod(["torchrun", "t.py"]), "auto", 1),
        (pod(["python", "t.py"], gpus=8), "auto", 1),  # nothing starts more than one process
        (pod(["python", "t.py"], gpus=8), "8", 8),  # nprocPerNode multiplies WORLD_SIZE whatever the command
        (pod(["bash", "run.sh"], gpus=8), "auto", 8),  # a script may hide torchrun
        (pod(gpus="$GPUS"), "auto", 1),  # a placeholder stands for at least one device
        (pod(["torchrun", "--nproc_per_node=$GPUS", "t.py"], gpus=4), None, 4),
        (pod(["torchrun", "--nproc_per_node=0", "t.py"]), None, 1),
        (pod(["torchrun", "--nproc_per_node=99999999999999999999"]), None, 1),
    ],
)
def test_ranks_per_pod(spec: dict[str, Any], declared: Any, ranks: int) -> None:
    assert ranks_per_pod(launch_of(spec), declared)[0] == ranks


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        (pod(["torchrun", "--rdzv_endpoint=a:1", "t.py"], env={"MASTER_ADDR": "b", "MASTER_PORT": "2"}), ("a", 1)),
        (pod(["torchrun", "--master-addr", "a", "--master-port", "1", "t.py"]), ("a", 1)),
        (pod(["torchrun", "--master_addr=a", "t.py"], env={"MASTER_PORT": "2"}), ("a", 2)),
        (pod(["torchrun", "t.py"], env={"PET_RDZV_ENDPOINT": "a:1", "MASTER_ADDR": "b"}), ("a", 1)),
        (pod(["python", "t.py"], env={"MASTER_ADDR": "b", "MASTER_PORT": "2"}), ("b", 2)),
        (pod(["python", "t.py"], env={"JAX_COORDINATOR_ADDRESS": "c:3"}), ("c", 3)),
        (pod(["python", "t.py"], env={"DMLC_TRACKER_URI": "d", "DMLC_TRACKER_PORT": "4"}), ("d", 4)),
        (pod(["python", "t.py"], env={"MASTER_ADDR": "b", "MASTER_PORT": "99999"}), ("b", 0)),
        (pod(["python", "t.py"], env={"HOST": "h", "MASTER_ADDR": "$(HOST)-0", "MASTER_PORT": "2"}), ("h-0", 2)),
    ],
)
def test_the_written_address(spec: dict[str, Any], wanted: tuple[str, int]) -> None:
    address = written_address(launch_of(spec))
    assert address is not None
    assert (address.host, address.port) == wanted


def test_nothing_written() -> None:
    assert written_address(launch_of(pod(["python", "t.py"]))) is None


def test_variables_resolve_in_order_and_from_known_fields() -> None:
    """`$(X)` sees only variables defined before it (kubernetes.io "Define dependent environment variables")."""
    container = {
        "name": "m",
        "env": [
            {"name": "EARLY", "value": "$(LATE)"},
            {"name": "LATE", "value": "x"},
            {"name": "SET", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['jobset.sigs.k8s.io/jobset-name']"}}},
            {"name": "ADDR", "value": "$(SET)-w-0-0.$(SET)"},
            {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        ],
    }
    fields = {"metadata.labels['jobset.sigs.k8s.io/jobset-name']": "js"}
    launch = launch_of({"containers": [container]}, fields=fields)
    assert dict(launch.env) == {"EARLY": "$(LATE)", "LATE": "x", "SET": "js", "ADDR": "js-w-0-0.js"}
    assert launch.names == {"EARLY", "LATE", "SET", "ADDR", "IP"}


@pytest.mark.parametrize(
    ("spec", "word"),
    [
        (pod(["torchrun", "t.py"]), "torchrun"),
        (pod(["python", "-m", "torch.distributed.launch", "t.py"]), "torch.distributed.launch"),
        (pod(["sh", "-c", "accelerate   launch t.py"]), "accelerate launch"),
        (pod(["./t"], env={"NCCL_DEBUG": "INFO"}), "NCCL_DEBUG"),
        (pod(["sh", "-c", "export MASTER_ADDR=x; python t.py"]), "MASTER_ADDR"),
        (pod(["./t"], env={"PYTHONPATH": "/x"}), ""),
        (pod(["nginx"]), ""),
        (pod(["python", "my_torchrunner.py"]), ""),
    ],
)
def test_telltale(spec: dict[str, Any], word: str) -> None:
    assert launch_of(spec).telltale == word


@pytest.mark.parametrize(
    ("resources", "devices"),
    [
        ({"limits": {"nvidia.com/gpu": 8}}, 8),
        ({"requests": {"nvidia.com/gpu": "4"}}, 4),
        ({"limits": {"nvidia.com/gpu": 0}}, 0),
        ({"limits": {"nvidia.com/gpu": "0"}}, 0),
        ({"limits": {"nvidia.com/mig-1g.5gb": 2}}, 2),
        ({"limits": {"google.com/tpu": 4}}, 4),
        ({"limits": {"aws.amazon.com/neuron": 16}}, 16),
        ({"limits": {"vpc.amazonaws.com/efa": 32, "cpu": 8}}, 0),
        ({"limits": {"nvidia.com/gpu": -3}}, 0),
    ],
)
def test_devices(resources: dict[str, Any], devices: int) -> None:
    assert launch_of({"containers": [{"name": "m", "resources": resources}]}).accelerators == devices


@pytest.mark.parametrize(
    ("container", "number"),
    [
        ({"command": ["/usr/sbin/sshd", "-De"]}, 22),
        ({"command": ["/usr/sbin/sshd"], "args": ["-De", "-f", "/home/mpiuser/.sshd_config"]}, 2222),
        ({"command": ["sh", "-c", "/usr/sbin/sshd -D -p 222"]}, 222),
        ({"ports": [{"name": "ssh", "containerPort": 2022}]}, 2022),
        ({"command": ["sshd"], "readinessProbe": {"tcpSocket": {"port": 4022}}}, 4022),
        ({"ports": [{"name": "ssh", "containerPort": "x"}]}, 22),
    ],
)
def test_ssh_port(container: dict[str, Any], number: int) -> None:
    assert ssh_port({"containers": [{"name": "m", **container}]}) == number


def test_the_default_port_goes_to_the_named_container_else_the_first() -> None:
    two = {"containers": [{"name": "side"}, {"name": "pytorch"}]}
    assert with_port(two, "p", 1, "pytorch")["containers"][1]["ports"] == [{"name": "p", "containerPort": 1}]
    assert with_port(two, "p", 1, "other")["containers"][0]["ports"] == [{"name": "p", "containerPort": 1}]
    own = {"containers": [{"name": "pytorch", "ports": [{"name": "p", "containerPort": 9}]}]}
    assert with_port(own, "p", 1, "pytorch") is own
    assert with_port({}, "p", 1, "pytorch") == {}


@pytest.mark.parametrize(
    ("value", "yes"),
    [
        ("$NUM_NODES", True), ("${N}", True), ("{{ .Values.n }}", True), ("<replicas>", True),
        ("NUM_NODES", True), ("__N__", True),
        ("3", False), ("three", False), ("", False), (3, False), (None, False), ("N", False),
    ],
)  # fmt: skip
def test_placeholder(value: Any, yes: bool) -> None:
    assert placeholder(value) is yes
