"""Faults of the path between two pods."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from stallscope.lab.faults.base import (
    Args,
    Expect,
    Fault,
    Label,
    both_ways,
    pair,
    pair_culprit,
    tamper,
)
from stallscope.lab.firewall import ALL_TCP, Drop
from stallscope.lab.kernel import entered
from stallscope.lab.netlink import gso_segments, tbf
from stallscope.lab.netns import ETH0
from stallscope.lab.ranks import Zygote
from stallscope.lab.shaper import Shape, burst, features, queue, run_nft
from stallscope.lab.stage import Stage
from stallscope.model.traffic import Direction

_PAIR = {"from": "0", "to": "1"}
_MIDRUN = {**_PAIR, "step": "4"}
REASON = "injected fault"
#: Any rule on ct state switches connection tracking on, and its settings into being.
_TRACK = """table inet stsc_track {
  chain forward {
    type filter hook forward priority 0
    ct state new counter
  }
}
"""


def _drops(stage: Stage, args: Args, action: str) -> list[Drop]:
    a, b = pair(stage, args)
    return [
        Drop(
            direction=Direction.INGRESS,
            source=s,
            destination=d,
            ports=ALL_TCP,
            reason=f"{REASON}: {args.fault}",
            action=action,
        )
        for s, d in ((a, b), (b, a))
    ]


def _deny_start(stage: Stage, args: Args) -> None:
    stage.drops += _drops(stage, args, "drop")
    stage.enforce()


def _reject_start(stage: Stage, args: Args) -> None:
    stage.drops += _drops(stage, args, "reject")
    stage.enforce()


def _deny_midrun(stage: Stage, _zygote: Zygote, args: Args) -> None:
    _deny_start(stage, args)


def _one_way(stage: Stage, _zygote: Zygote, args: Args) -> None:
    """Packets of one direction vanish, whoever opened the connection: an asymmetric route or a stateless ACL."""
    a, b = pair(stage, args)
    tamper(stage, {(a, b): "counter drop"})


def _mtu(stage: Stage, _zygote: Zygote, args: Args) -> None:
    """Packets above a size vanish, both ways, and no ICMP tells: GSO packets stand for the full segments they become."""
    a, b = pair(stage, args)
    tamper(stage, both_ways(a, b, f"meta length > {int(args.number('bytes'))} counter drop"))


def _loss(stage: Stage, args: Args) -> None:
    a, b = pair(stage, args)
    share = round(args.number("percent") * 1000)
    # per segment, as a bad link would: GSO packets are cut to single segments before they reach the drop
    stage.cluster.pods[a].netlink.send([gso_segments(ETH0, 1)])
    stage.cluster.pods[b].netlink.send([gso_segments(ETH0, 1)])
    tamper(stage, both_ways(a, b, f"numgen random mod 100000 < {share} counter drop"))


def _slow(stage: Stage, _zygote: Zygote, args: Args) -> None:
    """The NIC of one node gets a lower rate, both ways."""
    pod = stage.pod_of(args.rank("rank", stage))
    node = next(p.node for p in stage.cast.spec.pods if p.name == pod)
    rate = max(1000, int(args.number("mbit") * 1e6 / 8))
    for end in stage.cluster.links_of("nic"):
        if node in (end.owner, end.peer):
            end.namespace.netlink.send([tbf(end.index, rate=rate, burst=burst(rate), limit=queue(rate))])


def _slow_culprit(stage: Stage, args: Args) -> tuple[str, ...]:
    pod = stage.pod_of(args.rank("rank", stage))
    return (next(p.node for p in stage.cast.spec.pods if p.name == pod),)


def _delay(stage: Stage, args: Args) -> None:
    """Longer links between zones: netem where there is one, else a delay line in user space."""
    seconds = args.number("ms") / 1000
    stage.shape = Shape(zone=stage.shape.zone, cross_zone=replace(stage.shape.cross_zone, latency=seconds))
    if features().netem:
        stage.reshape()
    else:
        from stallscope.lab.delayline import insert

        stage.helpers.append(insert(stage.cluster, seconds))


def _delay_culprit(stage: Stage, _args: Args) -> tuple[str, ...]:
    return tuple(f"{e.owner} -> {e.peer}" for e in stage.cluster.links_of("trunk"))


def _idle_reset(stage: Stage, args: Args) -> None:
    """
    A middlebox that forgets idle connections and resets what it does not know: conntrack with a short timeout at the
    source's node, and an RST for established traffic without entry. One step then begins after a longer silence.
    """
    a, b = pair(stage, args)
    node = next(p.node for p in stage.cast.spec.pods if p.name == a)
    with entered(stage.cluster.nodes[node].fd):
        run_nft(_TRACK)
        settings = Path("/proc/sys/net/netfilter")
        (settings / "nf_conntrack_tcp_timeout_established").write_text(str(max(1, int(args.number("seconds")))))
        (settings / "nf_conntrack_tcp_loose").write_text("1")
    unknown = "ct state new tcp flags & (syn|rst) == 0x0 counter reject with tcp reset"
    tamper(stage, both_ways(a, b, unknown))
    step = args.step()
    for rank in range(stage.size):
        quirks = stage.quirks_of(rank)
        stage.quirks[rank] = replace(quirks, idle_step=step, idle_seconds=args.number("seconds") + 2.5)


NETWORK_FAULTS = (
    Fault(
        name="deny-start",
        label=Label.DENIED,
        help="drop everything between two ranks from the start",
        expect=Expect.NEVER_STARTS,
        defaults=_PAIR,
        prepare=_deny_start,
        culprits=pair_culprit,
    ),
    Fault(
        name="deny-midrun",
        label=Label.DENIED,
        help="drop between two ranks from a step on, established and new connections alike",
        expect=Expect.STOPS,
        defaults=_MIDRUN,
        strike=_deny_midrun,
        culprits=pair_culprit,
    ),
    Fault(
        name="deny-one-way",
        label=Label.DENIED,
        help="drop one direction only from a step on",
        expect=Expect.STOPS,
        defaults=_MIDRUN,
        strike=_one_way,
        culprits=pair_culprit,
    ),
    Fault(
        name="reject-start",
        label=Label.DENIED,
        help="reject with ICMP instead of dropping",
        expect=Expect.NEVER_STARTS,
        defaults=_PAIR,
        prepare=_reject_start,
        culprits=pair_culprit,
    ),
    Fault(
        name="mtu-blackhole",
        label=Label.MTU,
        help="packets above a size vanish without ICMP from a step on",
        expect=Expect.STOPS,
        defaults={**_MIDRUN, "bytes": "1400"},
        strike=_mtu,
        culprits=pair_culprit,
    ),
    Fault(
        name="loss",
        label=Label.LOSS,
        help="lose a share of the packets between two ranks",
        expect=Expect.FINISHES,
        defaults={**_PAIR, "percent": "3"},
        prepare=_loss,
        culprits=pair_culprit,
    ),
    Fault(
        name="delay",
        label=Label.SLOW_LINK,
        help="add one-way delay between zones",
        expect=Expect.SLOWER,
        defaults={"ms": "20"},
        prepare=_delay,
        culprits=_delay_culprit,
    ),
    Fault(
        name="bandwidth",
        label=Label.SLOW_LINK,
        help="cap the NIC of one rank's node from a step on",
        expect=Expect.SLOWER,
        defaults={"rank": "1", "mbit": "20", "step": "4"},
        strike=_slow,
        culprits=_slow_culprit,
    ),
    Fault(
        name="idle-reset",
        label=Label.RESET,
        help="a middlebox forgets a pair's idle connection and resets it",
        expect=Expect.STOPS,
        defaults={**_MIDRUN, "seconds": "1"},
        prepare=_idle_reset,
        culprits=pair_culprit,
    ),
)
