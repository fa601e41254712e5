"""Edits that the placement engine accepts: tried plain first, then with what contradicting constraints need."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from stallscope.errors import PatchRefused
from stallscope.model.topology import Topology
from stallscope.model.workload import TrainingJob
from stallscope.remedy.roles import movable
from stallscope.remedy.specedits import JobEdits, SpecEdit, trial
from stallscope.remedy.spread import loosen
from stallscope.remedy.turnround import turn_rounds

_PerRole = Mapping[str, Sequence[SpecEdit]]


def settled(job: TrainingJob, topology: Topology | None, edits: JobEdits, *, pinned: bool) -> JobEdits:
    """
    The smallest of these with which the job starts whole in one zone, whatever the order: the edits alone; with spread
    constraints over zones loosened; with zone affinities turned round. Without a topology: the edits and what contradicts
    them for certain. Raises PatchRefused when none works.
    """
    problem = ""
    for extra in _variants(job, pinned=pinned):
        whole = _with(edits, extra)
        if topology is None:
            return whole
        outcome = trial(job, topology, whole)
        if outcome.must_start_whole and not outcome.may_split:
            return whole
        problem = problem or ("the job could still be split" if outcome.may_split else "the job might not start whole")
    raise PatchRefused(problem)


def _variants(job: TrainingJob, *, pinned: bool) -> Iterator[_PerRole]:
    hard, soft = ({r.name: loosen(job, r, pinned=pinned, soften=soften) for r in movable(job)} for soften in (False, True))
    seen: list[_PerRole] = []
    for turned in ({}, *turn_rounds(job)):
        for extra in (_merged(hard, turned), _merged(soft, turned)):
            if extra not in seen:
                seen.append(extra)
                yield extra


def _merged(first: _PerRole, second: _PerRole) -> _PerRole:
    return {name: (*first.get(name, ()), *second.get(name, ())) for name in {**first, **second}}


def _with(edits: JobEdits, extra: _PerRole) -> JobEdits:
    specs = {name: (*own, *extra.get(name, ())) for name, own in edits.specs.items()}
    return JobEdits(specs=specs, labels=edits.labels)
