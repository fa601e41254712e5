"""Denied flows, grouped so that one cause is one finding, and worded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from stallscope.findings import Confidence, Finding, Label, Severity
from stallscope.judge.result import FlowJudgement, JobJudgement, Judgement
from stallscope.model.source import as_list, as_map, dig
from stallscope.model.traffic import Direction, DirectionVerdict, FlowKind, Outcome, Outside, RuleRef
from stallscope.model.workload import Role
from stallscope.rules.base import Report
from stallscope.rules.support.policies import label_lines, policy_named, zone_conditional
from stallscope.rules.support.rendezvous import rendezvous_place
from stallscope.rules.support.words import count, label, listed, unique, zone_name, zone_names

_OUTSIDE_NAMES = {
    Outside.CLUSTER_DNS: "the cluster DNS",
    Outside.API_SERVER: "the API server",
    Outside.PROMETHEUS: "Prometheus",
    Outside.OPERATOR: "the operator",
    Outside.SERVICE: "a Service it names",
}


class Denial(NamedTuple):
    """
    Flows of one job that one cause denies. `first` is the pair a finding shows. `elsewhere` is a flow between the same
    roles that comes out differently in other zones, if there is one: the verdict then depends on placement.
    """

    first: FlowJudgement
    flows: tuple[FlowJudgement, ...]
    elsewhere: FlowJudgement | None = None

    @property
    def side(self) -> DirectionVerdict:
        return self.first.verdict.deciding

    @property
    def policies(self) -> tuple[RuleRef, ...]:
        """The deciding rules, or for default deny the policies that isolate the pod."""
        return self.side.rules or self.side.isolating

    @property
    def pairs(self) -> int:
        return sum(f.pairs for f in self.flows)


def denials(judged: JobJudgement, *kinds: FlowKind) -> Iterator[Denial]:
    """Denied flows of those kinds, grouped by the rule or the isolating policies that deny them."""
    groups: dict[tuple[object, ...], list[FlowJudgement]] = {}
    for flow in judged.with_outcome(Outcome.DENIED):
        if flow.flow.kind in kinds and not _told_by_mesh(judged, flow):
            groups.setdefault(_cause(flow), []).append(flow)
    for flows in groups.values():
        yield Denial(first=flows[0], flows=tuple(flows), elsewhere=_elsewhere(judged, flows[0]))


def _told_by_mesh(judged: JobJudgement, flow: FlowJudgement) -> bool:
    """
    True when the mesh refuses the connection and STL206 says so: between the job's own pods, and for whatever else enters
    a job whose own traffic the mesh carries.
    """
    if not flow.verdict.by_mesh:
        return False
    own = {role.name for role in judged.job.roles}
    if {flow.source_role, flow.destination_role} <= own:
        return True
    return flow.destination_role in own and any(
        f.verdict.by_mesh and {f.source_role, f.destination_role} <= own for f in judged.flows
    )


def _cause(flow: FlowJudgement) -> tuple[object, ...]:
    """An explicit deny is its rules; a default deny the policies that isolate, whichever direction they isolate."""
    side = flow.verdict.deciding
    if flow.flow.destination == Outside.SERVICE:
        return ("service", flow.destination)
    if side.rules:
        return ("rules", *((r.policy, r.section, r.index, r.spec) for r in side.rules))
    return ("default", *sorted({r.policy for r in side.isolating}))


def _elsewhere(judged: JobJudgement, denied: FlowJudgement) -> FlowJudgement | None:
    ends = (denied.source_role, denied.destination_role)
    for other in judged.flows:
        same = other.flow == denied.flow and (other.source_role, other.destination_role) == ends
        if same and other.zones != denied.zones and other.verdict.outcome is not Outcome.DENIED:
            return other
    return None


def under_witness(judged: JobJudgement, denial: Denial) -> bool:
    """True when the shown pair meets the denial in the witness placement (or no placement was judged)."""
    witness = judged.witness
    if witness is None or denial.first.zones == ("", ""):
        return True
    ends = (denial.first.source, denial.first.destination)
    return all(
        name in set(Outside) or not zone or witness.zone_of(name) == zone
        for name, zone in zip(ends, denial.first.zones, strict=True)
    )


def only_rendezvous(judged: JobJudgement, denial: Denial) -> tuple[RuleRef, int] | None:
    """
    The rule that admits ranks to the rendezvous port and to that port only, when a default deny of the same policies
    keeps them from everything else: the classic wrong fix.
    """
    if denial.side.rules or denial.first.port.first != denial.first.flow.ports[0].first:
        return None  # a denial further up the range means that part of it is open
    isolating = {r.policy for r in denial.side.isolating}
    for flow in judged.flows:
        if flow.flow.kind is not FlowKind.RENDEZVOUS or flow.verdict.outcome is Outcome.DENIED:
            continue
        side = flow.verdict.egress if denial.side.direction is Direction.EGRESS else flow.verdict.ingress
        hit = next((r for r in side.rules if r.policy in isolating), None)
        if hit is not None:
            return hit, flow.port.first
    return None


def end_name(name: str) -> str:
    """A pod name, or what people call the thing outside the job."""
    return _OUTSIDE_NAMES[Outside(name)] if name in set(Outside) else name


def pair_text(flow: FlowJudgement) -> str:
    """``llm-worker-0 (zone a) cannot reach llm-worker-2 (zone b) on TCP 32768`` without its verb's reason."""
    source, destination = (
        f"{end_name(name)} ({zone_name(zone)})" if zone else end_name(name)
        for name, zone in zip((flow.source, flow.destination), flow.zones, strict=True)
    )
    return f"{source} cannot reach {destination} on {_first_port(flow)}"


