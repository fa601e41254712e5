"""STL106: a constraint that looks like a pin and pins nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stallscope.findings import Finding, Severity
from stallscope.judge.result import Answer, JobJudgement, Judgement
from stallscope.model.workload import Role, TrainingJob
from stallscope.rules.base import Report
from stallscope.rules.support.containers import ranked_roles
from stallscope.rules.support.scheduling import labels_of, node_terms, pinned, spreads
from stallscope.rules.support.words import label

_REPORT = Report("STL106", "constraint-pins-nothing", Severity.WARNING, fixable=True)


def check(judgement: Judgement) -> Iterable[Finding]:
    for judged in judgement.jobs:
        if len(judged.job.pods) < 2:
            continue
        for role in ranked_roles(judged.job):
            yield from _ored(judged, role)
            yield from _idle_spread(judged.job, role)


def _ored(judged: JobJudgement, role: Role) -> Iterator[Finding]:
    """A zone in one nodeSelectorTerm beside a term without zone: the scheduler takes whichever matches."""
    terms = node_terms(role)
    with_zone = [t for t in terms if t.zones is not None]
    without = [t for t in terms if t.zones is None]
    if not with_zone or not without or pinned(role) or judged.can_split is Answer.NO:
        return
    zone = ", ".join(sorted(with_zone[0].zones or ()))
    yield _REPORT.finding(
        f"the zone pin of {role.name} in {judged.job.ref} pins nothing: its nodeSelectorTerms are ORed, and another term "
        "admits any zone",
        (
            label(with_zone[0].location, f"this term asks for zone {zone}", primary=True),
            label(without[0].location, f"this term alone is enough: {without[0]}"),
        ),
        subject=judged.job.ref,
        key=role.name,
        notes=(
            "terms of nodeSelectorTerms are ORed, expressions inside one term are ANDed",
            "what you will see: some ranks in the zone, some elsewhere, although 'the zone is in the affinity'",
        ),
        help="put the zone into every term, or use nodeSelector, which is ANDed with the affinity",
    )


def _idle_spread(job: TrainingJob, role: Role) -> Iterator[Finding]:
    own = labels_of(job, role)
    for spread in spreads(role):
        if spread.selector is not None and spread.selector.requirements and spread.selector.matches(own):
            continue
        what = f"'{spread.selector}'" if spread.selector and spread.selector.requirements else "nothing"
        if spread.selector is not None and not spread.selector.requirements:
            continue  # an empty selector matches every pod of the namespace
        yield _REPORT.finding(
            f"a spread constraint of {role.name} in {job.ref} does nothing: it counts {what}, which are not its own pods",
            (
                label(spread.location, "counts pods with other labels", primary=True),
                label(role.template.at("metadata", "labels"), f"labels of {role.name}"),
            ),
            subject=job.ref,
            key=f"{role.name}:spread:{spread.index}",
            severity=Severity.INFO,
            notes=("the incoming pod counts only when it matches the selector itself",),
            help="select the role's own labels, or remove the constraint",
            fixable=False,
        )


RULE = _REPORT.rule(
    check,
    what="A zone in one of several nodeSelectorTerms (they are ORed), or a spread constraint whose selector does not match "
    "the pods it stands on (info).",
    why="The manifest reads as pinned, passes review, and the job is split all the same.",
    bad="""\
nodeSelectorTerms:
  - matchExpressions:
      - {key: nvidia.com/gpu.product, operator: In, values: [NVIDIA-H100-80GB-HBM3]}
  - matchExpressions:
      - {key: topology.kubernetes.io/zone, operator: In, values: [zone-a]}    # OR
""",
    good="""\
nodeSelectorTerms:
  - matchExpressions:
      - {key: nvidia.com/gpu.product, operator: In, values: [NVIDIA-H100-80GB-HBM3]}
      - {key: topology.kubernetes.io/zone, operator: In, values: [zone-a]}    # AND
""",
    fix="Put the zone into every term, or into nodeSelector.",
    sources=(
        "https://github.com/gardener/gardener/issues/7166",
        "https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/#node-affinity",
    ),
)
