"""
Just enough rtnetlink to build the pocket cluster: veth pairs across namespaces, addresses, routes, tbf.

Own code where a library exists (pyroute2) because this is the lab's hot path and its only need: one message creates both
ends of a veth in their namespaces, named, numbered and up, and a whole namespace is configured by one datagram; and
because users then need nothing but the standard library. Numbers and structs are from linux/rtnetlink.h, if_link.h,
if_addr.h, pkt_sched.h (kernel uapi).
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterable
from typing import Self

NLM_F_REQUEST, NLM_F_ACK, NLM_F_REPLACE, NLM_F_EXCL, NLM_F_CREATE = 0x1, 0x4, 0x100, 0x200, 0x400
NLMSG_ERROR = 2
RTM_NEWLINK, RTM_DELLINK, RTM_NEWADDR, RTM_NEWROUTE, RTM_NEWQDISC, RTM_DELQDISC = 16, 17, 20, 24, 36, 37
IFF_UP, IFF_NOARP = 0x1, 0x80
IFLA_ADDRESS, IFLA_IFNAME, IFLA_MTU, IFLA_LINKINFO, IFLA_NET_NS_FD, IFLA_GSO_MAX_SEGS = 1, 3, 4, 18, 28, 40
IFLA_INFO_KIND, IFLA_INFO_DATA, VETH_INFO_PEER = 1, 2, 1
IFA_ADDRESS, IFA_LOCAL = 1, 2
RTA_DST, RTA_OIF, RTA_TABLE = 1, 4, 15
RTM_NEWRULE, FR_ACT_TO_TBL, FRA_IIFNAME, FRA_TABLE = 32, 1, 3, 15
RT_TABLE_MAIN, RTPROT_STATIC, RT_SCOPE_LINK, RTN_UNICAST = 254, 4, 253, 1
TCA_KIND, TCA_OPTIONS = 1, 2
TCA_TBF_PARMS, TCA_TBF_RATE64, TCA_TBF_BURST = 1, 4, 6
TC_H_ROOT = 0xFFFFFFFF
#: pkt_sched.h counts time in "ticks" of 64 ns (PSCHED_SHIFT 6).
PSCHED_TICK_NS = 64

#: One MAC on every link with ARP off: a frame is for whoever receives it, so routers need no neighbour entries.
MAC = bytes.fromhex("02005e000001")

_MAX_DATAGRAM = 32 * 1024


def attribute(kind: int, payload: bytes) -> bytes:
    """One rtattr, padded to 4 bytes."""
    return struct.pack("=HH", len(payload) + 4, kind) + payload + b"\0" * (-len(payload) % 4)


def _u32(kind: int, value: int) -> bytes:
    return attribute(kind, struct.pack("=I", value))


def _name(name: str) -> bytes:
    return attribute(IFLA_IFNAME, name.encode() + b"\0")


def message(kind: int, body: bytes, flags: int = 0) -> bytes:
    """One request; the sequence number is patched in by `Netlink.send`."""
    return struct.pack("=IHHII", 16 + len(body), kind, NLM_F_REQUEST | flags, 0, 0) + body


def _ifinfo(index: int, flags: int, change: int) -> bytes:
    return struct.pack("=BxHiII", socket.AF_UNSPEC, 0, index, flags, change)


def veth(*, name: str, index: int, peer: str, peer_index: int, peer_ns: int, mtu: int) -> bytes:
    """
    A veth pair without ARP: `name` here and up, `peer` in the namespace of descriptor `peer_ns` and down (veth.c cannot
    open an end before both are joined). Interface numbers are chosen by the caller, so nothing is looked up afterwards.
    """
    flags = IFF_UP | IFF_NOARP
    common = attribute(IFLA_ADDRESS, MAC) + _u32(IFLA_MTU, mtu)
    other = _ifinfo(peer_index, IFF_NOARP, IFF_NOARP) + _name(peer) + common + _u32(IFLA_NET_NS_FD, peer_ns)
    info = attribute(IFLA_INFO_KIND, b"veth\0") + attribute(IFLA_INFO_DATA, attribute(VETH_INFO_PEER, other))
    body = _ifinfo(index, flags, flags) + _name(name) + common + attribute(IFLA_LINKINFO, info)
    return message(RTM_NEWLINK, body, NLM_F_CREATE | NLM_F_EXCL)


def link_up(index: int) -> bytes:
    """Set a link up (1 is always the loopback)."""
    return message(RTM_NEWLINK, _ifinfo(index, IFF_UP, IFF_UP))


def gso_segments(index: int, count: int) -> bytes:
    """Most segments a packet of a link may stand for; 1: what is counted or dropped is single segments."""
    return message(RTM_NEWLINK, _ifinfo(index, 0, 0) + _u32(IFLA_GSO_MAX_SEGS, count))


def address(index: int, ip: str) -> bytes:
    """A /32 address on a link."""
    packed = socket.inet_aton(ip)
    body = struct.pack("=BBBBI", socket.AF_INET, 32, 0, 0, index)
    return message(
        RTM_NEWADDR, body + attribute(IFA_LOCAL, packed) + attribute(IFA_ADDRESS, packed), NLM_F_CREATE | NLM_F_REPLACE
    )


def route(prefix: str, length: int, index: int, *, table: int = RT_TABLE_MAIN) -> bytes:
    """A device route: `prefix`/`length` is behind link `index`; length 0 is the default route."""
    short = table if table < 256 else 0  # RT_TABLE_UNSPEC: the attribute counts
    body = struct.pack("=BBBBBBBBI", socket.AF_INET, length, 0, 0, short, RTPROT_STATIC, RT_SCOPE_LINK, RTN_UNICAST, 0)
    target = attribute(RTA_DST, socket.inet_aton(prefix)) if length else b""
    rest = _u32(RTA_OIF, index) + _u32(RTA_TABLE, table)
    return message(RTM_NEWROUTE, body + target + rest, NLM_F_CREATE | NLM_F_REPLACE)


def default_route(index: int, *, table: int = RT_TABLE_MAIN) -> bytes:
    """Everything else is behind link `index`."""
    return route("", 0, index, table=table)


def rule_by_link(name: str, table: int) -> bytes:
    """Policy routing: what arrives over link `name` is routed by `table` (linux/fib_rules.h)."""
    body = struct.pack("=BBBBBBBBI", socket.AF_INET, 0, 0, 0, 0, 0, 0, FR_ACT_TO_TBL, 0)
    rest = attribute(FRA_IIFNAME, name.encode() + b"\0") + _u32(FRA_TABLE, table)
    return message(RTM_NEWRULE, body + rest, NLM_F_CREATE | NLM_F_EXCL)


def tbf(index: int, *, rate: int, burst: int, limit: int) -> bytes:
    """
    Token bucket filter at the root of link `index`: `rate` bytes/s, `burst` and `limit` (queue) in bytes. Larger GSO
    packets than `burst` are segmented by the kernel (net/sched/sch_tbf.c, tbf_segment).
    """
    spec = struct.pack("=BBHhHI", 0, 1, 0, 0, 0, min(rate, 0xFFFFFFFF))  # linklayer ethernet
    ticks = burst * 1_000_000_000 // rate // PSCHED_TICK_NS
    parms = spec + struct.pack("=BBHhHI", 0, 0, 0, 0, 0, 0) + struct.pack("=III", limit, min(ticks, 0xFFFFFFFF), 0)
    options = attribute(TCA_TBF_PARMS, parms) + _u32(TCA_TBF_BURST, burst)
    if rate > 0xFFFFFFFF:
        options += attribute(TCA_TBF_RATE64, struct.pack("=Q", rate))
    return _qdisc(index, RTM_NEWQDISC, b"tbf\0", attribute(TCA_OPTIONS, options), NLM_F_CREATE | NLM_F_REPLACE)


def no_qdisc(index: int) -> bytes:
    """Back to no shaping on link `index`."""
    return _qdisc(index, RTM_DELQDISC, b"", b"", 0)


def _qdisc(index: int, kind: int, name: bytes, options: bytes, flags: int) -> bytes:
    handle = 0x10000 if name else 0
    body = struct.pack("=BxxxiIII", socket.AF_UNSPEC, index, handle, TC_H_ROOT, 0)
    return message(kind, body + (attribute(TCA_KIND, name) if name else b"") + options, flags)


class Netlink:
    """A route-netlink socket. It stays in the network namespace in which it was made, whoever uses it."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE)
        self._socket.settimeout(5.0)
        self._sequence = 0

    def send(self, messages: Iterable[bytes]) -> None:
        """Run requests in order. Raises OSError with the kernel's errno and the number of the first that failed."""
        batch: list[bytes] = []
        size = 0
        for item in messages:
            if batch and size + len(item) > _MAX_DATAGRAM:
                self._flush(batch)
                batch, size = [], 0
            batch.append(item)
            size += len(item)
        if batch:
            self._flush(batch)

    def _flush(self, batch: list[bytes]) -> None:
        """Send one datagram. Only its last request asks for an acknowledgement: the kernel reports failures anyway."""
        first = self._sequence + 1
        parts: list[bytes] = []
        for item in batch:
            self._sequence += 1
            length, kind, flags, _, _ = struct.unpack_from("=IHHII", item)
            flags |= NLM_F_ACK if len(parts) == len(batch) - 1 else 0
            parts.append(struct.pack("=IHHII", length, kind, flags, self._sequence, 0) + item[16:])
        self._socket.send(b"".join(parts))
        failure: OSError | None = None
        while True:
            data = self._socket.recv(65536)
            while len(data) >= 20:
                length, kind, _, sequence, _ = struct.unpack_from("=IHHII", data)
                if kind == NLMSG_ERROR:
                    code = -struct.unpack_from("=i", data, 16)[0]
                    if code and failure is None:
                        failure = OSError(code, f"netlink request {sequence - first + 1}/{len(batch)}: {os.strerror(code)}")
                    if sequence == self._sequence:
                        if failure:
                            raise failure
                        return
                data = data[(length + 3) & ~3 :]

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
