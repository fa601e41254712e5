"""Let the ranks talk: an allow where default deny stands in the way, a narrowed copy where a deny rule does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from stallscope.errors import PatchRefused
from stallscope.judge.outside import outside_endpoint
from stallscope.judge.result import JobJudgement, Judgement
from stallscope.model.kube import KubeObject
from stallscope.model.traffic import FlowKind, Outside, RuleRef
from stallscope.model.workload import TrainingJob
from stallscope.remedy import templates
from stallscope.remedy.allow import ADDITIVE_SINCE, Dialect, Outsider, allow_policies
from stallscope.remedy.denials import Refusal, refusals
from stallscope.remedy.exempt import exempt
from stallscope.remedy.groups import Group, group_of, label_value
from stallscope.remedy.model import Plan, Remedy, Unfixed
from stallscope.remedy.workbench import Bench

#: Which findings ask for which flows.
KINDS: Mapping[str, tuple[FlowKind, ...]] = {
    "STL201": (FlowKind.COLLECTIVE,),
    "STL202": (FlowKind.RENDEZVOUS,),
    "STL203": (FlowKind.COLLECTIVE,),
    "STL204": (FlowKind.DNS,),
    "STL215": (FlowKind.LAUNCHER,),
    "STL216": (FlowKind.COLLECTIVE, FlowKind.RENDEZVOUS),
    "STL217": (FlowKind.SERVICE,),
    "STL218": (FlowKind.API_SERVER,),
    "STL403": (FlowKind.METRICS,),
}
_TELLING = ("app.kubernetes.io/name", "app", "k8s-app")
_TEXT_FILES = (".yaml", ".yml")


def plan_policies(bench: Bench, judged: JobJudgement, judgement: Judgement, rules: Sequence[str]) -> Plan:
    """One remedy for all default denies of the job, one for each policy with a deny rule in its way."""
    kinds = frozenset(kind for rule in rules for kind in KINDS.get(rule, ()))
    found = refusals(judged, kinds)
    plan = _foreign(judged.job, rules, [r for r in found if r.role in set(Outside)])
    own = [r for r in found if r.role not in set(Outside)]
    by_default = [r for r in own if not r.rules]
    if by_default:
        plan += _allow(bench, judged.job, judgement, rules, by_default)
    for policy_ref in sorted({ref.policy for r in own for ref in r.rules}):
        refs = {ref for r in own for ref in r.rules if ref.policy == policy_ref}
        plan += _exempt(bench, judged.job, judgement, rules, policy_ref, sorted(refs, key=str))
    return plan


def _foreign(job: TrainingJob, rules: Sequence[str], refused: Sequence[Refusal]) -> Plan:
    """Policies at the other end belong to somebody else: the DNS, Prometheus."""
    blocked = {r.role: sorted({ref.policy for ref in (*r.rules, *r.isolating)}) for r in refused}
    return Plan(
        unfixed=tuple(
            Unfixed(
                job=job.ref, rules=tuple(rules), reason=f"{', '.join(policies)} keeps the job from {end}; it guards {end}"
            )
            for end, policies in blocked.items()
        )
    )


def _allow(bench: Bench, job: TrainingJob, judgement: Judgement, rules: Sequence[str], refused: Sequence[Refusal]) -> Plan:
    attempt = bench.fork()
    before = len(attempt.done)
    isolating = _objects(judgement, (ref for r in refused for ref in r.isolating))
    reasons: list[str] = []
    try:
        group = _group(attempt, job)
        admitted, reasons = _admissible(judgement, refused)
        dialect = _dialect(judgement)
        outsiders = _outsiders(judgement, admitted)
        name = _free_name(judgement, job)
        bodies = allow_policies(job, group, admitted, dialect, outsiders, name)
    except PatchRefused as error:
        return Plan(unfixed=(Unfixed(job=job.ref, rules=tuple(rules), reason=error.message, hint=error.hint),))
    if not admitted:
        return Plan(unfixed=tuple(Unfixed(job=job.ref, rules=tuple(rules), reason=reason) for reason in reasons))
    blocker = ", ".join(p.name for p in isolating) or "another policy"
    for body in bodies:
        attempt.add_document(
            _home(job, isolating, name), body, f"Lets the pods of {job.ref} talk; {blocker} keeps them apart."
        )
    bench.adopt(attempt)
    remedy = Remedy(
        slug="allow-peers",
        title=f"{bodies[0]['kind']} {name}: {_what(admitted)}",
        job=job.ref,
        rules=tuple(rules),
        ops=tuple(attempt.done[before:]),
        assumptions=tuple(_assumed(judgement, admitted)),
    )
    return Plan((remedy,), tuple(Unfixed(job=job.ref, rules=tuple(rules), reason=reason) for reason in reasons))


def _exempt(
    bench: Bench, job: TrainingJob, judgement: Judgement, rules: Sequence[str], name: str, refs: Sequence[RuleRef]
) -> Plan:
    policy = next((p for p in judgement.policies.policies if p.ref == name), None)
    attempt = bench.fork()
    before = len(attempt.done)
    try:
        if policy is None:
            raise PatchRefused(f"{name} denies it and is in none of the files")
        exempt(attempt, job, _group(attempt, job), policy, refs)
    except PatchRefused as error:
        return Plan(unfixed=(Unfixed(job=job.ref, rules=tuple(rules), reason=error.message, hint=error.hint),))
    bench.adopt(attempt)
    remedy = Remedy(
        slug="narrow-deny",
        title=f"{policy.ref} no longer denies the pods of {job.name} each other",
        job=job.ref,
        rules=tuple(rules),
        ops=tuple(attempt.done[before:]),
    )
    return Plan((remedy,))


def _group(bench: Bench, job: TrainingJob) -> Group:
    """The job's own labels; where it has none that are known beforehand, one of ours is put on its templates."""
    group = group_of(job)
    for role in job.roles:
        if role.name in group.added:
            templates.metadata_set(bench, role, "labels", group.added[role.name])
    return group


