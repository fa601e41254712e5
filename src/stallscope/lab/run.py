"""A rehearsal from start to end: measure the machine, build each placement, connect, run, repeat, report."""

from __future__ import annotations

import base64
import pickle
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from stallscope.collective.cost import Spot
from stallscope.collective.links import Link, LinkProfile
from stallscope.collective.rehearsal import EdgeResult, PlacementResult, PodPlacement, Rehearsal, Repetition, Scale
from stallscope.collective.workload import Workload
from stallscope.errors import LabError
from stallscope.lab import state
from stallscope.lab.cast import Cast
from stallscope.lab.faults.inject import run_with_faults
from stallscope.lab.faults.registry import parse_faults
from stallscope.lab.firewall import Segments, drops_of
from stallscope.lab.machine import measure_machine
from stallscope.lab.matrix import cached_segments, drop_results, reachability, reason
from stallscope.lab.netns import build, congestion_control
from stallscope.lab.plan import LoopPlan, bucket_count
from stallscope.lab.ranks import Zygote
from stallscope.lab.sandbox import Emit, isolated
from stallscope.lab.shaper import Shape
from stallscope.lab.stage import Stage, run_once
from stallscope.lab.workload import choose_scale, modelled
from stallscope.model.traffic import Outcome, PortRange, Protocol
from stallscope.policy.engine import PolicySet

#: CPU share of the machine above which it, and not the link, may have set the pace.
CPU_LIMIT = 0.85
MODEL_MARGIN = 1.1

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """One placement to rehearse: its label, the cast, and the policies in force."""

    label: str
    cast: Cast
    policies: PolicySet


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What to rehearse and how. `command` replaces the built-in loop; `faults` are ``NAME[:args]`` texts."""

    job: str
    scenes: tuple[Scene, ...]
    profile: LinkProfile
    workload: Workload
    steps: int = 10
    repeat: int = 3
    command: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    prefer_torch: bool = True
    named: bool = False
    said: tuple[str, ...] = ()


def rehearse(request: Request, progress: Say = lambda _: None) -> Rehearsal:
    """
    Run the rehearsal in its sandbox; `progress` gets one line a step of the way.

    Raises LabError when the lab cannot be built; a job that stalls is a result, not an error.
    """
    result: Rehearsal | None = None
    with state.run_directory() as run:
        pid = 0
        for event in isolated(lambda emit: _work(request, run.directory, emit)):
            if "sandbox" in event:
                pid = event["pid"]
            elif "say" in event:
                progress(event["say"])
            elif "names" in event and request.named:
                _name(run.id, pid, event["names"], progress)
            elif "result" in event:
                result = pickle.loads(base64.b64decode(event["result"]))  # noqa: S301  from our own child, by our own pipe
    if result is None:
        raise LabError("the lab ended without a result")
    return result


def _name(run_id: str, pid: int, descriptors: dict[str, int], progress: Say) -> None:
    try:
        names = state.name_namespaces(run_id, {pod: f"/proc/{pid}/fd/{fd}" for pod, fd in descriptors.items()})
    except OSError as error:
        progress(f"  [x] --named: cannot name the namespaces: {error.strerror}; it needs root and a writable /run/netns")
        return
    progress(f"named {len(names)} namespaces, e.g. ip netns exec {names[0]} ss -tin")


def _work(request: Request, directory: Path, emit: Emit) -> None:
    """The sandbox's side."""

    def say(text: str) -> None:
        emit({"say": text})

    with Zygote(directory, prefer_torch=request.prefer_torch) as zygote:
        result = perform(request, zygote, directory, say, emit)
    emit({"result": base64.b64encode(pickle.dumps(result)).decode()})


