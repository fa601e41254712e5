"""Faults of ranks and of their start."""

from __future__ import annotations

import os
import signal
from dataclasses import replace

from stallscope.lab import netlink
from stallscope.lab.faults.base import Args, Expect, Fault, Label, rank_culprit
from stallscope.lab.firewall import Drop
from stallscope.lab.ranks import Zygote
from stallscope.lab.stage import Stage
from stallscope.model.traffic import Direction, PortRange

_RANK = {"rank": "1"}


def _straggler(stage: Stage, args: Args) -> None:
    rank = args.rank("rank", stage)
    quirks = replace(stage.quirks_of(rank), slow_seconds=args.number("ms") / 1000, affected_from=args.step())
    stage.quirks[rank] = quirks


def _straggler_cpu(stage: Stage, args: Args) -> None:
    """The victim's compute burns CPU on a core that it shares with busy processes; the others sleep on the rest."""
    rank = args.rank("rank", stage)
    cores = sorted(os.sched_getaffinity(0))
    burners = max(1, int(args.number("burners")))
    stage.quirks[rank] = replace(stage.quirks_of(rank), spin=True, burners=burners)
    stage.cores[rank] = (cores[-1],)
    if len(cores) > 1:
        for other in range(stage.size):
            if other != rank:
                stage.cores[other] = tuple(cores[:-1])


def _slow_input(stage: Stage, args: Args) -> None:
    for rank in range(stage.size):
        stage.quirks[rank] = replace(
            stage.quirks_of(rank), input_seconds=args.number("ms") / 1000, affected_from=args.step()
        )


def _frozen(stage: Stage, zygote: Zygote, args: Args) -> None:
    zygote.signal(args.rank("rank", stage), signal.SIGSTOP)


def _killed(stage: Stage, zygote: Zygote, args: Args) -> None:
    zygote.signal(args.rank("rank", stage), signal.SIGKILL)


def _desync(stage: Stage, args: Args) -> None:
    rank = args.rank("rank", stage)
    stage.quirks[rank] = replace(stage.quirks_of(rank), desync_step=args.step())


def _rendezvous_dropped(stage: Stage, _args: Args) -> None:
    port = stage.cast.rendezvous_port
    coordinator = stage.pod_of(0)
    stage.drops += [
        Drop(
            direction=Direction.INGRESS,
            source=pod.name,
            destination=coordinator,
            ports=PortRange(port, port),
            reason="injected fault: rendezvous-dropped",
        )
        for pod in stage.cast.spec.pods
        if pod.name != coordinator
    ]
    stage.enforce()


def _rendezvous_refused(stage: Stage, _args: Args) -> None:
    """Rank 0 never comes: its pod answers, but nothing listens there."""
    stage.absent.add(0)


def _dns(stage: Stage, _args: Args) -> None:
    stage.broken_names = True


def _interface(stage: Stage, args: Args) -> None:
    """
    The rank's pod has a second interface with an address that is routed nowhere, and the variable names that one. The
    address is below the pods': gloo lets the lower address of a pair listen (transport/tcp/pair.cc), so peers must call it.
    """
    rank = args.rank("rank", stage)
    name = args.values["name"]
    pod = stage.cluster.pods[stage.pod_of(rank)]
    if name not in ("eth0", "lo"):
        second, other = 50, 51
        pod.netlink.send(
            [
                netlink.veth(name=name[:15], index=second, peer="stsc-unused", peer_index=other, peer_ns=pod.fd, mtu=1500),
                netlink.link_up(other),
                netlink.address(second, "10.0.0.9"),
            ]
        )
    stage.env[rank] = {**stage.env.get(rank, {}), "GLOO_SOCKET_IFNAME": name}


def _coordinator(stage: Stage, _args: Args) -> tuple[str, ...]:
    return (stage.pod_of(0),)


HOST_FAULTS = (
    Fault(name="healthy", label=Label.HEALTHY, help="nothing is wrong", expect=Expect.FINISHES),
    Fault(
        name="straggler",
        label=Label.STRAGGLER,
        help="one rank computes longer from a step on",
        expect=Expect.SLOWER,
        defaults={**_RANK, "ms": "300", "step": "4"},
        prepare=_straggler,
        culprits=rank_culprit(),
    ),
    Fault(
        name="straggler-cpu",
        label=Label.STRAGGLER,
        help="one rank shares its core with busy processes",
        expect=Expect.SLOWER,
        defaults={**_RANK, "burners": "3"},
        prepare=_straggler_cpu,
        culprits=rank_culprit(),
    ),
    Fault(
        name="slow-input",
        label=Label.INPUT,
        help="every rank waits for its data from a step on",
        expect=Expect.SLOWER,
        defaults={"ms": "300", "step": "4"},
        prepare=_slow_input,
    ),
    Fault(
        name="frozen",
        label=Label.FROZEN,
        help="one rank is stopped (SIGSTOP) at a step",
        expect=Expect.STOPS,
        defaults={**_RANK, "step": "4"},
        strike=_frozen,
        culprits=rank_culprit(),
    ),
    Fault(
        name="killed",
        label=Label.CRASHED,
        help="one rank is killed (SIGKILL) at a step",
        expect=Expect.STOPS,
        defaults={**_RANK, "step": "4"},
        strike=_killed,
        culprits=rank_culprit(),
    ),
    Fault(
        name="desync",
        label=Label.DESYNC,
        help="one rank calls another collective",
        expect=Expect.STOPS,
        defaults={**_RANK, "step": "4"},
        prepare=_desync,
        culprits=rank_culprit(),
    ),
    Fault(
        name="rendezvous-dropped",
        label=Label.RENDEZVOUS,
        help="the rendezvous port is dropped",
        expect=Expect.NEVER_STARTS,
        prepare=_rendezvous_dropped,
        culprits=_coordinator,
    ),
    Fault(
        name="rendezvous-refused",
        label=Label.RENDEZVOUS,
        help="rank 0 never starts: connections to the rendezvous are refused",
        expect=Expect.NEVER_STARTS,
        prepare=_rendezvous_refused,
        culprits=_coordinator,
    ),
    Fault(
        name="dns-failure",
        label=Label.DNS,
        help="no name of the job resolves",
        expect=Expect.NEVER_STARTS,
        prepare=_dns,
    ),
    Fault(
        name="wrong-interface",
        label=Label.INTERFACE,
        help="one rank binds to an interface its peers cannot reach",
        expect=Expect.NEVER_STARTS,
        defaults={**_RANK, "name": "ib0"},
        prepare=_interface,
        culprits=rank_culprit(),
    ),
)
