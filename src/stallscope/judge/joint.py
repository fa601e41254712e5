"""
The joint judgement: for each job, the placements the scheduler could choose, and every flow under them.

Verdicts are asked first under the witness (the worst reachable placement), then for every other pair of zones the two
ends could land in, because a policy that looks at zones answers differently there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from stallscope.judge.facts import complete, namespace_labels
from stallscope.judge.flows import OutsideLookup, judge_flows
from stallscope.judge.inputs import ClusterFacts, Inputs
from stallscope.judge.landing import Landing, land
from stallscope.judge.members import members
from stallscope.judge.network import Member, Network, find_mesh
from stallscope.judge.outside import TELLING, OutsideEnd, outside_end
from stallscope.judge.pods import endpoint
from stallscope.judge.price import price
from stallscope.judge.result import FlowJudgement, JobJudgement, Judgement
from stallscope.judge.services import named_services
from stallscope.judge.surroundings import surroundings
from stallscope.judge.webhooks import CONFIGURATIONS, admission_flows
from stallscope.model.kube import KubeObject, from_body
from stallscope.model.topology import Node
from stallscope.model.traffic import Flow, FlowKind, Outcome, Outside
from stallscope.model.workload import TrainingJob
from stallscope.placement.settings import Settings
from stallscope.policy.detect import detect_cni
from stallscope.policy.engine import EngineOptions, PolicySet, compile_policies


def judge(inputs: Inputs) -> Judgement:
    """Judge every job of `inputs` against its topology and policies. Pure; never raises on odd manifests."""
    facts = complete(inputs.facts, inputs.objects)
    objects = (*inputs.objects, *_generated(inputs.jobs))
    policies = _compile(objects, facts, inputs)
    mesh = find_mesh(objects, policies.options.namespaces, inputs.jobs)
    network = Network(policies=policies, mesh=mesh)
    around = tuple(o for o in objects if o.kind in TELLING or o.kind in CONFIGURATIONS)
    scene = surroundings(inputs.objects)
    jobs = tuple(_judge_job(job, around, inputs, network, facts, scene.of(job)) for job in inputs.jobs)
    return Judgement(
        inputs=inputs,
        facts=facts,
        policies=policies,
        mesh=mesh,
        jobs=jobs,
        topology=inputs.topology,
        edges=sum(f.pairs for j in jobs for f in j.flows),
        unjudged=tuple(sorted({f.verdict.reason for j in jobs for f in j.with_outcome(Outcome.UNJUDGED)})),
    )


def _generated(jobs: Sequence[TrainingJob]) -> tuple[KubeObject, ...]:
    """Objects operators would create (Volcano's svc policy, …): judged like any other, located at their job."""
    return tuple(from_body(extra.body, namespace=job.namespace) for job in jobs for extra in job.extra_objects)


def _too_wide(job: TrainingJob, policies: PolicySet) -> tuple[str, ...]:
    """Where the stated Cilium release admits more than the verdicts, which are those of the fixed agent, say."""
    if not policies.options.version:  # spares every other run the import
        return ()
    from stallscope.policy.insight import ip_block_admits_namespace

    return tuple(
        f"{policy.ref} ({place}): Cilium 1.19.0 to 1.19.4 also admits all pods of its namespace through this ipBlock "
        "(cilium#46305); judged as the fixed agent"
        for policy, place in ip_block_admits_namespace(policies)
        if policy.namespace == job.namespace
    )


def _compile(objects: Sequence[KubeObject], facts: ClusterFacts, inputs: Inputs) -> PolicySet:
    labels = namespace_labels(objects, facts)
    if inputs.topology:
        labels = {**{n: dict(own) for n, own in inputs.topology.namespaces.items()}, **labels}
    options = EngineOptions(
        cni=facts.cni or detect_cni(objects),
        version=facts.cni_version,
        options=dict(facts.cilium_options),
        namespaces=labels,
    )
    return compile_policies(objects, options)


def _judge_job(
    job: TrainingJob,
    around: Sequence[KubeObject],
    inputs: Inputs,
    cluster: Network,
    facts: ClusterFacts,
    settings: Settings,
) -> JobJudgement:
    topology = inputs.topology
    landing = land(job, topology, settings)
    nodes = {n.name: n for n in topology.nodes} if topology else {}
    network = replace(cluster, services=job.services)
    found = {**admission_flows(job, around, cluster.policies.options.namespaces), **named_services(job, around)}
    needed = (*(f for f in job.flows if f.kind is not FlowKind.WEBHOOK), *found)
    outside = _lookup(job, around, found)
    flows = judge_flows(needed, members(job, landing.witness, nodes, facts), network, outside)
    flows += _other_zones(job, landing, nodes, network, facts, flows)
    return JobJudgement(
        job=job,
        can_split=landing.can_split,
        why=landing.why,
        placement=landing.outcome,
        feasible=landing.feasible,
        witness=landing.witness,
        flows=flows,
        price=price(job, landing.witness, inputs.prices),
        caveats=(*landing.caveats, *_too_wide(job, cluster.policies)),
    )


def _lookup(job: TrainingJob, objects: Sequence[KubeObject], known: Mapping[Flow, OutsideEnd]) -> OutsideLookup:
    """The ends outside the job, each looked up once; `known` has the destinations that differ from flow to flow."""
    found: dict[Outside, OutsideEnd] = {}

    def lookup(which: Outside, flow: Flow) -> OutsideEnd:
        if which == flow.destination and flow in known:
            return known[flow]
        if which not in found:
            found[which] = outside_end(which, objects, job)
        return found[which]

    return lookup


def _other_zones(
    job: TrainingJob,
    landing: Landing,
    nodes: dict[str, Node],
    network: Network,
    facts: ClusterFacts,
    known: Sequence[FlowJudgement],
) -> tuple[FlowJudgement, ...]:
    """
    Flows whose outcome differs when the pods land elsewhere. One pod a role and zone is enough: only the zone changes.
    Nothing is asked when neither policy nor mesh can see the zone (the classes are then the same).
    """
    variants = _variants(job, landing, nodes, facts)
    if len({(m.role, network.key(m)) for m in variants}) <= len({m.role for m in variants}):
        return ()
    seen = {(f.flow, f.zones, f.verdict.outcome) for f in known}
    flows = [f for f in job.flows if not {f.source, f.destination} & set(Outside)]
    found = judge_flows(flows, variants, network, _lookup(job, (), {}))
    return tuple(f for f in found if (f.flow, f.zones, f.verdict.outcome) not in seen and landing.reachable(f.zones))


def _variants(job: TrainingJob, landing: Landing, nodes: dict[str, Node], facts: ClusterFacts) -> list[Member]:
    """Two pods of each role in each zone it can land in (two, so that a role can be asked about itself)."""
    roles = {role.name: role for role in job.roles}
    zones = landing.zones_of_role
    pods = [p for role in job.roles for p in job.pods_of(role.name)[:2]]
    return [
        Member(
            role=pod.role,
            index=pod.index,
            endpoint=endpoint(pod, roles[pod.role], _node_in(nodes, zone), facts, zone=zone),
            annotations=roles[pod.role].template.annotations,
        )
        for pod in pods
        for zone in sorted(zones.get(pod.role, ()))
    ]


def _node_in(nodes: dict[str, Node], zone: str) -> Node | None:
    return next((n for n in nodes.values() if n.zone == zone), None)
