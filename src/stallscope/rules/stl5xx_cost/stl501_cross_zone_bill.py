"""STL501: what the cross-zone traffic of a split would be billed, at the price the user stated."""

from __future__ import annotations

from collections.abc import Iterable

from stallscope.findings import Confidence, Finding, Severity
from stallscope.judge.result import Judgement
from stallscope.rules.base import Report
from stallscope.rules.support.words import label

_REPORT = Report("STL501", "cross-zone-bill", Severity.INFO)


def check(judgement: Judgement) -> Iterable[Finding]:
    for judged in judgement.jobs:
        price = judged.price
        if price is None or price.egress is None or not price.split.cross_zone_edges or not price.dollars_per_hour:
            continue
        job, split = judged.job, price.split
        yield _REPORT.finding(
            f"a split of {job.ref} would move {split.cross_zone_bytes_per_hour() / 1e9:,.0f} GB an hour between zones, "
            f"about ${price.dollars_per_hour:,.2f} an hour",
            (label(job.source.at("spec"), "this job, under the placement STL101 shows", primary=True),),
            subject=job.ref,
            confidence=Confidence.DEPENDS,
            notes=(
                f"modelled, not measured: {split.cross_zone_edges} ring edges cross zones, "
                f"{split.cross_zone_bytes / 1e9:.3g} GB a step of {split.step_seconds:.3g} s",
                f"price: ${price.egress.per_gb:.4g} per GB moved ({price.egress.source})",
                *price.inputs,
            ),
            help="co-locate the job: the same step moves nothing between zones",
        )


RULE = _REPORT.rule(
    check,
    what="With --egress-price, the modelled bytes that the worst placement moves between zones, times that price.",
    why="Gradients cross the zone boundary at every step; clouds that charge for it charge both directions or the sender.",
    bad="""\
# ranks in zones a and b: 2(N-1)/N x gradient bytes over every ring edge that crosses
""",
    good="""\
nodeSelector:
  topology.kubernetes.io/zone: zone-a
""",
    fix="Co-locate the ranks. If that is impossible, order ranks by zone: a ring then crosses twice instead of N times.",
    sources=("docs/cost.md",),
)