def _dialect(judgement: Judgement) -> Dialect:
    options = judgement.policies.options
    cilium = options.cni == "cilium"
    switched_off = options.options.get("enable-non-default-deny-policies") == "false"
    additive = cilium and not switched_off and (not options.version or options.version[:2] >= ADDITIVE_SINCE)
    return Dialect(cilium=cilium, additive=additive)


def _admissible(judgement: Judgement, refused: Sequence[Refusal]) -> tuple[list[Refusal], list[str]]:
    """What an allow of ours can admit, and why not the rest: one impossible peer must not cost all the others."""
    cilium = judgement.policies.options.cni == "cilium"
    outsiders = _outsiders(judgement, refused)
    admitted: list[Refusal] = []
    reasons: dict[str, None] = {}
    for refusal in refused:
        if refusal.among_ranks or (refusal.peer == Outside.API_SERVER and cilium) or refusal.peer in outsiders:
            admitted.append(refusal)
        elif refusal.peer == Outside.API_SERVER:
            reasons["the API server can only be admitted by address (ipBlock), which the manifests do not hold"] = None
        else:
            reasons[f"the labels of {refusal.peer} are not known"] = None
    return admitted, list(reasons)


def _outsiders(judgement: Judgement, refused: Sequence[Refusal]) -> dict[str, Outsider]:
    found: dict[str, Outsider] = {}
    for peer in sorted({r.peer for r in refused if not r.among_ranks}):
        endpoint, _ = outside_endpoint(Outside(peer), judgement.inputs.objects)
        if endpoint is not None and endpoint.is_pod and endpoint.labels:
            labels = dict(endpoint.labels)
            telling = {k: labels[k] for k in _TELLING if k in labels}
            found[peer] = Outsider(namespace=endpoint.namespace, labels=telling or labels)
    return found


def _assumed(judgement: Judgement, refused: Sequence[Refusal]) -> Iterable[str]:
    for peer in sorted({r.peer for r in refused if not r.among_ranks and r.peer != Outside.API_SERVER}):
        yield outside_endpoint(Outside(peer), judgement.inputs.objects)[1]


def _objects(judgement: Judgement, refs: Iterable[RuleRef]) -> list[KubeObject]:
    names = dict.fromkeys(ref.policy for ref in refs)
    return [p for name in names for p in judgement.policies.policies if p.ref == name]


def _home(job: TrainingJob, isolating: Sequence[KubeObject], name: str) -> str:
    """Beside the policy that isolates when it is of the job's namespace, else beside the job, else a file of its own."""
    for obj in (*(p for p in isolating if p.namespace == job.namespace), job.source):
        if obj.file.endswith(_TEXT_FILES) and not obj.rendered_from:
            return obj.file
    folder, slash, _ = job.source.file.rpartition("/")
    return f"{folder}{slash}{name}.yaml"


def _free_name(judgement: Judgement, job: TrainingJob) -> str:
    taken = [o.name for o in judgement.inputs.objects if o.namespace == job.namespace]
    base = label_value(f"{job.name[:40]}-ranks")
    names = (base, *(f"{base}-{i}" for i in range(2, 100)))
    return next(n for n in names if not any(t == n or t.startswith(f"{n}-") for t in taken))


def _what(refused: Sequence[Refusal]) -> str:
    parts = ["the job's pods reach each other on every TCP port"] if any(r.among_ranks for r in refused) else []
    parts += sorted(
        {
            f"{r.peer} is reachable" if r.peer != Outside.PROMETHEUS else "Prometheus may scrape"
            for r in refused
            if not r.among_ranks
        }
    )
    return ", ".join(parts)
