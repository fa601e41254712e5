"""How MPI starts ranks, whatever resource wraps it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from stallscope.load.kinds.flows import any_port, is_ranked, service
from stallscope.load.kinds.launch import launch_of
from stallscope.model.source import as_list, dig
from stallscope.model.traffic import Flow, FlowKind
from stallscope.model.workload import Role

#: Where the images of the MPI Operator and of Trainer listen as a normal user (mpi-operator build/base/Dockerfile).
USER_SSH_PORT = 2222

_PORT_FLAG = re.compile(r"\bsshd\b[^\n;|&]{0,200}?\s-p\s*(\d{2,5})\b")


def ssh_port(spec: Mapping[str, Any]) -> int:
    """
    The port a worker's sshd listens on: its ``-p``, a container port named ssh, its TCP readiness probe, 2222 when it reads
    the non-root configuration of the MPI base images, else 22.
    """
    launch = launch_of(spec)
    flag = _PORT_FLAG.search(launch.text)
    if flag and int(flag.group(1)) < 65536:
        return int(flag.group(1))
    for container in as_list(spec.get("containers")):
        for entry in as_list(dig(container, "ports")):
            name, number = dig(entry, "name"), dig(entry, "containerPort")
            if isinstance(name, str) and "ssh" in name and isinstance(number, int) and 0 < number < 65536:
                return number
        probe = dig(container, "readinessProbe", "tcpSocket", "port")
        if "sshd" in launch.text and isinstance(probe, int) and 0 < probe < 65536:
            return probe
    return USER_SSH_PORT if "/.sshd_config" in launch.text else 22


def launch_over_ssh(launcher: Role, worker: Role) -> tuple[Flow, ...]:
    """ssh from the launcher, and OpenMPI's own connections when the launcher is not a rank itself."""
    number = ssh_port(worker.template.spec)
    why = f"mpirun starts its daemons on {worker.name} over ssh (port {number})"
    start = service(launcher.name, worker.name, number, why, kind=FlowKind.LAUNCHER)
    return (start, *(() if is_ranked(launcher) and is_ranked(worker) else both_ways(launcher, worker)))


def both_ways(launcher: Role, worker: Role) -> tuple[Flow, ...]:
    """OpenMPI's out-of-band channel: daemons dial back to mpirun, mpirun dials daemons, on ports chosen at run time."""
    back = "OpenMPI daemons connect back to mpirun on a port chosen at run time"
    forth = "mpirun connects to the daemons on ports chosen at run time"
    return (any_port(worker.name, launcher.name, back), any_port(launcher.name, worker.name, forth))
