"""
The process that starts ranks: it imports torch once and forks a rank per order, into the pod's namespaces.

Orders and answers are JSON datagrams on the inherited socket whose number is argv[1]; a ``spawn`` order carries two
descriptors, the pod's network namespace and the rank's report pipe. The zygote is the parent of all ranks, so only it
signals them: a pid it has not reaped cannot have been reused.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import sys
import warnings
from contextlib import suppress
from typing import Any

from stallscope.lab import kernel
from stallscope.lab.plan import plan_from_json
from stallscope.lab.step import Transport, reporter, train

_TICK_SECONDS = 0.02


def have_torch() -> bool:
    """Import torch for good; False when it is absent or has no gloo."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            import torch.distributed as dist
        except Exception:  # a broken installation raises anything; the built-in ring then stands in
            return False
        return bool(dist.is_available() and dist.is_gloo_available())


def main() -> None:
    """Serve orders until the other end closes."""
    kernel.die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with socket.socket(fileno=int(sys.argv[1])) as orders:
        orders.send(json.dumps({"torch": sys.argv[2] == "torch" and have_torch()}).encode())
        gc.freeze()
        orders.settimeout(_TICK_SECONDS)
        ranks: dict[int, int] = {}
        while _serve(orders, ranks):
            _reap(orders, ranks)
        for pid in ranks.values():
            _signal(pid, signal.SIGKILL)


def _serve(orders: socket.socket, ranks: dict[int, int]) -> bool:
    """Carry out one order, if there is one; False when the other end is gone."""
    try:
        data, fds, _, _ = socket.recv_fds(orders, 1 << 17, 2)
    except TimeoutError:
        return True
    except OSError:
        return False
    if not data:
        return False
    order = json.loads(data)
    if order["op"] == "spawn":
        pid = os.fork()
        if pid == 0:
            orders.close()
            _rank(order, *fds)
        ranks[order["id"]] = pid
        for fd in fds:
            os.close(fd)
        orders.send(json.dumps({"id": order["id"], "pid": pid}).encode())
    elif order["op"] == "signal" and order["id"] in ranks:
        _signal(ranks[order["id"]], order["signal"])
    return True


def _signal(pid: int, number: int) -> None:
    """To the rank's whole process group (it leads one), so that a user's command takes its children along."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


def _reap(orders: socket.socket, ranks: dict[int, int]) -> None:
    for identity, pid in list(ranks.items()):
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            del ranks[identity]
            code = os.waitstatus_to_exitcode(status)
            with suppress(OSError):
                orders.send(json.dumps({"id": identity, "exit": code}).encode())


def _rank(order: dict[str, Any], net: int, report_fd: int) -> None:
    """Become the rank. Never returns."""
    code = 1
    report = reporter(report_fd)
    try:
        os.setpgid(0, 0)
        kernel.die_with_parent()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        _enter_pod(order, net)
        os.environ.update(order["env"])
        if order.get("exec"):
            report({"e": "exec"})
            os.execvp(order["exec"][0], order["exec"])  # noqa: S606  what --exec asks for
        plan = plan_from_json(order["plan"])
        for _ in range(plan.quirks.burners):
            _burner()
        train(plan, _transport(order["transport"]), report)
        code = 0
    except BaseException as error:
        report({"e": "error", "step": -1, "message": f"{type(error).__name__}: {error}"[:400]})
    finally:
        os._exit(code)


def _enter_pod(order: dict[str, Any], net: int) -> None:
    """The pod's network, host name, hosts file and an empty resolver; standard output into the rank's log."""
    kernel.setns(net, kernel.CLONE_NEWNET)
    os.close(net)
    kernel.unshare(kernel.CLONE_NEWNS | kernel.CLONE_NEWUTS)
    kernel.mount("none", "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
    socket.sethostname(order["name"][:64])
    for target, source in order["files"].items():
        if os.path.exists(target):  # noqa: PTH110  after fork, with no imports left to make
            kernel.mount(source, target, None, kernel.MS_BIND)
    log = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    if order.get("cores"):
        os.sched_setaffinity(0, order["cores"])


def _burner() -> None:
    """A busy process beside the rank, on its cores, in its process group: it ends with it."""
    if os.fork() == 0:
        kernel.die_with_parent()
        while True:
            pass


def _transport(name: str) -> Any:
    def connect(timeout_seconds: float) -> Transport:
        if name == "torch":
            from stallscope.lab.transport_torch import TorchTransport

            return TorchTransport(timeout_seconds)
        from stallscope.lab.transport_ring import RingTransport

        return RingTransport(timeout_seconds)

    return connect


if __name__ == "__main__":
    main()