def perform(request: Request, zygote: Zygote, directory: Path, say: Say, emit: Emit = lambda _: None) -> Rehearsal:
    """The whole rehearsal in the current process's namespaces (tests as root call this directly)."""
    ring = "built-in ring (torch is not installed)" if request.prefer_torch else "built-in ring"
    transport = "torch.distributed, gloo" if zygote.transport == "torch" else ring
    ranks = max(len(s.cast.seats) for s in request.scenes)
    machine = measure_machine(zygote, directory, ranks)
    scale = choose_scale(request.workload, request.profile, ranks, machine)
    if request.command:  # its compute takes the time it takes
        scale = replace(scale, time=1.0)
    say(
        f"{request.job}, {ranks} ranks, {transport}; one ring edge carries {machine * 8e-9:.2f} Gbit/s here, "
        f"so rates are scaled 1:{scale.rate:.3g} and times 1:{scale.time:.3g}"
    )
    said: list[str] = list(request.said)
    with ExitStack() as stack:
        build_stage = partial(_set_up, request, scale=scale, directory=directory, said=said, emit=emit)
        made = [build_stage(scene, stack=stack, say=say) for scene in request.scenes]
        results = [_measure_edges(stage, up, request, scale, say) for stage, up in made]
        runs: dict[str, list[Repetition]] = {r.label: [] for r in results}
        for turn in range(request.repeat):
            for scene, (stage, _), result in zip(request.scenes, made, results, strict=True):
                _run_turn(request, zygote, scene, stage, result, build_stage, runs[result.label], turn, say)
        final = tuple(
            replace(r, repetitions=tuple(runs[r.label]), drops=drop_results(stage.cluster, stage))
            for r, (stage, _) in zip(results, made, strict=True)
        )
    said += _cpu_remarks(final)
    return Rehearsal(
        job=request.job,
        transport="your command" if request.command else transport,
        profile=request.profile.name,
        scale=scale,
        results=final,
        inputs=(*(() if request.command else request.workload.inputs), *_profile_lines(request.profile)),
        said=tuple(dict.fromkeys(said)),
        faults=request.faults,
    )


def _set_up(
    request: Request,
    scene: Scene,
    *,
    scale: Scale,
    directory: Path,
    said: list[str],
    emit: Emit,
    stack: ExitStack,
    say: Say,
) -> tuple[Stage, float]:
    """Build and shape one placement and put its policies in force; `stack` takes it down."""
    zones = sorted({scene.cast.spec.zones[p.node] for p in scene.cast.spec.pods})
    say(f"{scene.label}: {len(scene.cast.spec.pods)} pods in {', '.join(zones)}")
    begin = time.monotonic()
    cluster = stack.enter_context(
        build(scene.cast.spec, mtu=request.profile.zone.mtu, trunk_mtu=request.profile.cross_zone.mtu)
    )
    stage = Stage(
        label=scene.label,
        segments=cached_segments(scene.policies),
        cast=scene.cast,
        cluster=cluster,
        directory=directory / scene.label,
        plan=loop_plan(request, scale, len(scene.cast.seats)),
        shape=lab_shape(request.profile, scale),
        command=request.command,
    )
    said += stage.reshape()
    control = congestion_control(cluster)
    if control != "cubic":
        said.append(f"TCP congestion control is this machine's {control}, not Linux's default cubic")
    up = time.monotonic() - begin
    say(f"  pocket cluster up in {up:.2f} s")
    stack.callback(stage.close)
    stage.drops = list(drops_of(scene.cast.endpoints, stage.segments))
    stage.enforce()
    said += scene.cast.notes
    stage.no_names = unresolved(scene.cast, stage.segments)
    if stage.no_names:
        pod, reason = next(iter(stage.no_names.items()))
        said.append(
            f"{scene.label}: DNS is denied, so names do not resolve in {len(stage.no_names)} pods, e.g. {pod}: {reason} "
            "(judged, not measured: the lab has no name server)"
        )
    if request.named:
        emit({"names": {f"{scene.label}-{pod}": ns.fd for pod, ns in cluster.pods.items()}})
    return stage, up


def unresolved(cast: Cast, segments: Segments) -> dict[str, str]:
    """Pods whose DNS queries a policy denies, and why: in the lab their names do not resolve."""
    if cast.dns is None:
        return {}
    found = {}
    for pod, end in cast.endpoints.items():
        verdict = segments(end, cast.dns, PortRange(53, 53, Protocol.UDP))[0][1]
        if verdict.outcome is Outcome.DENIED:
            found[pod] = reason(verdict, end, cast.dns)
    return found


def lab_shape(profile: LinkProfile, scale: Scale) -> Shape:
    """The profile's links in lab units."""

    def scaled(link: Link) -> Link:
        return replace(link, bandwidth=link.bandwidth / scale.rate, latency=link.latency / scale.time)

    return Shape(zone=scaled(profile.zone), cross_zone=scaled(profile.cross_zone))


