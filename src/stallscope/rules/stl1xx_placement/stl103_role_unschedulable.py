"""STL103: pods of a role fit on no node, or the job can never start whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from stallscope.findings import Confidence, Finding, Label, Severity
from stallscope.judge.result import JobJudgement, Judgement
from stallscope.model.workload import Role, RoleKind
from stallscope.placement.group import Feasibility
from stallscope.rules.base import Report
from stallscope.rules.support.containers import accelerator_place, accelerators_of, rank_containers
from stallscope.rules.support.scheduling import tolerations_place
from stallscope.rules.support.witness import placement_notes
from stallscope.rules.support.words import count, label, listed, unique

_REPORT = Report("STL103", "role-unschedulable", Severity.ERROR)


def check(judgement: Judgement) -> Iterable[Finding]:
    for judged in judgement.jobs:
        if judgement.topology is None or judged.placement is None:
            continue
        alone = list(_roles(judged))
        yield from alone or _whole(judged)


def _roles(judged: JobJudgement) -> Iterator[Finding]:
    """Roles that fit nowhere even before any other pod of the job is placed."""
    for role in judged.job.roles:
        verdict = judged.feasible.get(role.name)
        if verdict is None or verdict.feasible or verdict.gates or role.replicas <= 0 or _needs_peers(verdict):
            continue
        optional = role.kind is RoleKind.OTHER
        yield _REPORT.finding(
            f"{role.name} of {judged.job.ref} fits on no node: {_message(verdict)}",
            _labels(role, verdict),
            subject=judged.job.ref,
            key=role.name,
            severity=Severity.WARNING if optional else None,
            confidence=Confidence.DEPENDS if verdict.unjudged else Confidence.CERTAIN,
            notes=(
                *(f"{message}: {listed(nodes, 4)}" for message, nodes in _by_reason(verdict).items()),
                *((f"not modelled: {listed(verdict.unjudged)}",) if verdict.unjudged else ()),
                "what you will see: the pods stay Pending while the rest of the job holds its GPUs and waits for them",
            ),
            help="change the constraint the message names, or add nodes that meet it",
        )


def _needs_peers(verdict: Feasibility) -> bool:
    """True when only pod affinity fails: that depends on peers and is judged as a group (STL105)."""
    return bool(verdict.failures) and any(f.plugin == "InterPodAffinity" for f in verdict.failures)


def _whole(judged: JobJudgement) -> Iterator[Finding]:
    """Every pod fits alone, but the cluster can never hold them all at once."""
    outcome = judged.placement
    if outcome is None or outcome.may_start_whole or not outcome.exhaustive or outcome.unjudged:
        return
    if any(_needs_peers(f) for f in judged.feasible.values()):
        return
    best = outcome.likely or outcome.locked or outcome.worst
    pending = [name for name, node in best.nodes.items() if node is None] if best else []
    total = len(judged.job.pods)
    shown = f"at best {total - len(pending)} of {total} pods start" if best else "some pods stay Pending"
    yield _REPORT.finding(
        f"{judged.job.ref} can never start whole on these nodes: {shown}",
        (label(judged.job.source.at("spec"), f"{count(total, 'pod')} in all", primary=True),),
        subject=judged.job.ref,
        key="whole",
        notes=(
            *(placement_notes(judged.job, judged.witness) if judged.witness else ()),
            "what you will see: some pods Running and holding GPUs, the others Pending for ever, no event on the job",
        ),
        help="free or add nodes, shrink the job, or queue it (Kueue, Volcano) so that it starts whole or not at all",
    )


def _by_reason(verdict: Feasibility) -> Mapping[str, list[str]]:
    found: dict[str, list[str]] = {}
    for failure in verdict.failures:
        found.setdefault(failure.message, []).append(failure.node)
    return dict(sorted(found.items(), key=lambda item: (-len(item[1]), item[0])))


def _message(verdict: Feasibility) -> str:
    """kube-scheduler's own summary, without its remarks on claims and preemption."""
    return (verdict.message or "").partition(" no new claims")[0].rstrip(".")


def _labels(role: Role, verdict: Feasibility) -> tuple[Label, ...]:
    """The lines of the pod spec that the failing filters look at, those that cost most nodes first."""
    counts = Counter(f.plugin for f in verdict.failures)
    found = [item for plugin, _ in counts.most_common() for item in _lines(role, plugin)]
    found = list(unique(found)) or [label(role.template.at("spec"), "fits on no node")]
    found[0] = label(found[0].location, found[0].text, primary=True)
    return tuple(found)


def _lines(role: Role, plugin: str) -> Iterator[Label]:
    spec = role.template.spec
    match plugin:
        case "NodeAffinity":
            for key in ("nodeSelector", "affinity"):
                if spec.get(key):
                    yield label(role.template.at("spec", key), "no node left matches this")
        case "TaintToleration":
            yield label(tolerations_place(role), "does not cover the taints")
        case "NodeResourcesFit":
            wanting = [c for c in rank_containers(role) if accelerators_of(c.body)] or list(rank_containers(role)[:1])
            for container in wanting[:1]:
                yield label(accelerator_place(container), "no node left has this much free")
        case "PodTopologySpread":
            yield label(role.template.at("spec", "topologySpreadConstraints"), "cannot be met")


RULE = _REPORT.rule(
    check,
    what="The pods of a role fit on no node of the list, with kube-scheduler's own message and the nodes behind each "
    "reason; or the nodes can never hold the whole job at once.",
    why="Without gang scheduling the rest of the job starts, holds its GPUs and waits for a peer that stays Pending.",
    bad="""\
nodeSelector:
  nvidia.com/gpu.product: NVIDIA-A100-SXM4-80GB     # the cluster has H100 nodes
""",
    good="""\
nodeSelector:
  nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3
""",
    fix="Change what the message names: the selector, the toleration, or the amount asked for. A gang or queue keeps the "
    "rest of the job from holding GPUs meanwhile.",
    sources=(
        "https://kubernetes.io/docs/concepts/scheduling-eviction/kube-scheduler/",
        "https://github.com/kubernetes/community/issues/6840",
    ),
)
