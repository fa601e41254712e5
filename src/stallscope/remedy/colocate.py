"""Keep a job in one zone: choose a strategy, try it on the placement engine, record it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stallscope.errors import PatchRefused
from stallscope.judge.result import JobJudgement, Judgement
from stallscope.model.topology import Topology
from stallscope.model.workload import TrainingJob
from stallscope.remedy.groups import group_of
from stallscope.remedy.model import Choices, Plan, Remedy, Strategy, Unfixed
from stallscope.remedy.native import plan_native
from stallscope.remedy.ops import Op
from stallscope.remedy.portable import portable_edits
from stallscope.remedy.roles import movable
from stallscope.remedy.settle import settled
from stallscope.remedy.specedits import JobEdits, SpecEdit, trial, write
from stallscope.remedy.spread import over_hosts
from stallscope.remedy.turnround import turn_round, turn_rounds
from stallscope.remedy.workbench import Bench
from stallscope.remedy.zones import ZoneFit, fit_zones, follow_peers, named_zones, pin_edits


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    job: TrainingJob
    judgement: Judgement
    topology: Topology | None
    choices: Choices
    fits: tuple[ZoneFit, ...]

    @property
    def holding(self) -> tuple[ZoneFit, ...]:
        """Zones that hold the job, only the user's when one was named."""
        wanted = self.choices.zone
        return tuple(f for f in self.fits if f.holds and wanted in ("", f.zone))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Draft:
    slug: str
    title: str
    assumptions: tuple[str, ...] = ()
    unproved: tuple[str, ...] = ()


def plan_colocation(
    bench: Bench, judged: JobJudgement, judgement: Judgement, rules: Sequence[str], choices: Choices
) -> Plan:
    """The first strategy that works, recorded on `bench`; else why none does."""
    job = judged.job
    topology = judgement.topology if judgement.topology and judgement.topology.nodes else None
    fits = fit_zones(job, topology, choices.coordinator, force=bool(choices.zone)) if topology else ()
    case = _Case(job=job, judgement=judgement, topology=topology, choices=choices, fits=fits)
    reasons: list[str] = []
    for strategy in _order(case):
        attempt = bench.fork()
        before = len(attempt.done)
        try:
            draft = strategy(attempt, case)
        except PatchRefused as refused:
            reasons.append(refused.message)
            continue
        made = tuple(attempt.done[before:])
        bench.adopt(attempt)
        if not made:
            return Plan(unfixed=(Unfixed(job=job.ref, rules=tuple(rules), reason="the manifest says it already"),))
        return Plan(remedies=(_remedy(case, draft, rules, made),))
    return Plan(unfixed=(Unfixed(job=job.ref, rules=tuple(rules), reason="; ".join(dict.fromkeys(reasons))),))


def _remedy(case: _Case, draft: _Draft, rules: Sequence[str], made: tuple[Op, ...]) -> Remedy:
    return Remedy(
        slug=draft.slug,
        title=draft.title,
        job=case.job.ref,
        rules=tuple(rules),
        ops=made,
        assumptions=(*draft.assumptions, *_if_live(case.job, draft.slug)),
        unproved=(*draft.unproved, *_unproved(case)),
    )


def _if_live(job: TrainingJob, slug: str) -> tuple[str, ...]:
    """
    What the API server lets change on an object that exists (measured, placement.md §2.9): a suspended Job takes
    nodeSelector, tolerations and node affinity; all else means to create it anew.
    """
    source = job.source
    if source.get("metadata", "uid") is None:
        return ()
    if source.group == "batch" and source.get("spec", "suspend") is True and slug == "pin-zone":
        return ("the Job exists and is suspended: this may be changed before it is resumed",)
    return (f"the {source.kind} exists: its pod template cannot be changed in place, delete and create it again",)


def _order(case: _Case) -> tuple[Callable[[Bench, _Case], _Draft], ...]:
    """
    ``auto``: the gang in use when the input shows that it can; else the pin, which is the smallest and depends on nothing;
    portable affinity where a pin cannot say it (no zone known, several groups that may use several zones).
    """
    match case.choices.strategy:
        case Strategy.PIN:
            return (_pin,)
        case Strategy.PORTABLE:
            return (_portable,)
        case Strategy.NATIVE:
            return (_native,)
    native = (_native_if_certain,) if case.job.gang is not None else ()
    known = case.topology is not None or case.choices.zone or _named_zone(case)
    ways = (_pin, _portable) if known and case.job.copies == 1 else (_portable, _pin)
    return (*native, *((_turn,) if turn_round(case.job) else ()), *ways)


def _turn(bench: Bench, case: _Case) -> _Draft:
    """The affinity that is there, turned round, when that alone is enough."""
    if case.topology is None:
        raise PatchRefused("without nodes it cannot be told whether turning the affinity round is enough")
    for turned in turn_rounds(case.job):
        edits = JobEdits(specs=turned)
        outcome = trial(case.job, case.topology, edits)
        if outcome.must_start_whole and not outcome.may_split:
            write(bench, case.job, edits)
            names = ", ".join(turned)
            return _Draft(slug="turn-affinity", title=f"{names} requires the zone of its own pods, no longer that of others")
    raise PatchRefused("turning the affinity round is not enough")