def _first_port(flow: FlowJudgement) -> str:
    return f"{flow.port.protocol} {flow.port.first}"


def because(denial: Denial) -> str:
    """Which object denies, in one clause."""
    names = sorted({r.policy for r in denial.policies})
    if denial.first.verdict.by_mesh:
        return denial.side.reason
    if denial.side.rules:
        return f"{listed(names)} {'denies' if len(names) == 1 else 'deny'} it"
    if not names:
        return denial.side.reason or "nothing admits it"
    verb = "isolates" if len(names) == 1 else "isolate"
    isolated = denial.first.source if denial.side.direction is Direction.EGRESS else denial.first.destination
    what = "outgoing" if denial.side.direction is Direction.EGRESS else "incoming"
    return f"{listed(names)} {verb} {end_name(isolated)} and no rule admits this {what} connection"


def denial_labels(judgement: Judgement, judged: JobJudgement, denial: Denial) -> tuple[Label, ...]:
    """The deciding rule (primary), near misses, the pod labels the policies look at, the port."""
    found: list[Label] = []
    for i, rule in enumerate(denial.policies[:3]):
        text = "this rule denies the connection" if denial.side.rules else _isolation_text(denial)
        found.append(label(rule.location, text, primary=i == 0))
    if not denial.side.rules:
        found += [label(n.rule.location, f"closest rule: {n.why}") for n in denial.side.nearest[:2]]
    found += label_lines(judgement, denial.policies, _roles(judged, denial))
    place = rendezvous_place(judged.job) if denial.first.flow.kind is FlowKind.RENDEZVOUS else None
    if place is not None:
        found.append(label(place, f"the ranks meet on {_first_port(denial.first)}"))
    labels = unique(found)
    if not any(item.primary for item in labels):
        labels = (label(judged.job.source.at(), "this job needs the connection", primary=True), *labels)
    return labels


def _isolation_text(denial: Denial) -> str:
    egress = denial.side.direction is Direction.EGRESS
    pod = end_name(denial.first.source if egress else denial.first.destination)
    return f"selects {pod}: {'egress' if egress else 'ingress'} that no rule admits is dropped"


def _roles(judged: JobJudgement, denial: Denial) -> tuple[Role, ...]:
    wanted = (denial.first.source_role, denial.first.destination_role)
    return tuple(r for r in judged.job.roles if r.name in wanted)


