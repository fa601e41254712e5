"""
Link classes and their figures. Defaults are cited; every one can be replaced by a profile file or a measured number.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class LinkClass(StrEnum):
    """Which kind of link joins two ranks."""

    NODE = "node"  # same node: NVLink/PCIe
    ZONE = "zone"  # two nodes of one zone
    CROSS_ZONE = "cross-zone"  # two zones


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """
    One class of link: `bandwidth` in bytes/s that one direction of one ring edge can use, `latency` in seconds one way
    (the alpha of the alpha-beta model). `loss` (0..1) and `mtu` (bytes) matter to the pocket cluster only. `source` says
    where the figures come from.
    """

    bandwidth: float
    latency: float
    source: str = ""
    loss: float = 0.0
    mtu: int = 1500


class LinkProfile(NamedTuple):
    """Figures for each link class. `name` is shown beside every modelled number."""

    name: str
    node: Link
    zone: Link
    cross_zone: Link

    def link(self, kind: LinkClass) -> Link:
        return {LinkClass.NODE: self.node, LinkClass.ZONE: self.zone, LinkClass.CROSS_ZONE: self.cross_zone}[kind]


def gbit(rate: float) -> float:
    """Gbit/s -> bytes/s."""
    return rate * 1e9 / 8


#: A TCP data plane without RDMA, the case in which a split job still trains. Figures of placement.md §6.
DEFAULT_PROFILE = LinkProfile(
    name="default",
    node=Link(bandwidth=gbit(2400), latency=5e-6, source="NVLink 4 class, 300 GB/s a direction (assumption)"),
    zone=Link(
        bandwidth=gbit(40),
        latency=60e-6,
        source="4 flows x 10 Gbit/s: EC2 single-flow limit inside a cluster placement group (EC2 user guide)",
    ),
    cross_zone=Link(
        bandwidth=gbit(5),
        latency=500e-6,
        source="5 Gbit/s: EC2 single-flow limit outside a placement group (EC2 user guide); RTT 0.5-1.5 ms (flashgrid.io)",
    ),
)


class EgressPrice(NamedTuple):
    """Price of moving data between zones, in dollars per gigabyte (1e9 bytes) moved; `source` is the citation."""

    name: str
    per_gb: float
    source: str


#: placement.md §6; users set their own with --egress-price. OCI is believed free between domains: not verified, so absent.
EGRESS_PRICES = {
    "aws": EgressPrice(name="aws", per_gb=0.02, source="$0.01/GB out + $0.01/GB in (lastweekinaws.com 2019; usage.ai 2026)"),
    "gcp": EgressPrice(
        name="gcp", per_gb=0.01 / 1.073741824, source="$0.01/GiB, sender side (cloud.google.com/vpc/network-pricing)"
    ),
    "azure": EgressPrice(
        name="azure", per_gb=0.0, source="no charge between zones (learn.microsoft.com, availability zones)"
    ),
}
