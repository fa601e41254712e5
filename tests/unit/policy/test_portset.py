"""Intervals of ports: hand-worked cases."""

from __future__ import annotations

import pytest

from stallscope.model.traffic import Protocol
from stallscope.policy.portset import PortItem, complement, covers, cut, describe, intervals

TCP, UDP, SCTP = Protocol.TCP, Protocol.UDP, Protocol.SCTP


@pytest.mark.parametrize(
    ("items", "protocol", "expected"),
    [
        ([PortItem(TCP, 22, 22), PortItem(TCP, 100, 200)], TCP, ((22, 22), (100, 200))),
        ([PortItem(TCP, 100, 200), PortItem(TCP, 201, 300)], TCP, ((100, 300),)),
        ([PortItem(TCP, 150, 250), PortItem(TCP, 100, 200)], TCP, ((100, 250),)),
        ([PortItem(UDP, 53, 53)], TCP, ()),
        ([PortItem(None)], SCTP, ((0, 65535),)),
        ([PortItem(TCP, 200, 100)], TCP, ()),
        ([PortItem(TCP, name="rdzv")], TCP, ((29400, 29400),)),
        ([PortItem(UDP, name="rdzv")], UDP, ()),
        ([PortItem(TCP, name="nobody")], TCP, ()),
    ],
)
def test_intervals_of_one_protocol(items: list[PortItem], protocol: Protocol, expected: tuple[tuple[int, int], ...]) -> None:
    assert intervals(items, protocol, (("rdzv", TCP, 29400),)) == expected


def test_covers_is_inclusive() -> None:
    assert [covers(((10, 12), (20, 20)), n) for n in (9, 10, 12, 13, 20, 21)] == [False, True, True, False, True, False]


def test_cut_splits_at_every_border_and_leaves_no_gap() -> None:
    pieces = cut(32768, 60999, [((29500, 29500), (40000, 40010)), ((40005, 65535),)])
    assert pieces == [(32768, 39999), (40000, 40004), (40005, 40010), (40011, 60999)]


def test_cut_of_one_port_is_that_port() -> None:
    assert cut(80, 80, [((0, 65535),), ((80, 80),)]) == [(80, 80)]


def test_complement() -> None:
    assert complement([(100, 200), (150, 300), (65535, 65535)]) == [(0, 99), (301, 65534)]


def test_describe_groups_by_protocol() -> None:
    items = [
        PortItem(TCP, 22, 22),
        PortItem(UDP, 53, 53),
        PortItem(TCP, 100, 200),
        PortItem(SCTP),
        PortItem(TCP, name="http"),
    ]
    assert describe(items) == 'TCP 22, 100-200, "http"; UDP 53; SCTP any port'