def _named_zone(case: _Case) -> str:
    """The one zone the manifest names, be it in a pin that pins nothing; empty when there is none or more than one."""
    named = named_zones(case.job)
    return next(iter(named)) if len(named) == 1 else ""


def _pin(bench: Bench, case: _Case) -> _Draft:
    if case.topology is None:
        zone = case.choices.zone or _named_zone(case)
        if not zone:
            raise PatchRefused("a pin needs a zone: give --zone, or --nodes to find one that holds the job")
        lacking = {r.name: follow_peers(case.job, r) for r in movable(case.job)}
        edits = settled(case.job, None, pin_edits(case.job, zone, lacking, force=True), pinned=True)
    else:
        fit = _best(case)
        zone, edits = fit.zone, fit.pin or JobEdits()
    edits = _with_host_spread(case, edits)
    write(bench, case.job, edits)
    return _Draft(
        slug="pin-zone",
        title=f"pin {_names(case)} to {zone}{_tolerating(edits)}",
        assumptions=(f"{zone} is a zone of every cluster this manifest goes to",),
    )


def _portable(bench: Bench, case: _Case) -> _Draft:
    job, version = case.job, case.judgement.facts.kubernetes_version
    zones, lacking = _zones_and_tolerations(case)
    assumptions: tuple[str, ...] = ()
    if case.topology is None:
        assumptions = ("whichever zone the first pod takes holds the whole job",)
    edits = settled(job, case.topology, portable_edits(job, zones, lacking, version), pinned=False)
    edits = _with_host_spread(case, edits)
    write(bench, job, edits)
    where = f", within {', '.join(zones)}" if zones else ""
    if not group_of(job, version).match_keys:
        assumptions += ("no pod of an earlier run or a second job with the same labels is still bound",)
    return _Draft(
        slug="zone-affinity",
        title=f"keep {_names(case)} in one zone by podAffinity{where}{_tolerating(edits)}",
        assumptions=assumptions,
    )


def _zones_and_tolerations(case: _Case) -> tuple[tuple[str, ...], dict[str, tuple[Mapping[str, Any], ...]]]:
    """Zones the job may choose from, and what each role lacks in any of them. Raises PatchRefused when none holds it."""
    job = case.job
    if case.topology is None:
        return (case.choices.zone,) if case.choices.zone else (), {r.name: follow_peers(job, r) for r in movable(job)}
    holding = case.holding or (_best(case),)
    lacking = {
        r.name: tuple({str(t): t for f in holding for t in f.tolerations.get(r.name, ())}.values()) for r in movable(job)
    }
    return tuple(sorted(f.zone for f in holding)), lacking


def _native(bench: Bench, case: _Case, *, certain: bool = False) -> _Draft:
    """The gang's topology, and the tolerations without which a role could not follow the others into the zone."""
    _, lacking = _zones_and_tolerations(case)
    edits = JobEdits(specs={n: tuple(SpecEdit("append", ("tolerations",), t) for t in ts) for n, ts in lacking.items()})
    found = plan_native(bench, case.job, case.judgement, certain=certain)
    write(bench, case.job, edits)
    return _Draft(
        slug="gang-topology",
        title=found.title + _tolerating(edits),
        assumptions=found.assumptions,
        unproved=found.unproved,
    )


def _native_if_certain(bench: Bench, case: _Case) -> _Draft:
    return _native(bench, case, certain=True)


def _best(case: _Case) -> ZoneFit:
    """The zone to use. Raises PatchRefused saying what each zone lacks."""
    if case.choices.zone and case.choices.zone not in {f.zone for f in case.fits}:
        raise PatchRefused(f"no node is in zone {case.choices.zone}")
    if case.holding:
        return case.holding[0]
    if not case.fits:
        raise PatchRefused("no node carries the zone label")
    tried = [f for f in case.fits if case.choices.zone in ("", f.zone)]
    raise PatchRefused("no zone holds the job: " + "; ".join(f"{f.zone}: {f.why_not}" for f in tried))


def _with_host_spread(case: _Case, edits: JobEdits) -> JobEdits:
    """A preference for one rank a node, which also replaces the scheduler's built-in spreading over zones."""
    if not case.choices.spread_hosts:
        return edits
    spread = over_hosts(group_of(case.job))
    return JobEdits(specs={name: (*own, spread) for name, own in edits.specs.items()}, labels=edits.labels)


def _names(case: _Case) -> str:
    names = [r.name for r in movable(case.job)]
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]


def _tolerating(edits: JobEdits) -> str:
    roles = [n for n, changes in edits.specs.items() if any(e.route == ("tolerations",) for e in changes)]
    return f"; toleration for {', '.join(roles)}" if roles else ""


def _unproved(case: _Case) -> tuple[str, ...]:
    found = []
    if case.job.gang is None:
        found.append("without a gang another workload can take nodes between two of this job's pods")
    if case.topology is None:
        found.append("no nodes were given: that the zone holds the job was not checked")
    else:
        source = case.topology.source or "the node list"
        found.append(f"free capacity is that of {source}; it may have changed since")
    if case.job.copies > 1:
        found.append(f"capacity was judged for one of {case.job.copies} groups")
    return tuple(found)
