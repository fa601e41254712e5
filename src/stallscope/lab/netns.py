"""
The pocket cluster itself: namespaces, links and routes, built over raw netlink and gone with the process that made them.

Shape (a routed CNI without overlay, as Cilium and Calico in native routing): pod ns (eth0 /32) - veth - node ns (router,
policy hook) - veth `ul` - zone ns - veth trunks `x<zone>` between zone namespaces. Namespaces are held by descriptors
and by the processes inside them, so a killed lab leaves none; names under /run/netns are an extra for people who want
`ip netns exec` (see `stallscope.lab.state`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Self

from stallscope.errors import LabError
from stallscope.lab import netlink
from stallscope.lab.kernel import CLONE_NEWNET, entered, net_namespace, new_net_namespace, setns, unshare
from stallscope.lab.netlink import Netlink
from stallscope.lab.topology import LabSpec, NodePlace, Plan, PodPlace, ZonePlace, plan

LOOPBACK, ETH0, UPLINK = 1, 2, 2
_FIRST_POD, _FIRST_NODE, _FIRST_TRUNK = 10, 10, 1000
DEFAULT_MTU = 1500
_SETTINGS = Path("/proc/sys/net/ipv4")
_ROUTER = (("ip_forward", "1"),)
#: Pods. A lab step moves megabytes where the real one moves gigabytes: growing the window anew after each compute phase,
#: lost in the real transfer, would dominate the lab's. Congestion control is Linux's default where the machine lets a
#: namespace choose it (net.ipv4.tcp_allowed_congestion_control of the first namespace decides).
_HOST = (("tcp_slow_start_after_idle", "0"), ("tcp_congestion_control", "cubic"))
_OPTIONAL = frozenset({"tcp_slow_start_after_idle", "tcp_congestion_control"})


@dataclass(slots=True)
class Namespace:
    """One network namespace: its descriptor and a netlink socket that works in it."""

    fd: int
    netlink: Netlink

    def close(self) -> None:
        self.netlink.close()
        os.close(self.fd)


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """
    One end of a link, for shaping and counting. `kind` is ``pod`` (pod side of its node), ``nic`` (node <-> its zone,
    either side) or ``trunk`` (zone <-> zone); what is sent from `index` in `namespace` is what the end shapes.
    """

    kind: str
    namespace: Namespace = field(repr=False)
    index: int
    name: str
    owner: str
    peer: str


@dataclass(slots=True, kw_only=True)
class PocketCluster:
    """A running pocket cluster. Close it (or use it as a context manager) to remove everything."""

    plan: Plan
    pods: dict[str, Namespace] = field(default_factory=dict)
    nodes: dict[str, Namespace] = field(default_factory=dict)
    zones: dict[str, Namespace] = field(default_factory=dict)
    links: list[End] = field(default_factory=list)

    @property
    def ips(self) -> dict[str, str]:
        return dict(self.plan.ips)

    def links_of(self, *kinds: str) -> list[End]:
        return [link for link in self.links if link.kind in kinds]

    def close(self) -> None:
        """Drop every namespace: with the last descriptor and process the kernel removes its links, rules and routes."""
        for group in (self.pods, self.nodes, self.zones):
            for namespace in group.values():
                namespace.close()
            group.clear()
        self.links.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def build(spec: LabSpec, *, mtu: int = DEFAULT_MTU, trunk_mtu: int | None = None) -> PocketCluster:
    """
    Build the cluster of `spec`, with one MTU inside zones and another (or the same) between them. Needs CAP_SYS_ADMIN and
    CAP_NET_ADMIN in the current user namespace.

    Raises LabError when the kernel refuses; nothing is left behind then.
    """
    cluster = PocketCluster(plan=plan(spec))
    with ExitStack() as undo:
        undo.callback(cluster.close)
        try:
            _make_namespaces(cluster)
            for zone in cluster.plan.zones:
                _wire_zone(cluster, zone, mtu)
            _wire_trunks(cluster, trunk_mtu or mtu)
        except OSError as error:
            hint = "run as root, or allow unprivileged user namespaces" if error.errno in (1, 13) else ""
            raise LabError(f"cannot build the pocket cluster: {error.strerror or error}", hint=hint) from error
        undo.pop_all()
    return cluster


def _make_namespaces(cluster: PocketCluster) -> None:
    """All namespaces in one pass: unshare, configure what must be configured from inside, remember, repeat."""
    back = net_namespace()
    try:
        for group, names, forwards in (
            (cluster.pods, [p.pod.name for p in cluster.plan.pods], False),
            (cluster.nodes, [n.name for n in cluster.plan.nodes], True),
            (cluster.zones, [z.name for z in cluster.plan.zones], True),
        ):
            for name in names:
                unshare(CLONE_NEWNET)
                group[name] = Namespace(net_namespace(), Netlink())
                for setting, value in _ROUTER if forwards else _HOST:
                    with suppress(OSError) if setting in _OPTIONAL else nullcontext():
                        (_SETTINGS / setting).write_text(value)
    finally:
        setns(back, CLONE_NEWNET)
        os.close(back)


def _wire_zone(cluster: PocketCluster, zone: ZonePlace, mtu: int) -> None:
    router = cluster.zones[zone.name]
    requests = [netlink.link_up(LOOPBACK), netlink.address(LOOPBACK, zone.ip)]
    for node in zone.nodes:
        inside = cluster.nodes[node.name]
        index = _FIRST_NODE + node.index
        name = f"n{node.index}"
        requests += [
            netlink.veth(name=name, index=index, peer="ul", peer_index=UPLINK, peer_ns=inside.fd, mtu=mtu),
            netlink.route(node.prefix, 24, index),
        ]
        cluster.links += [
            End(kind="nic", namespace=inside, index=UPLINK, name="ul", owner=node.name, peer=zone.name),
            End(kind="nic", namespace=router, index=index, name=name, owner=zone.name, peer=node.name),
        ]
    router.netlink.send(requests)
    for node in zone.nodes:
        _wire_node(cluster, node, mtu)


def _wire_node(cluster: PocketCluster, node: NodePlace, mtu: int) -> None:
    inside = cluster.nodes[node.name]
    requests = [
        netlink.link_up(LOOPBACK),
        netlink.address(LOOPBACK, node.ip),
        netlink.link_up(UPLINK),
        netlink.default_route(UPLINK),
    ]
    for place in node.pods:
        requests += _pod_link(cluster, node, place, inside, mtu)
    inside.netlink.send(requests)
    for place in node.pods:
        cluster.pods[place.pod.name].netlink.send(
            [
                netlink.link_up(LOOPBACK),
                netlink.address(ETH0, place.ip),
                netlink.link_up(ETH0),
                netlink.default_route(ETH0),
            ]
        )


def _pod_link(cluster: PocketCluster, node: NodePlace, place: PodPlace, inside: Namespace, mtu: int) -> Iterable[bytes]:
    pod = cluster.pods[place.pod.name]
    index = _FIRST_POD + place.slot
    name = f"p{place.slot}"
    cluster.links.append(End(kind="pod", namespace=inside, index=index, name=name, owner=node.name, peer=place.pod.name))
    yield netlink.veth(name=name, index=index, peer="eth0", peer_index=ETH0, peer_ns=pod.fd, mtu=mtu)
    yield netlink.route(place.ip, 32, index)


def _wire_trunks(cluster: PocketCluster, mtu: int) -> None:
    for left, right in combinations(cluster.plan.zones, 2):
        here, there = cluster.zones[left.name], cluster.zones[right.name]
        index, back = _FIRST_TRUNK + right.index, _FIRST_TRUNK + left.index
        name, back_name = f"x{right.index}", f"x{left.index}"
        here.netlink.send(
            [
                netlink.veth(name=name, index=index, peer=back_name, peer_index=back, peer_ns=there.fd, mtu=mtu),
                netlink.route(right.prefix, 16, index),
            ]
        )
        there.netlink.send([netlink.link_up(back), netlink.route(left.prefix, 16, back)])
        cluster.links += [
            End(kind="trunk", namespace=here, index=index, name=name, owner=left.name, peer=right.name),
            End(kind="trunk", namespace=there, index=back, name=back_name, owner=right.name, peer=left.name),
        ]


def congestion_control(cluster: PocketCluster) -> str:
    """The TCP congestion control of the pods."""
    pod = next(iter(cluster.pods.values()))
    with entered(pod.fd):
        return (_SETTINGS / "tcp_congestion_control").read_text().strip()


def sent_bytes(links: Iterable[End]) -> dict[tuple[str, str], int]:
    """Bytes each link end has sent so far, by (owner, peer): the kernel's interface counters."""
    result: dict[tuple[str, str], int] = {}
    by_namespace: dict[int, list[End]] = {}
    for link in links:
        by_namespace.setdefault(link.namespace.fd, []).append(link)
    for fd, members in by_namespace.items():
        with entered(fd):
            counters = _device_counters()
        for link in members:
            result[link.owner, link.peer] = counters.get(link.name, 0)
    return result


def _device_counters() -> dict[str, int]:
    """Interface name -> transmitted bytes (field 9 of /proc/net/dev), of the calling thread's namespace."""
    lines = Path("/proc/thread-self/net/dev").read_text().splitlines()[2:]
    return {name.strip(): int(rest.split()[8]) for name, _, rest in (line.partition(":") for line in lines)}


@contextmanager
def scratch() -> Iterator[Namespace]:
    """A throw-away namespace for probing what the kernel can do."""
    fd = new_net_namespace()
    with entered(fd):
        namespace = Namespace(fd, Netlink())
    try:
        yield namespace
    finally:
        namespace.close()
