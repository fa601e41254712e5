"""Two copies of a job against the same capacity: can each hold what the other needs?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, zip_longest
from typing import Any, NamedTuple

from stallscope.model.source import as_map, as_str_map, dig
from stallscope.model.topology import Topology
from stallscope.placement.adversary import fill_up, interleave, most_harmful, play, smallest_first
from stallscope.placement.compilation import compile_pods
from stallscope.placement.gangs import GangSpec
from stallscope.placement.outcome import Placement, PodRequest
from stallscope.placement.problem import Problem, build_problem
from stallscope.placement.reach import EXACT_WORK
from stallscope.placement.search import explore
from stallscope.placement.settings import DEFAULT_SETTINGS, Settings
from stallscope.placement.snapshot import snapshot_of
from stallscope.placement.witness import replay

#: Labels whose value names one run of a job (reference/placement.md §1, "Group selector").
IDENTITY_KEYS = frozenset(
    {
        "training.kubeflow.org/job-name",
        "jobset.sigs.k8s.io/jobset-name",
        "jobset.sigs.k8s.io/jobset-uid",
        "batch.kubernetes.io/job-name",
        "batch.kubernetes.io/controller-uid",
        "job-name",
        "controller-uid",
        "leaderworkerset.sigs.k8s.io/name",
        "leaderworkerset.sigs.k8s.io/group-key",
        "ray.io/cluster",
        "volcano.sh/job-name",
    }
)
SUFFIX = "-copy"


class HalfStart(NamedTuple):
    """
    `possible` true: `witness` shows both copies holding part of the nodes and neither able to finish. False: proved that
    it cannot happen. None: no such run was found, and none was ruled out.
    """

    possible: bool | None
    why: str
    witness: Placement | None = None


def half_start(
    pods: Sequence[PodRequest],
    topology: Topology,
    *,
    settings: Settings = DEFAULT_SETTINGS,
    second: Sequence[PodRequest] | None = None,
    gang: GangSpec | None = None,
) -> HalfStart:
    """
    Whether `pods` and a second job (default: a copy under another name) created at the same time can starve each other.

    A gang that starts all or nothing never holds part of itself. Source: reference/placement.md §9 (2), (3).
    """
    if gang is not None and gang.all_or_nothing and (gang.min_count is None or gang.min_count >= len(pods)):
        return HalfStart(possible=False, why=f"the gang ({gang.system or 'declared'}) starts all pods or none")
    other = list(second) if second is not None else twin(pods)
    both = [p for p in chain.from_iterable(zip_longest(pods, other)) if p is not None]
    names = [p.name for p in both]
    mine = {p.name for p in pods}
    cluster = snapshot_of(topology)
    problem = build_problem(compile_pods(both), cluster, settings, tags=[n in mine for n in names])
    witness = _found(problem, names, mine)
    if witness is not None:
        return HalfStart(possible=True, why=_told(witness, mine), witness=witness)
    proof = _ruled_out(problem)
    if proof:
        return HalfStart(possible=False, why=proof)
    return HalfStart(possible=None, why="no run was found in which both copies hold nodes and neither finishes")


def _ruled_out(problem: Problem) -> str:
    """
    Why no order can starve both, or the empty string. Needs pods that only compete with their twins: then each sort of
    pod has a fixed number of slots T for 2n pods. T >= 2n: room for all. T = 2n - 1 for one sort: the copy that gets the
    last slot is whole in it. Anything less can be shared out so that both are short.
    """
    if not all(i.free for i in problem.interplay) or any(any(k.clash) or any(k.caps) for k in problem.kinds):
        return ""
    short = []
    for family in _families(problem):
        size = sum(problem.classes[c].size for c in family)
        if any(k.single is None and len({k.allowed[c] for c in family}) > 1 for k in problem.kinds):
            return ""
        short.append(size - _slots(problem, family, size))
    if any(_mixed(problem, kind) for kind in range(len(problem.kinds))):
        return ""
    if all(s <= 0 for s in short):
        return "there is room for both copies whatever the order"
    if sorted(max(s, 0) for s in short)[-2:] in ([0, 1], [1]):
        return "the room is one pod short for both, so one copy always finishes"
    return ""


def _families(problem: Problem) -> list[tuple[int, ...]]:
    """Classes that ask for the same: a role and its twin."""
    found: dict[tuple[int, ...], list[int]] = {}
    for chosen, needs in enumerate(problem.needs):
        found.setdefault(needs, []).append(chosen)
    return [tuple(f) for f in found.values()]


def _slots(problem: Problem, family: tuple[int, ...], size: int) -> int:
    total = 0
    for kind in problem.kinds:
        if kind.single is not None:
            total += len(kind.nodes) if kind.single in family else 0
        elif kind.allowed[family[0]]:
            total += len(kind.nodes) * problem.most(kind, problem.empty, family[0], size)
    return total


def _mixed(problem: Problem, position: int) -> bool:
    """Whether two sorts of pods can meet on a node of the kind."""
    kind = problem.kinds[position]
    families = [f for f in _families(problem) if any(kind.allowed[c] and problem.fits(kind, problem.empty, c) for c in f)]
    return kind.single is None and len(families) > 1


def _found(problem: Problem, names: Sequence[str], mine: set[str]) -> Placement | None:
    search = explore(problem, EXACT_WORK)
    for final in search.finals:
        if sum(final[1]) >= 2:
            placement = replay(problem, search.path(final), names)
            if _starves(placement, mine):
                return placement
    for strategy in (interleave, smallest_first, most_harmful, fill_up):
        placement = replay(problem, play(problem, strategy)[0], names)
        if _starves(placement, mine):
            return placement
    return None


def _starves(placement: Placement, mine: set[str]) -> bool:
    """Both copies have some pods bound and some waiting."""
    for side in (True, False):
        homes = [node for name, node in placement.nodes.items() if (name in mine) is side]
        if not any(h is not None for h in homes) or not any(h is None for h in homes):
            return False
    return True


def _told(placement: Placement, mine: set[str]) -> str:
    def count(side: bool) -> str:
        homes = [node for name, node in placement.nodes.items() if (name in mine) is side]
        return f"{sum(h is not None for h in homes)} of {len(homes)}"

    return f"one copy can hold {count(True)} pods and the other {count(False)}, and both wait for ever"


def twin(pods: Sequence[PodRequest], suffix: str = SUFFIX) -> list[PodRequest]:
    """The same job under another name: pod names, identity labels, and the selectors that carry them."""
    names = {
        v: f"{v}{suffix}"
        for p in pods
        for k, v in as_str_map(dig(p.body, "metadata", "labels")).items()
        if k in IDENTITY_KEYS
    }
    specs: dict[int, Any] = {}
    return [_renamed(p, names, suffix, specs) for p in pods]


def _renamed(pod: PodRequest, names: Mapping[str, str], suffix: str, specs: dict[int, Any]) -> PodRequest:
    spec = as_map(pod.body.get("spec"))
    if id(spec) not in specs:
        changed = {k: _replaced(spec[k], names) for k in ("affinity", "topologySpreadConstraints") if k in spec}
        specs[id(spec)] = {**spec, **changed}
    metadata = as_map(pod.body.get("metadata"))
    labels = {k: names.get(v, v) if k in IDENTITY_KEYS else v for k, v in as_str_map(metadata.get("labels")).items()}
    body = {**pod.body, "metadata": {**metadata, "name": f"{pod.name}{suffix}", "labels": labels}, "spec": specs[id(spec)]}
    return PodRequest(name=f"{pod.name}{suffix}", klass=pod.klass, body=body)


def _replaced(tree: Any, names: Mapping[str, str]) -> Any:
    """Selector values that name the job, renamed; keys and everything else stay."""
    if isinstance(tree, Mapping):
        return {k: _replaced(v, names) for k, v in tree.items()}
    if isinstance(tree, list | tuple):
        return [_replaced(v, names) for v in tree]
    return names.get(tree, tree) if isinstance(tree, str) else tree
