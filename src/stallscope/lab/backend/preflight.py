"""Before a rehearsal on a cluster: can it show anything at all? Zone labels, and a CNI that enforces policies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stallscope.errors import ClusterError
from stallscope.lab.backend.kubectl import Kubectl, create, get, must
from stallscope.lab.backend.manifests import connect_script, deny_all, namespace, probe_pod
from stallscope.model.source import as_list, as_map, as_str, dig
from stallscope.model.topology import ZONE, Topology, node_from_body
from stallscope.model.traffic import Endpoint

PORT = 8080
READY_SECONDS = 120


def nodes(kubectl: Kubectl) -> Topology:
    """The cluster's nodes. Raises ClusterError when there are none or one has no zone (control planes excepted)."""
    bodies = [as_map(b) for b in as_list(get(kubectl, ["nodes"]).get("items"))]
    workers = [b for b in bodies if not _is_control_plane(b)] or bodies
    found = tuple(node_from_body(b) for b in workers)
    if not found:
        raise ClusterError("the cluster has no node")
    bare = [n.name for n in found if not n.zone]
    if bare:
        raise ClusterError(
            f"{len(bare)} of {len(found)} nodes have no {ZONE} label ({', '.join(bare[:3])})",
            hint="a rehearsal of zones needs them; on kind, use the config that `rehearse --write-kind FILE` writes",
        )
    return Topology(nodes=found, source="the cluster")


def _is_control_plane(body: Mapping[str, Any]) -> bool:
    return "node-role.kubernetes.io/control-plane" in as_map(dig(body, "metadata", "labels"))


def wait_ready(kubectl: Kubectl, space: str, selector: str) -> None:
    """Until the run's pods are Ready. Raises ClusterError."""
    must(kubectl, ["wait", "pod", "-n", space, "-l", selector, "--for=condition=Ready", f"--timeout={READY_SECONDS}s"])


def pod_ips(kubectl: Kubectl, space: str, selector: str) -> dict[str, str]:
    """Pod name -> address."""
    items = as_list(get(kubectl, ["pods", "-n", space, "-l", selector]).get("items"))
    return {as_str(dig(b, "metadata", "name")): as_str(dig(b, "status", "podIP")) for b in items}


def connects(kubectl: Kubectl, space: str, pod: str, targets: Sequence[tuple[str, int]]) -> dict[tuple[str, int], bool]:
    """Whether `pod` can open a TCP connection to each target. Raises ClusterError when the probe gives no answer."""
    out = must(kubectl, ["exec", "-n", space, pod, "--", *connect_script(targets)])
    found = {}
    for line in out.splitlines():
        words = line.split()
        if len(words) == 3 and words[0] in ("open", "shut") and words[2].isdigit():
            found[words[1], int(words[2])] = words[0] == "open"
    if set(found) != set(targets):
        raise ClusterError(f"pod {space}/{pod} answered for {len(found)} of {len(targets)} connects")
    return found


def enforces_policy(kubectl: Kubectl, run_id: str, image: str) -> None:
    """
    A probe pair in a namespace of our own: an isolated pod must be unreachable and an open one reachable, from one client.
    Raises ClusterError naming what is wrong; the namespace is removed either way.
    """
    space = f"stallscope-{run_id}"
    try:
        create(kubectl, [namespace(run_id, space)])
        apps = ("client", "open", "isolated")
        pods = [Endpoint(name=a, namespace=space, labels=(("app", a),)) for a in apps]
        create(kubectl, [deny_all(run_id, space, "isolated"), *(probe_pod(run_id, e, {}, (PORT,), image) for e in pods)])
        selector = f"stallscope.dev/run={run_id}"
        wait_ready(kubectl, space, selector)
        ips = pod_ips(kubectl, space, selector)
        open_ip, isolated_ip = (ips[f"stsc-{run_id}-{a}"] for a in ("open", "isolated"))
        found = connects(kubectl, space, f"stsc-{run_id}-client", [(open_ip, PORT), (isolated_ip, PORT)])
    except KeyError as error:
        raise ClusterError(f"the probe pod {error} has no address") from None
    finally:
        kubectl(["delete", "namespace", space, "--ignore-not-found", "--wait=false"])
    if not found[open_ip, PORT]:
        raise ClusterError(
            "a probe pod cannot reach another that no policy of ours isolates", hint="is there a default deny?"
        )
    if found[isolated_ip, PORT]:
        raise ClusterError(
            "this cluster's CNI does not enforce NetworkPolicy: a connect passed a policy that denies everything",
            hint="install one that does, e.g. Cilium; `rehearse --write-kind FILE` prints the steps",
        )
