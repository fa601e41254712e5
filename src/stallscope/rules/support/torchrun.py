"""
torchrun's dynamic rendezvous: who hosts the store, and under which name an agent is known to the others.

Source: torch/distributed/elastic/rendezvous. c10d_rendezvous_backend.py: without ``is_host`` a node hosts the store when the
endpoint's host matches its own host name or one of its addresses (utils.py, _matches_machine_hostname; 1.10 and 1.11 compare
names alone, pytorch#73380). dynamic_rendezvous.py: an agent is known by ``local_addr``, else by ``socket.getfqdn()``, and
rank 0's becomes MASTER_ADDR.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from stallscope.model.kube import KubeObject
from stallscope.model.source import as_str
from stallscope.model.workload import Role, TrainingJob
from stallscope.rules.support.containers import Container, rank_containers
from stallscope.rules.support.names import bare_name
from stallscope.rules.support.settings import command_text, flag, has_token, opaque, sets, setting

_LAUNCHERS = ("torchrun", "torch.distributed.run")
_OLD_IMAGE = re.compile(r"pytorch[^:@]*:v?1\.(\d{1,2})\b")
#: The last PyTorch 1.x minor that is known to compare names only.
_NAMES_ONLY = 11


@dataclass(frozen=True, slots=True, kw_only=True)
class Torchrun:
    """`hosts`: some node is told to host the store. `known_as`: agents are told their address."""

    container: Container
    hosts: bool
    known_as: bool

    @property
    def compares_names_only(self) -> bool:
        """The image says it is a PyTorch that does not compare addresses."""
        found = _OLD_IMAGE.search(as_str(self.container.body.get("image")))
        return found is not None and int(found.group(1)) <= _NAMES_ONLY


def dynamic_torchrun(role: Role) -> Torchrun | None:
    """The role's torchrun with the c10d backend, if its ranks are started by one; what is not stated is not assumed."""
    for container in rank_containers(role):
        backend = flag(container, "--rdzv_backend", "--rdzv-backend") or setting(container, "PET_RDZV_BACKEND")
        if not has_token(container, *_LAUNCHERS) or backend is None or backend.value != "c10d" or opaque(container):
            continue
        conf = flag(container, "--rdzv_conf", "--rdzv-conf") or setting(container, "PET_RDZV_CONF")
        hosts = conf is not None and "is_host" in conf.value
        text = command_text(container)
        address = "--local-addr" in text or "--local_addr" in text or sets(container, "PET_LOCAL_ADDR")
        return Torchrun(container=container, hosts=hosts, known_as=address)
    return None


def virtual_service(host: str, job: TrainingJob, objects: Sequence[KubeObject]) -> KubeObject | None:
    """The Service of the files that `host` names, when it has an address of its own (it is not headless)."""
    name = bare_name(host, job.namespace)
    for item in objects:
        if item.kind == "Service" and item.name == name and item.namespace == job.namespace:
            external = as_str(item.get("spec", "type")) == "ExternalName"
            return None if external or as_str(item.get("spec", "clusterIP")) == "None" else item
    return None


def nameless(job: TrainingJob, role: Role, objects: Sequence[KubeObject]) -> bool:
    """True when other pods cannot look up the host name of this role's pods."""
    services = {s.name for s in job.services} | {
        o.name for o in objects if o.kind == "Service" and o.namespace == job.namespace
    }
    pods = job.pods_of(role.name)
    return bool(pods) and not any(p.host_names or p.name in services for p in pods)
