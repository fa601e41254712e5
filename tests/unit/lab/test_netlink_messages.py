"""Requests, byte by byte, against the kernel's structs (linux/rtnetlink.h, if_link.h, pkt_sched.h; little-endian)."""

from __future__ import annotations

import struct
import sys

import pytest

from stallscope.lab import netlink

pytestmark = pytest.mark.skipif(sys.byteorder != "little", reason="expected bytes are written little-endian")


def attributes(data: bytes) -> dict[int, bytes]:
    """Attributes of a payload, as a reader that knows only rtattr sees them."""
    found = {}
    while data:
        length, kind = struct.unpack_from("<HH", data)
        found[kind] = data[4:length]
        data = data[(length + 3) & ~3 :]
    return found


def test_an_attribute_is_padded_to_four_bytes_but_counts_its_own_length() -> None:
    assert netlink.attribute(3, b"eth0\0") == bytes.fromhex("0900 0300 65746830 00 000000")


def test_a_route_request() -> None:
    """route add 10.1.2.0/24 dev #7: RTM_NEWROUTE (24), AF_INET, table main (254), static (4), scope link (253), unicast."""
    sent = netlink.route("10.1.2.0", 24, 7)
    length, kind, flags, _, _ = struct.unpack_from("<IHHII", sent)
    assert (length, kind) == (len(sent), 24)
    assert flags & 0x401 == 0x401  # REQUEST | CREATE
    assert sent[16:28] == bytes([2, 24, 0, 0, 254, 4, 253, 1, 0, 0, 0, 0])
    assert attributes(sent[28:]) == {1: bytes([10, 1, 2, 0]), 4: struct.pack("<I", 7), 15: struct.pack("<I", 254)}


def test_the_default_route_has_no_destination() -> None:
    sent = netlink.default_route(2)
    assert sent[17] == 0
    assert 1 not in attributes(sent[28:])


def test_a_tables_number_above_255_is_only_in_the_attribute() -> None:
    sent = netlink.default_route(2, table=1102)
    assert sent[20] == 0
    assert attributes(sent[28:])[15] == struct.pack("<I", 1102)


def test_an_address_is_a_host_address() -> None:
    sent = netlink.address(2, "10.1.1.2")
    assert sent[16:24] == bytes([2, 32, 0, 0, 2, 0, 0, 0])
    assert attributes(sent[24:]) == {2: bytes([10, 1, 1, 2]), 1: bytes([10, 1, 1, 2])}


def test_a_veth_names_both_ends_and_numbers_them() -> None:
    sent = netlink.veth(name="p0", index=10, peer="eth0", peer_index=2, peer_ns=33, mtu=1500)
    assert struct.unpack_from("<BxHiII", sent, 16) == (0, 0, 10, 0x81, 0x81)  # up, no ARP
    outer = attributes(sent[32:])
    assert outer[3] == b"p0\0"
    info = attributes(outer[18])
    assert info[1] == b"veth\0"
    peer = attributes(info[2])[1]
    assert struct.unpack_from("<BxHiII", peer) == (0, 0, 2, 0x80, 0x80)  # down until both are joined
    inner = attributes(peer[16:])
    assert inner[3] == b"eth0\0"
    assert inner[28] == struct.pack("<I", 33)
    assert inner[4] == struct.pack("<I", 1500)
    assert inner[1] == outer[1]  # one MAC everywhere


def test_tbf_carries_rate_burst_and_limit() -> None:
    """1,000,000 bytes/s, bucket 10,000 bytes = 10 ms = 156,250 ticks of 64 ns."""
    sent = netlink.tbf(5, rate=1_000_000, burst=10_000, limit=65_536)
    assert struct.unpack_from("<BxxxiIII", sent, 16) == (0, 5, 0x10000, 0xFFFFFFFF, 0)
    outer = attributes(sent[36:])
    assert outer[1] == b"tbf\0"
    options = attributes(outer[2])
    assert options[6] == struct.pack("<I", 10_000)
    assert struct.unpack_from("<I", options[1], 8) == (1_000_000,)
    assert struct.unpack_from("<III", options[1], 24) == (65_536, 156_250, 0)
    assert 4 not in options  # TCA_TBF_RATE64 only above 4 GB/s


def test_tbf_above_four_gigabytes_a_second_uses_the_wide_rate() -> None:
    options = attributes(attributes(netlink.tbf(5, rate=5_000_000_000, burst=10_000, limit=1)[36:])[2])
    assert options[4] == struct.pack("<Q", 5_000_000_000)
