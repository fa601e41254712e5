"""What a container says about how ranks start: its command line, its literal environment, the accelerators it asks for."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from stallscope.model.quantity import parse_quantity
from stallscope.model.source import as_list, as_map, as_str, dig
from stallscope.model.topology import is_accelerator

#: Command lines longer than this are searched only in their beginning: launcher flags stand early, bombs do not.
_SEARCHED = 65536

_LAUNCHERS = re.compile(
    r"\b(torchrun|hyperpodrun|torch\.distributed\.(?:run|launch)|mpirun|mpiexec|horovodrun|deepspeed|accelerate\s+launch|tune\s+run"
    r"|paddle\.distributed\.launch|fleetrun|srun|all_reduce_perf|all_gather_perf|nemo_run|axolotl\s+train)\b"
)
#: Words in a script that set up a collective by hand: TensorFlow's cluster, parameter servers, torch's variables.
_BY_HAND = re.compile(r"\b(TF_CONFIG|MASTER_ADDR|DMLC_ROLE)\s*=|--(ps_hosts|worker_hosts|coordinator_address)\b")
_TORCH_LAUNCHERS = re.compile(r"\b(torchrun|hyperpodrun|torch\.distributed\.(?:run|launch)|tune\s+run)\b")
_TELLTALE = re.compile(
    r"(PET|NCCL|GLOO|TORCH_NCCL|TORCH_DIST|HOROVOD|OMPI_MCA|DMLC|MEGASCALE|RCCL|FI_EFA)_\w+"
    r"|MASTER_ADDR|MASTER_PORT|WORLD_SIZE|COORDINATOR_ADDR(ESS)?|JAX_COORDINATOR_ADDR(ESS)?|JAX_NUM_PROCESSES|TF_CONFIG"
    r"|TPU_WORKER_HOSTNAMES|RDZV_\w+"
)
_NEURON = ("aws.amazon.com/neuroncore", "aws.amazon.com/neurondevice")
_REFERENCE = re.compile(r"\$(?:\((\w+)\)|\{(\w+)\}|(\w+))")


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """
    How a pod starts its ranks. `text` is command and arguments of the main container joined by spaces; `env` its literal
    variables with references resolved as the kubelet does; `names` every variable's name; `accelerators` devices a pod.
    """

    text: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    names: frozenset[str] = frozenset()
    accelerators: int = 0
    resources: frozenset[str] = frozenset()

    @property
    def torchrun(self) -> bool:
        """The main command is a PyTorch elastic launcher, which reads PET_* and its own flags."""
        return _TORCH_LAUNCHERS.search(self.text) is not None

    @property
    def telltale(self) -> str:
        """The word that shows ranks talk to each other: a launcher, or a variable only collectives read. Empty: none."""
        found = _LAUNCHERS.search(self.text)
        if found:
            return " ".join(found.group(1).split())
        by_hand = _BY_HAND.search(self.text)
        if by_hand:
            return by_hand.group(1) or by_hand.group(2)
        return next((n for n in sorted(self.names) if _TELLTALE.fullmatch(n)), "")

    @property
    def tensorflow(self) -> bool:
        """TensorFlow's own cluster is set up: its tasks speak gRPC on a fixed port."""
        return "TF_CONFIG" in self.names or re.search(r"\bTF_CONFIG\s*=|--ps_hosts\b", self.text) is not None

    @property
    def tpu(self) -> bool:
        return "google.com/tpu" in self.resources

    def flag(self, *names: str) -> str:
        """The value of the first of these long options, written with ``=`` or a space; references resolved."""
        for name in names:
            match = re.search(rf"--{re.escape(name)}[=\s]+([^\s;&|]+)", self.text)
            if match:
                return self.resolve(match.group(1).strip("\"'"))
        return ""

    def resolve(self, text: str) -> str:
        """`text` with ``$(A)``, ``${A}`` and ``$A`` replaced where A is a literal variable; others stay as written."""
        return _REFERENCE.sub(lambda m: self.env.get(m.group(1) or m.group(2) or m.group(3), m.group(0)), text)


def launch_of(spec: Mapping[str, Any], container: str = "", fields: Mapping[str, str] | None = None) -> Launch:
    """
    The launch of a pod spec: of the container called `container`, else of the first. `fields` gives downward-API values
    (``metadata.labels['…']``) that are known before the pod exists.
    """
    containers = [c for c in as_list(spec.get("containers")) if isinstance(c, Mapping)]
    if not containers:
        return Launch()
    main = next((c for c in containers if c.get("name") == container), containers[0])
    words = [str(w) for w in (*_words(main.get("command")), *_words(main.get("args")))]
    env, names = _environment(main, fields or {})
    counts = [_accelerators(c) for c in containers]
    return Launch(
        text=" ".join(words)[:_SEARCHED],
        env=env,
        names=names,
        accelerators=sum(n for n, _ in counts),
        resources=frozenset().union(*(r for _, r in counts)),
    )


