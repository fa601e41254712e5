"""
Shaping: the profile's rates, delays and losses on the links of a pocket cluster, with whatever this kernel has.

Rates: tbf on both ends of every node's uplink (the NIC), htb with one class a sending pod on the trunks (cross-zone), so
that each ring edge has its own share, as a cloud's single-flow limit gives. Delay and loss: netem where the kernel has it.
Without netem, loss is a random drop in nftables, and a delay is left out and *said* (reference lab.md §1, §6).
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

from stallscope.collective.links import Link
from stallscope.errors import LabError
from stallscope.lab import netlink
from stallscope.lab.kernel import entered
from stallscope.lab.netns import End, Namespace, PocketCluster, scratch

_LEAF_QUEUE_SECONDS = 0.1
_MIN_BURST = 3200
_MIN_QUEUE = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """What this kernel and this machine can shape with."""

    tbf: bool
    htb: bool
    netem: bool
    nft: bool

    @property
    def missing(self) -> tuple[str, ...]:
        return tuple(name for name in ("tbf", "htb", "netem", "nft") if not getattr(self, name))


@cache
def features() -> Features:
    """Try each feature in a throw-away namespace."""
    tc = shutil.which("tc")
    with scratch() as lab:
        lab.netlink.send([netlink.link_up(1)])
        return Features(
            tbf=_works(lab, netlink.tbf(1, rate=1_000_000, burst=_MIN_BURST, limit=_MIN_QUEUE)),
            htb=bool(tc) and _tc_works(lab, "htb"),
            netem=bool(tc) and _tc_works(lab, "netem", "delay", "1ms"),
            nft=shutil.which("nft") is not None,
        )


def _works(namespace: Namespace, request: bytes) -> bool:
    try:
        namespace.netlink.send([request, netlink.no_qdisc(1)])
    except OSError:
        return False
    return True


def _tc_works(namespace: Namespace, *qdisc: str) -> bool:
    with entered(namespace.fd):
        done = subprocess.run(["tc", "qdisc", "replace", "dev", "lo", "root", *qdisc], capture_output=True, check=False)
    return done.returncode == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What to put on the links, in lab units: rates already scaled (bytes/s), delays already scaled (s)."""

    zone: Link
    cross_zone: Link


def shape(cluster: PocketCluster, wanted: Shape, have: Features | None = None) -> tuple[str, ...]:
    """
    Apply `wanted` to `cluster` (again: replaces). Gives one sentence for everything that could not be shaped.

    Raises LabError when rates cannot be shaped at all: a rehearsal without rates would measure the machine, not the job.
    """
    have = have or features()
    if not have.tbf:
        raise LabError("this kernel has no tbf qdisc, so link rates cannot be shaped", hint="load the module sch_tbf")
    said: list[str] = []
    for link in cluster.links_of("nic"):
        _rate(link, wanted.zone, have, said)
    trunks = cluster.links_of("trunk")
    for link in trunks:
        if have.htb:
            _per_pod(cluster, link, wanted.cross_zone, have, said)
        else:
            _rate(link, wanted.cross_zone, have, said)
    if trunks and not have.htb:
        said.append("no htb qdisc or no tc: the pods of a zone share one cross-zone rate instead of having one each")
    return tuple(dict.fromkeys(said))


def _rate(link: End, settings: Link, have: Features, said: list[str]) -> None:
    rate = max(1, int(settings.bandwidth))
    request = netlink.tbf(link.index, rate=rate, burst=burst(rate), limit=queue(rate))
    link.namespace.netlink.send([request])
    if settings.latency or settings.loss:
        _delay_and_loss(link, "1:1", settings, have, said)


