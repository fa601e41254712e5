"""Names inside the pods: a hosts file that answers as the job's headless Services would, and an empty resolver."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from stallscope.errors import LabError
from stallscope.lab.topology import LabSpec

TARGETS = ("/etc/hosts", "/etc/resolv.conf")


def hosts_text(spec: LabSpec, ips: Mapping[str, str]) -> str:
    """/etc/hosts with every pod's name and Service names; localhost first, as everywhere."""
    lines = ["127.0.0.1 localhost"]
    for pod in spec.pods:
        names = dict.fromkeys((*pod.host_names, pod.name))
        lines.append(f"{ips[pod.name]} {' '.join(n for n in names if '*' not in n)}")
    return "\n".join(lines) + "\n"


def write_names(directory: Path, spec: LabSpec, ips: Mapping[str, str], *, broken: bool = False) -> dict[str, str]:
    """
    Write the name files and give target -> source for bind mounts. `broken`: no name of the job resolves (the DNS
    fault). No name server is ever asked: the resolver is empty, so nothing leaves the machine. Raises LabError where there
    is nothing to mount over: the lab makes no file of the system's.
    """
    absent = next((target for target in TARGETS if not Path(target).exists()), None)
    if absent:
        raise LabError(
            f"no rehearsal here: {absent} does not exist, so pods cannot get names", hint=f"make it: touch {absent}"
        )
    hosts, resolver = directory / "hosts", directory / "resolv.conf"
    hosts.write_text("127.0.0.1 localhost\n" if broken else hosts_text(spec, ips))
    resolver.write_text("# the pocket cluster resolves names from its hosts file\noptions timeout:1 attempts:1\n")
    return dict(zip(TARGETS, (str(hosts), str(resolver)), strict=True))