def _words(value: Any) -> Sequence[Any]:
    return [value] if isinstance(value, str) else as_list(value)


def _environment(container: Mapping[str, Any], fields: Mapping[str, str]) -> tuple[dict[str, str], frozenset[str]]:
    env: dict[str, str] = {}
    names: set[str] = set()
    for item in as_list(container.get("env")):
        name = as_str(dig(item, "name"))
        if not name:
            continue
        names.add(name)
        value = dig(item, "value")
        path = as_str(dig(item, "valueFrom", "fieldRef", "fieldPath"))
        if isinstance(value, (str, int, float)):
            known = str(value)
            env[name] = re.sub(r"\$\((\w+)\)", lambda m: env.get(m.group(1), m.group(0)), known)
        elif path in fields:
            env[name] = fields[path]
    return env, frozenset(names)


def _accelerators(container: Mapping[str, Any]) -> tuple[int, frozenset[str]]:
    resources = as_map(container.get("resources"))
    amounts = {**as_map(resources.get("requests")), **as_map(resources.get("limits"))}
    devices = {k: parse_quantity(v) for k, v in amounts.items() if isinstance(k, str) and _device(k)}
    # An amount that is still a placeholder (``$GPU_PER_NODE``) stands for at least one device.
    numbers = {k: 1 if q is None else int(q) for k, q in devices.items()}
    asked = {k: n for k, n in numbers.items() if 0 < n < 1 << 20}
    return sum(asked.values()), frozenset(asked)


def _device(resource: str) -> bool:
    return is_accelerator(resource) or resource in _NEURON or resource.endswith("/gpu")


def ranks_per_pod(launch: Launch, declared: Any = None, *, by_torchrun: bool | None = None) -> tuple[int, str]:
    """
    Ranks in one pod, and a note when it had to be assumed.

    The order is torchrun's own: its flag, then PET_NPROC_PER_NODE, then what the job declares (`declared`: a number or
    ``auto``, ``gpu``, ``cpu``). ``auto`` and ``gpu`` mean one rank a device (torch.distributed.run).
    """
    said = launch.flag("nproc_per_node", "nproc-per-node", "nproc") or launch.env.get("PET_NPROC_PER_NODE", "")
    value = said or ("" if declared is None or isinstance(declared, bool) else str(declared))
    if value.isdecimal() and 0 < int(value) <= 65536:
        return int(value), ""
    torchrun = launch.torchrun if by_torchrun is None else by_torchrun
    if value in ("auto", "gpu") or (torchrun and said):
        if torchrun or _hidden(launch):
            ranks = max(launch.accelerators, 1)
            note = "" if value in ("auto", "gpu") and torchrun else f"one rank a device assumed ({ranks} a pod)"
            return ranks, note if ranks > 1 else ""
        return 1, ""
    return 1, ""


def _hidden(launch: Launch) -> bool:
    """No command at all, or a shell or script that may start the launcher itself."""
    return not launch.text or re.search(r"(^|/|\s)(ba|z|da)?sh\b|\.sh\b", launch.text) is not None


def port_of(spec: Mapping[str, Any], port_name: str, container: str = "") -> int | None:
    """The number of the container port called `port_name`, in `container` when it exists, else anywhere in the pod."""
    containers = [c for c in as_list(spec.get("containers")) if isinstance(c, Mapping)]
    chosen = [c for c in containers if c.get("name") == container] or containers
    for entry in (p for c in chosen for p in as_list(c.get("ports"))):
        number = dig(entry, "containerPort")
        if dig(entry, "name") == port_name and isinstance(number, int) and 0 < number < 65536:
            return number
    return None


def with_port(spec: Mapping[str, Any], port_name: str, number: int, container: str) -> Mapping[str, Any]:
    """`spec` with the port the controller's defaulting adds to its container (the first one when none has that name)."""
    containers = list(as_list(spec.get("containers")))
    named = [i for i, c in enumerate(containers) if dig(c, "name") == container]
    index = named[0] if named else next((i for i, c in enumerate(containers) if isinstance(c, Mapping)), -1)
    if index < 0 or any(dig(p, "name") == port_name for p in as_list(dig(containers[index], "ports"))):
        return spec
    ports = [*as_list(dig(containers[index], "ports")), {"name": port_name, "containerPort": number}]
    containers[index] = {**containers[index], "ports": ports}
    return {**spec, "containers": containers}