def denial_notes(judgement: Judgement, denial: Denial) -> tuple[str, ...]:
    """How many pairs share the cause, and how the verdict depends on placement."""
    notes = list(_why_isolated(judgement, denial))
    if denial.first.flow.destination == Outside.SERVICE:
        notes.append(denial.first.flow.reason)
    if denial.pairs > 1:
        roles = sorted({f"{end_name(f.source_role)} -> {end_name(f.destination_role)}" for f in denial.flows})
        notes.append(f"the same cause denies {count(denial.pairs, 'pair')} of this job ({listed(roles)})")
    if denial.elsewhere is not None:
        a, b = denial.elsewhere.zones
        where = f"in {zone_names((a, b))}" if a != b else f"both in {zone_name(a)}" if a else "elsewhere"
        notes.append(f"the verdict depends on placement: {denial.elsewhere.verdict.outcome} when the two land {where}")
    mesh = denial.first.verdict.mesh
    if denial.first.verdict.by_mesh:
        notes.append("a proxy that refuses answers: 'connection reset by peer' or EOF, not a timeout")
        return tuple(notes)
    if mesh is not None and mesh.outcome is not Outcome.ALLOWED and mesh.reason:
        notes.append(mesh.reason)
    if denial.side.outcome is Outcome.DENIED:
        notes.append("a policy denial is a silent packet drop: the ranks see a connect timeout, never 'refused'")
    return tuple(notes)


def _why_isolated(judgement: Judgement, denial: Denial) -> Iterator[str]:
    """How a policy came to isolate the pod, where that surprises people; and who wrote a policy that is in no file."""
    if denial.side.rules:
        return
    direction = denial.side.direction
    for ref in dict.fromkeys(r.policy for r in denial.side.isolating):
        policy = policy_named(judgement, ref)
        if policy is None:
            continue
        for job in (j.job for j in judgement.jobs):
            for extra in job.extra_objects:
                if not policy.file and dig(extra.body, "metadata", "name") == policy.name:
                    yield f"{ref} is in no file: {extra.because}"
        spec = as_map(policy.get("spec"))
        if policy.kind == "NetworkPolicy" and "policyTypes" not in spec and direction is Direction.INGRESS:
            if as_list(spec.get("egress")) and not as_list(spec.get("ingress")):
                yield f"{ref} names no policyTypes: a policy with egress rules alone isolates ingress too"
        elif policy.group == "cilium.io" and not spec.get(str(direction)) and spec.get(f"{direction}Deny"):
            yield f"{ref} has only deny rules for {direction}: they isolate too, unless enableDefaultDeny says false"


def denial_findings(
    report: Report,
    judgement: Judgement,
    *kinds: FlowKind,
    sees: str,
    help: str,
    fixable: bool | None = None,
    optional: Severity = Severity.WARNING,
    keep: Callable[[JobJudgement, Denial], bool] = lambda _j, _d: True,
) -> Iterator[Finding]:
    """
    One finding per job and cause for denied flows of those kinds. `sees` is what the user sees at run time, `optional`
    the severity for flows the job can do without.
    """
    for judged in judgement.jobs:
        for denial in denials(judged, *kinds):
            if not keep(judged, denial) or zone_conditional(judgement, judged, denial.policies):
                continue
            yield report.finding(
                f"{pair_text(denial.first)}: {because(denial)}",
                denial_labels(judgement, judged, denial),
                subject=judged.job.ref,
                key=denial_key(denial),
                severity=None if denial.first.flow.required else optional,
                confidence=confidence_of(judged, denial),
                notes=(*denial_notes(judgement, denial), f"what you will see: {sees}"),
                help=_help_for(denial, help),
                fixable=False if denial.first.flow.destination == Outside.SERVICE else fixable,
            )


def _help_for(denial: Denial, usual: str) -> str:
    """Opening ports among the job's own pods does not help when the other end is somebody else's Service."""
    if denial.first.flow.destination != Outside.SERVICE:
        return usual
    way = "egress of the job" if denial.side.direction is Direction.EGRESS else "ingress"
    return f"allow {way} to the pods behind {denial.first.destination} on {_first_port(denial.first)}"


def denial_key(denial: Denial) -> str:
    """Stable part of the fingerprint: who denies what, without names of pods, ports or lines."""
    rules = sorted({f"{r.policy}:{r.section}" if denial.side.rules else r.policy for r in denial.policies})
    end = f":{denial.first.destination}" if denial.first.flow.destination == Outside.SERVICE else ""
    return f"{denial.first.flow.kind}:{','.join(rules)}{end}"


def confidence_of(judged: JobJudgement, denial: Denial) -> Confidence:
    """Certain unless the verdict changes with the zone and no placement was judged."""
    return Confidence.DEPENDS if denial.elsewhere is not None and judged.witness is None else Confidence.CERTAIN
