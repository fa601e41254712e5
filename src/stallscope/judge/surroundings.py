"""What else the scheduler reads besides pods and nodes: Services and owners (default spreading), volumes and claims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from stallscope.model.kube import KubeObject
from stallscope.model.source import as_str_map
from stallscope.model.workload import Pod, TrainingJob
from stallscope.placement.settings import Owner, Settings, spread_defaults


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Found once per input: the settings all jobs share, and the Services of each namespace."""

    settings: Settings = field(default_factory=Settings)
    services: tuple[Owner, ...] = ()

    def of(self, job: TrainingJob) -> Settings:
        """The settings for one job: its own Services, those of the files, and the StatefulSet that owns its pods."""
        own = [Owner(namespace=s.namespace, selector=s.selector) for s in job.services]
        if job.source.kind == "StatefulSet":
            selector = as_str_map(job.source.get("spec", "selector", "matchLabels"))
            own.append(Owner(namespace=job.namespace, selector=selector))
        own += (s for s in self.services if s.namespace == job.namespace)
        return replace(self.settings, owners=_sharing(own, job.pods))


def _sharing(owners: Sequence[Owner], pods: Sequence[Pod]) -> tuple[Owner, ...]:
    """
    Those that select two pods of the job or more. A pod that is spread against itself alone (the Training Operator makes a
    Service a replica) prefers no node to another, and 1,024 such selectors would make 1,024 pods of one role all different.
    """
    holders: dict[tuple[str, str], list[Pod]] = {}
    for pod in pods:
        for pair in pod.labels.items():
            holders.setdefault(pair, []).append(pod)
    return tuple(o for o in owners if len(_selected(o, holders)) > 1)


def _selected(owner: Owner, holders: Mapping[tuple[str, str], Sequence[Pod]]) -> list[Pod]:
    """The first two pods that `owner` selects; `holders` are the pods that have a label."""
    wanted = owner.selector.items()
    fewest: Sequence[Pod] = min((holders.get(pair, ()) for pair in wanted), key=len, default=())
    return list(islice((p for p in fewest if wanted <= p.labels.items()), 2))


def surroundings(objects: Sequence[KubeObject]) -> Surroundings:
    """Services, volumes, claims, StorageClasses and a KubeSchedulerConfiguration (its spread defaults) among `objects`."""
    kinds = {kind: [o for o in objects if o.kind == kind] for kind in _KINDS}
    claims = {f"{o.namespace}/{o.name}": o.body for o in kinds["PersistentVolumeClaim"]}
    volumes = {o.name: o.body for o in kinds["PersistentVolume"]}
    config = next((o.body for o in kinds["KubeSchedulerConfiguration"]), {})
    return Surroundings(
        settings=Settings(
            default_spread=spread_defaults(config),
            claims=claims if claims or volumes else None,
            volumes=volumes,
            storage_classes={o.name: o.body for o in kinds["StorageClass"]},
        ),
        services=tuple(
            Owner(namespace=o.namespace, selector=selector)
            for o in kinds["Service"]
            if (selector := as_str_map(o.get("spec", "selector")))
        ),
    )


_KINDS = ("Service", "PersistentVolumeClaim", "PersistentVolume", "StorageClass", "KubeSchedulerConfiguration")