def loop_plan(request: Request, scale: Scale, ranks: int) -> LoopPlan:
    """The workload's step in lab units."""
    work = request.workload
    return LoopPlan(
        compute_seconds=work.compute_seconds / scale.time,
        gradient_bytes=max(4096, int(work.gradient_bytes / scale.rate / scale.time)),
        buckets=bucket_count(work.gradient_bytes, ranks),
        steps=request.steps,
    )


def _measure_edges(stage: Stage, up: float, request: Request, scale: Scale, say: Say) -> PlacementResult:
    edges = reachability(stage)
    shut = [e for e in edges if e.measured != "open"]
    say(f"{stage.label}: {len(edges)} connects, {len(shut)} blocked" + (f", first {_edge(shut[0])}" if shut else ""))
    for edge in (e for e in edges if e.agrees is False):
        say(f"  [x] {_edge(edge)} was judged {edge.judged} and met {edge.measured}: an error of ours, please report it")
    places = [(p, stage.cast.spec.zones[p.node]) for p in stage.cast.spec.pods]
    return PlacementResult(
        label=stage.label,
        placement=tuple(PodPlacement(pod=p.name, node=p.node, zone=zone, rank=p.rank) for p, zone in places),
        edges=edges,
        up_seconds=up,
        modelled=modelled(request.workload, request.profile, _spots(stage.cast), scale),
    )


def _edge(edge: EdgeResult) -> str:
    return f"{edge.source} -> {edge.destination} TCP {edge.port}"


def _spots(cast: Cast) -> list[Spot]:
    nodes = {p.name: p.node for p in cast.spec.pods}
    return [Spot(node=nodes[pod], zone=cast.spec.zones[nodes[pod]]) for pod in cast.ring]


def _run_turn(
    request: Request,
    zygote: Zygote,
    scene: Scene,
    stage: Stage,
    result: PlacementResult,
    build_stage: Callable[..., tuple[Stage, float]],
    runs: list[Repetition],
    turn: int,
    say: Say,
) -> None:
    """
    One run of one placement. Placements take turns, so that a machine that slows down slows all of them. A stalled one is
    not repeated. Faults change the stage, so with faults each run gets a fresh one.
    """
    if any(not r.finished for r in runs):
        return
    expected = result.modelled.step_seconds if result.modelled else 1.0
    armed = parse_faults(request.faults)
    if not armed:
        repetition, _ = run_once(stage, zygote, expected_step=expected)
    else:
        with ExitStack() as stack:
            fresh, _ = build_stage(scene, stack=stack, say=lambda _: None)
            repetition, _, _ = run_with_faults(fresh, zygote, armed, expected_step=expected)
    runs.append(repetition)
    say(f"{stage.label} run {turn + 1}/{request.repeat}: {_outcome(repetition)}")


def _outcome(run: Repetition) -> str:
    if run.ended:
        return f"[x] {run.ended}"
    if not run.steps:
        return "[ok] done"
    middle = sorted(run.steps)[len(run.steps) // 2]
    return f"[ok] step {middle * 1e3:.0f} ms, idle {100 * (1 - run.busy):.0f} %"


def _cpu_remarks(results: Sequence[PlacementResult]) -> Iterator[str]:
    """Said when the CPUs were saturated and the step took longer than the links explain."""
    for result in results:
        busiest = max((r.cpu_busy for r in result.finished), default=0.0)
        explained = result.modelled.step_seconds * MODEL_MARGIN if result.modelled else 0.0
        if busiest > CPU_LIMIT and result.step.median > explained:
            yield (
                f"{result.label}: this machine's CPUs were {busiest:.0%} busy and the step took longer than modelled: "
                "part of it is the machine's, not the link's"
            )


def _profile_lines(profile: LinkProfile) -> Iterator[str]:
    for name, link in (("same zone", profile.zone), ("cross-zone", profile.cross_zone)):
        rate = f"{link.bandwidth * 8e-9:.4g} Gbit/s"
        loss = f", loss {link.loss:.2%}" if link.loss else ""
        yield f"{name} {rate}, {link.latency * 1e6:.4g} us one way{loss} a ring edge ({link.source})"
