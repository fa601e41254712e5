"""Without root: a user namespace, where the kernel allows one; one clear line where it does not."""

from __future__ import annotations

import ctypes
import errno
import json
import os
from collections.abc import Callable
from typing import Any

import pytest

from stallscope.errors import LabError
from stallscope.lab import kernel, sandbox
from stallscope.lab.firewall import Drop, counts, install
from stallscope.lab.netns import build
from stallscope.lab.reach import all_pairs, measure
from stallscope.lab.sandbox import Emit, isolated
from stallscope.lab.topology import LabPod, LabSpec
from stallscope.model.traffic import Direction, PortRange

pytestmark = [pytest.mark.root, pytest.mark.usefixtures("needs_nft")]

SPEC = LabSpec(pods=tuple(LabPod(name=f"p{i}", node=f"n{i}") for i in range(3)), zones={"n0": "a", "n1": "a", "n2": "b"})
NOBODY = 65534
PR_SET_DUMPABLE = 4


def work(emit: Emit) -> None:
    with build(SPEC) as cluster:
        drop = Drop(direction=Direction.EGRESS, source="p0", destination="p1", ports=PortRange(1, 65535), reason="r")
        firewall = install(cluster, [drop])
        found = measure(cluster, all_pairs(cluster.pods, [29500]), expected_open=frozenset())
        emit(
            {
                "uid": os.geteuid(),
                "pid": os.getpid(),
                "silent": sorted(p[:2] for p, m in found.items() if m.reached != "open"),
                "counted": sum(c.packets for c in counts(cluster, firewall)),
            }
        )


def as_nobody(call: Callable[[], Any]) -> Any:
    """`call` in a child that has given up root for good; its JSON-able result."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        result: Any = None
        try:
            os.close(reading)
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)  # as if it had been executed by that user
            result = call()
        except LabError as error:
            result = {"error": error.message, "hint": error.hint}
        finally:
            os.write(writing, json.dumps(result).encode())
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        result = json.loads(pipe.read() or b"null")
    os.waitpid(pid, 0)
    return result


def test_an_ordinary_user_gets_the_same_lab() -> None:
    if os.geteuid() != 0:
        pytest.skip("this test gives up root, so it needs to have it")
    result = as_nobody(lambda: list(isolated(work))[1:])
    if isinstance(result, dict) and "forbids the namespaces" in result["error"]:
        pytest.skip(f"unprivileged user namespaces are off here: {result['error']}")
    assert result == [{"uid": 0, "pid": 1, "silent": [["p0", "p1"]], "counted": 1}]


def test_a_machine_that_forbids_namespaces_is_told_so_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(flags: int) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(kernel, "unshare", refuse)
    with pytest.raises(LabError, match="this machine forbids the namespaces a pocket cluster needs") as caught:
        list(isolated(work))
    assert "user.max_user_namespaces" in caught.value.hint
    assert caught.value.hint == sandbox._HINT
