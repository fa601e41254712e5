"""STL102: the coordinator lacks the toleration its workers have, so it cannot follow them to the GPU nodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from stallscope.findings import Confidence, Finding, Label, Severity
from stallscope.judge.result import Answer, JobJudgement, Judgement
from stallscope.model.source import as_list, as_str, dig
from stallscope.model.topology import Node, Taint, Topology
from stallscope.model.workload import Role, RoleKind, TrainingJob
from stallscope.rules.base import Report
from stallscope.rules.support.containers import RANKED, ranked_roles
from stallscope.rules.support.scheduling import pinned, tolerates, tolerations_place
from stallscope.rules.support.words import label, listed, zone_names

_REPORT = Report("STL102", "coordinator-cannot-tolerate", Severity.ERROR, fixable=True)
#: Effects that keep a pod from a node; PreferNoSchedule only scores.
_HARD = ("NoSchedule", "NoExecute")
#: Roles whose tolerations say where the job is meant to run; a launcher counts, it is often the only one that has them.
_LEADS = RANKED | {RoleKind.LAUNCHER}


def check(judgement: Judgement) -> Iterable[Finding]:
    for judged in judgement.jobs:
        if not judged.job.distributed or judged.can_split is Answer.NO:
            continue
        for role, peer in _pairs(judged.job):
            found = (
                _on_nodes(judged, role, peer, judgement.topology)
                if judgement.topology is not None and judged.feasible
                else _from_spec(judged.job, role, peer)
            )
            if found is not None:
                yield found
                break


def _pairs(job: TrainingJob) -> Iterator[tuple[Role, Role]]:
    """(a ranked role, another role): the role that should follow and the one it should follow, the largest first."""
    for role in ranked_roles(job):
        others = [r for r in job.roles if r.name != role.name and r.replicas > 0 and r.kind in _LEADS]
        for other in sorted(others, key=lambda r: -r.replicas):
            yield role, other


def _on_nodes(judged: JobJudgement, role: Role, peer: Role, topology: Topology) -> Finding | None:
    """The role fits on no node its peers fit on, and taints are why."""
    own, theirs = judged.feasible.get(role.name), judged.feasible.get(peer.name)
    if own is None or theirs is None or not theirs.feasible or set(own.feasible) & set(theirs.feasible):
        return None
    nodes = {n.name: n for n in topology.nodes}
    peers_nodes = [nodes[n] for n in theirs.feasible if n in nodes]
    taints = _untolerated(role, peers_nodes)
    if taints is None:
        return None
    zones = sorted({nodes[n].zone for n in own.feasible if n in nodes and nodes[n].zone})
    peer_zones = sorted({n.zone for n in peers_nodes if n.zone})
    if own.feasible and set(zones) & set(peer_zones):
        return None  # a CPU pool in the workers' zone: a choice, judged by STL101
    where = f"only fits in {zone_names(zones)}" if own.feasible else "fits on no node at all"
    return _REPORT.finding(
        f"{role.name} of {judged.job.ref} does not tolerate {listed(taints)}, so it {where} while {peer.name} runs in "
        f"{zone_names(peer_zones)}",
        _labels(role, peer, peers_nodes),
        subject=judged.job.ref,
        key=role.name,
        notes=_NOTES,
        help=_help(role, taints),
    )


def _untolerated(role: Role, nodes: Sequence[Node]) -> list[str] | None:
    """Taints that keep the role off *every* one of `nodes`; ``None`` when some node would take it as far as taints go."""
    found: list[str] = []
    for node in nodes:
        blocking = [t for t in node.taints if t.effect in _HARD and not tolerates(role, t)]
        if not blocking:
            return None
        found += [str(t) for t in blocking if str(t) not in found]
    return found


def _from_spec(job: TrainingJob, role: Role, peer: Role) -> Finding | None:
    """Without nodes: the peers tolerate a taint that the role does not, and the role is not pinned to a zone."""
    if pinned(role) or pinned(peer):
        return None
    missing = [t for t in _tolerated(peer) if not tolerates(role, t)]
    if not missing:
        return None
    keys = sorted({t.key for t in missing})
    return _REPORT.finding(
        f"{role.name} of {job.ref} does not tolerate {listed(keys)} as {peer.name} does, so it cannot follow it to those "
        "nodes",
        _labels(role, peer, ()),
        subject=job.ref,
        key=role.name,
        severity=Severity.WARNING,
        confidence=Confidence.DEPENDS,
        notes=(*_NOTES, "holds if the tainted nodes are in zones without other nodes; give --nodes to know"),
        help=_help(role, keys),
    )


def _tolerated(role: Role) -> Iterator[Taint]:
    """A taint for each keyed toleration of the role; tolerating everything says nothing about a pool."""
    for item in as_list(role.template.spec.get("tolerations")):
        key, effect = as_str(dig(item, "key")), as_str(dig(item, "effect"))
        if key and not key.startswith("node.kubernetes.io/"):
            yield Taint(key, as_str(dig(item, "value")), effect if effect in _HARD else "NoSchedule")


def _labels(role: Role, peer: Role, nodes: Sequence[Node]) -> tuple[Label, ...]:
    found = [
        label(tolerations_place(role), f"{role.name}: no toleration for it", primary=True),
        label(tolerations_place(peer), f"{peer.name} has it"),
    ]
    place = next((n.location for n in nodes if n.location is not None), None)
    if place is not None:
        found.append(label(place, "a tainted node the workers use"))
    return tuple(found)


_NOTES = (
    "the rendezvous and rank 0 then live in another zone than the GPUs: every step crosses the boundary, and a policy "
    "between the zones cuts the job off",
    "what you will see: the coordinator Running at once on a CPU node, workers Running in the GPU zone, slow steps or none",
)


def _help(role: Role, taints: Sequence[str]) -> str:
    return f"add the toleration for {listed(list(taints))} to {role.name}, and pin all roles to one zone"


RULE = _REPORT.rule(
    check,
    what="A ranked role, usually the coordinator, does not tolerate the taint of the nodes where its peers run, and no node "
    "it can use is in their zone. Without a node list: a warning when the workers tolerate what it does not.",
    why="The coordinator lands in a CPU zone, hosts the rendezvous there and takes part in every collective from there.",
    bad="""\
Master:
  template:
    spec:
      containers: [...]                # no toleration
Worker:
  template:
    spec:
      tolerations:
        - {key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}
""",
    good="""\
Master:
  template:
    spec:
      tolerations:
        - {key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}
""",
    fix="Give the coordinator the toleration of the GPU nodes and the same zone pin as the workers. If CPU-only pods must "
    "stay off GPU nodes, pin the coordinator to a CPU pool in the same zone instead.",
    sources=(
        "https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/",
        "https://github.com/flyteorg/flyte/issues/4422",
        "https://github.com/vanvalenlab/kiosk-console/pull/81",
        "https://github.com/llm-d/llm-d-autoscaling/issues/167",
    ),
)