def _per_pod(cluster: PocketCluster, link: End, settings: Link, have: Features, said: list[str]) -> None:
    """htb on a trunk end: one class for each pod of the sending zone, chosen by source address."""
    rate = max(1, int(settings.bandwidth))
    zone = next(z for z in cluster.plan.zones if z.name == link.owner)
    sources = [p.ip for n in zone.nodes for p in n.pods]
    lines = [f"qdisc replace dev {link.name} root handle 1: htb default 1"]
    limit, size = queue(rate), burst(rate)
    for number, source in enumerate(["", *sources], 1):
        classid = f"1:{number:x}"
        lines.append(
            f"class replace dev {link.name} parent 1: classid {classid} htb rate {rate}bps burst {size} cburst {size}"
        )
        lines.append(f"qdisc replace dev {link.name} parent {classid} handle {number + 1:x}: bfifo limit {limit}")
        if source:
            match = f"match ip src {source}/32"
            lines.append(f"filter add dev {link.name} parent 1: protocol ip prio 1 u32 {match} flowid {classid}")
    if have.netem and (settings.latency or settings.loss):
        netem = _netem(settings)
        lines = [line if "bfifo" not in line else line.replace(f"bfifo limit {limit}", netem) for line in lines]
    elif settings.latency or settings.loss:
        _delay_and_loss(link, "", settings, have, said)
    with suppress(OSError):  # shaped before: start anew; never shaped: nothing to remove
        link.namespace.netlink.send([netlink.no_qdisc(link.index)])
    with entered(link.namespace.fd):
        run_tc(lines)


def run_tc(lines: Sequence[str]) -> None:
    """`tc -batch` in the calling thread's namespace. Raises LabError with tc's first complaint."""
    done = subprocess.run(["tc", "-batch", "-"], input="\n".join(lines) + "\n", text=True, capture_output=True, check=False)
    if done.returncode:
        raise LabError(f"tc: {(done.stderr.strip() or 'failed').splitlines()[0]}")


def _netem(settings: Link) -> str:
    parts = ["netem limit 100000"]
    if settings.latency:
        parts.append(f"delay {settings.latency * 1e6:.0f}us")
    if settings.loss:
        parts.append(f"loss {settings.loss * 100:.4f}%")
    return " ".join(parts)


def _delay_and_loss(link: End, parent: str, settings: Link, have: Features, said: list[str]) -> None:
    if have.netem and parent:
        with entered(link.namespace.fd):
            run_tc([f"qdisc replace dev {link.name} parent {parent} handle 10: {_netem(settings)}"])
        return
    if settings.latency:
        said.append("this kernel has no netem: link delays are those of the machine, not of the profile")
    if settings.loss and have.nft:
        random_loss(link, settings.loss)
    elif settings.loss:
        said.append("neither netem nor nft: link loss is not shaped")


def random_loss(link: End, share: float) -> None:
    """Drop `share` of what leaves through `link`, at random, in nftables. Raises LabError."""
    table = f"stsc_loss_{link.name}"
    text = f"""add table inet {table}
delete table inet {table}
table inet {table} {{
  chain out {{
    type filter hook postrouting priority 0; policy accept;
    oifname "{link.name}" numgen random mod 100000 < {round(share * 100000)} counter drop
  }}
}}
"""
    with entered(link.namespace.fd):
        run_nft(text)


def run_nft(text: str) -> None:
    """`nft -f -` in the calling thread's namespace: one atomic transaction. Raises LabError."""
    try:
        done = subprocess.run(["nft", "-f", "-"], input=text, text=True, capture_output=True, check=False)
    except FileNotFoundError:
        raise LabError("the program nft is missing", hint="install the package nftables") from None
    if done.returncode:
        raise LabError(f"nft: {(done.stderr.strip() or 'failed').splitlines()[0]}")


def burst(rate: int) -> int:
    """Bucket size in bytes for `rate` bytes/s: 2.5 ms' worth: enough for whole GSO packets,
    too little to be a hole in the limit."""
    return max(_MIN_BURST, rate // 400)


def queue(rate: int) -> int:
    """Queue in bytes: a tenth of a second, as a shallow-buffered NIC or router port would hold at most."""
    return max(_MIN_QUEUE, int(rate * _LEAF_QUEUE_SECONDS))
