"""Agent options that change verdicts, read once from their flag names with the defaults of the release."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

#: The newest release whose semantics are modelled and checked (vectors/cilium).
NEWEST_CILIUM = (1, 19, 4)


class CiliumOptions(NamedTuple):
    """
    Field = flag: `enforcement` ``enable-policy``; `localhost` ``allow-localhost`` (auto = always on Kubernetes);
    `local_cluster_peers` ``policy-default-local-cluster``; `dual_stack` ``enable-ipv4`` and ``enable-ipv6`` (off by
    default in the chart); `fqdn_cache` is ours (``fqdn-cache``): what the DNS proxy has seen, None = not known.
    """

    version: tuple[int, ...] = NEWEST_CILIUM
    enforcement: str = "default"
    localhost: str = "auto"
    host_firewall: bool = False
    node_selectors: bool = False
    l7_proxy: bool = True
    extended_protocols: bool = False
    icmp_rules: bool = True
    non_default_deny: bool = True
    local_cluster_peers: bool = True
    cluster_network_policy: bool = False
    cidr_matches_nodes: bool = False
    dual_stack: bool = False
    cluster: str = "default"
    labels: str = ""
    fqdn_cache: tuple[tuple[str, str], ...] | None = None


def full_version(version: tuple[int, ...]) -> tuple[int, ...]:
    """``(1, 19)`` is compared as 1.19.0; empty stays empty."""
    return (*version, 0, 0)[:3] if version and len(version) < 3 else version


def _flag(options: Mapping[str, str], name: str, default: bool) -> bool:
    value = options.get(name)
    return default if value is None else str(value).strip().lower() in ("true", "1", "t", "yes", "on")


def cilium_options(version: tuple[int, ...], options: Mapping[str, str]) -> CiliumOptions:
    """Options of one agent; `version` empty = the newest modelled."""
    release = full_version(version) or NEWEST_CILIUM
    cache = options.get("fqdn-cache")
    return CiliumOptions(
        version=release,
        enforcement=options.get("enable-policy", "default").lower(),
        localhost=options.get("allow-localhost", "auto").lower(),
        host_firewall=_flag(options, "enable-host-firewall", False),
        node_selectors=_flag(options, "enable-node-selector-labels", False),
        l7_proxy=_flag(options, "enable-l7-proxy", True),
        extended_protocols=_flag(options, "enable-extended-ip-protocols", False),
        icmp_rules=_flag(options, "enable-icmp-rules", True),
        non_default_deny=_flag(options, "enable-non-default-deny-policies", True),
        local_cluster_peers=_flag(options, "policy-default-local-cluster", release >= (1, 19)),
        cluster_network_policy=_flag(options, "enable-k8s-cluster-network-policy", False) and release >= (1, 20),
        cidr_matches_nodes="nodes" in options.get("policy-cidr-match-mode", "").replace(",", " ").split(),
        dual_stack=_flag(options, "enable-ipv4", True) and _flag(options, "enable-ipv6", False),
        cluster=options.get("cluster-name", "default"),
        labels=options.get("labels", ""),
        fqdn_cache=None if cache is None else tuple(_pairs(cache)),
    )


def _pairs(text: str) -> list[tuple[str, str]]:
    return [(name, address) for item in text.split() for name, equals, address in [item.partition("=")] if equals]
