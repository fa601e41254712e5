"""The pods of a job by what selectors can tell apart, so that a thousand ranks are asked once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from stallscope.model.labels import Selector
from stallscope.model.workload import TrainingJob


class PodShapes(NamedTuple):
    """One pod's labels for each role, and the label keys whose values differ among the pods of some role."""

    job: TrainingJob
    first: Mapping[str, Mapping[str, str]]
    varying: frozenset[str]

    def selected(self, selector: Selector) -> bool:
        """True when the selector matches some pod of the job."""
        return bool(self.roles(selector))

    def roles(self, selector: Selector) -> tuple[str, ...]:
        """Roles of which some pod matches."""
        if self.varying.isdisjoint(r.key for r in selector.requirements):
            return tuple(name for name, labels in self.first.items() if selector.matches(labels))
        return tuple({p.role: None for p in self.job.pods if selector.matches(p.labels)})


def pod_shapes(job: TrainingJob) -> PodShapes:
    """One walk over the pods."""
    first: dict[str, Mapping[str, str]] = {}
    varying: set[str] = set()
    for pod in job.pods:
        known = first.setdefault(pod.role, pod.labels)
        if known is not pod.labels:
            varying.update(k for k, _ in known.items() ^ pod.labels.items())
    return PodShapes(job, first, frozenset(varying))
