"""STL107: nodes without a zone label."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from stallscope.findings import Finding, Label, Severity
from stallscope.judge.result import JobJudgement, Judgement
from stallscope.model.source import Location
from stallscope.model.topology import ZONE, Node, Topology
from stallscope.rules.base import Report
from stallscope.rules.support.containers import ranked_pods, ranked_roles
from stallscope.rules.support.scheduling import uses_zone_key
from stallscope.rules.support.words import label, listed, unique

_REPORT = Report("STL107", "zone-labels-missing", Severity.WARNING)
_OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"


def check(judgement: Judgement) -> Iterable[Finding]:
    topology = judgement.topology
    if topology is None:
        return
    for judged in judgement.jobs:
        if not judged.job.distributed or ranked_pods(judged.job) < 2:
            continue
        found = _one(judged, topology)
        if found is not None:
            yield found


def _one(judged: JobJudgement, topology: Topology) -> Finding | None:
    """Unlabelled nodes matter where the job can land on them, or needs the label to land at all."""
    usable = {n for f in judged.feasible.values() for n in f.feasible}
    place = next((p for r in ranked_roles(judged.job) if (p := uses_zone_key(r)) is not None), None)
    blank = [n for n in topology.nodes if not n.zone and not n.unschedulable and (n.name in usable or place is not None)]
    if not blank or (len(topology.nodes) == 1 and place is None):
        return None
    none_at_all = not topology.zones
    if none_at_all and place is None:
        severity, what = Severity.INFO, "no node carries a zone label, so nobody can tell whether the job is split"
    elif place is None:
        severity, what = Severity.WARNING, f"it may land on {listed([n.name for n in blank])} whose zone is unknown"
    elif none_at_all:
        severity, what = Severity.WARNING, "it is placed by zone, and no node carries a zone label"
    else:
        if not any(_may_matter(n, topology) for n in blank):
            return None
        severity, what = Severity.INFO, f"{listed([n.name for n in blank])} have no zone label and are left out"
    return _REPORT.finding(
        f"{judged.job.ref}: {what}",
        _labels(blank, place, judged),
        subject=judged.job.ref,
        severity=severity,
        notes=_notes(blank, placed_by_zone=place is not None),
        help=f"label the nodes: kubectl label node {blank[0].name} {ZONE}=<zone>",
    )


def _may_matter(node: Node, topology: Topology) -> bool:
    """Control-plane nodes and the like are rarely labelled and never meant for ranks: no accelerator, no finding."""
    wanted = {r for n in topology.nodes if n.zone for r in n.allocatable if "/" in r}
    return bool(wanted & set(node.allocatable))


def _labels(blank: Sequence[Node], place: Location | None, judged: JobJudgement) -> tuple[Label, ...]:
    found: list[Label] = []
    if place is not None:
        found.append(label(place, f"needs the label {ZONE} on nodes", primary=True))
    found += [label(n.location, f"no label {ZONE}") for n in blank[:2] if n.location is not None]
    labels = unique(found)
    if not any(x.primary for x in labels):
        first = labels[0].location if labels else judged.job.source.at()
        text = labels[0].text if labels else "placed on nodes without zone labels"
        labels = (label(first, text, primary=True), *labels[1:])
    return labels


def _notes(blank: Sequence[Node], *, placed_by_zone: bool) -> tuple[str, ...]:
    notes = []
    if placed_by_zone:
        notes.append(
            "a required affinity or a selector on a missing label leaves every pod Pending; a spread constraint ignores "
            "such nodes"
        )
    if any(n.labels.get(_OLD_ZONE) for n in blank):
        notes.append(f"the nodes carry only {_OLD_ZONE}, which current schedulers do not read as the zone")
    notes.append("kind and bare-metal clusters often have no zone labels; clouds set them through the cloud controller")
    return tuple(notes)


RULE = _REPORT.rule(
    check,
    what="Nodes the job can use carry no topology.kubernetes.io/zone label, or the job is placed by zone and no node has "
    "one.",
    why="A zone rule that finds no label either blocks every pod or is silently ignored, and a split cannot be seen.",
    bad="""\
kind: Node
metadata:
  name: gpu-3
  labels:
    kubernetes.io/hostname: gpu-3
""",
    good="""\
kind: Node
metadata:
  name: gpu-3
  labels:
    kubernetes.io/hostname: gpu-3
    topology.kubernetes.io/zone: zone-a
""",
    fix="Label the nodes with their zone.",
    sources=(
        "https://kubernetes.io/docs/reference/labels-annotations-taints/#topologykubernetesiozone",
        "https://github.com/kubernetes/kubernetes/issues/122278",
    ),
)
