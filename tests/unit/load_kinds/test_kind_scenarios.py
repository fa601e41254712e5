"""
One scenario a folder of tests/scenarios/kinds: `input.yaml`, and `expected.yaml` worked out by hand from the table of
placement.md §1 (each says which row). Only what a scenario names is compared; `flows`, `services`, `labels`, `roles`,
`extra` and `problems` are compared whole.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stallscope.judge.inputs import Problem
from stallscope.load.kinds import expand
from stallscope.load.stream import parse_stream
from stallscope.model.kube import KubeObject, from_body
from stallscope.model.traffic import Flow
from stallscope.model.workload import Gang, JobService, Rendezvous, Role, TrainingJob

ROOT = Path(__file__).parents[2] / "scenarios" / "kinds"
SCENARIOS = sorted(p.parent.name for p in ROOT.glob("*/expected.yaml"))


def read(path: Path) -> list[Any]:
    documents, problems = parse_stream(path.read_text(encoding="utf-8"), file=path.name)
    assert not problems, problems
    return [d.value for d in documents]


def objects(path: Path) -> list[KubeObject]:
    return [from_body(body, file=path.name, document=i) for i, body in enumerate(read(path))]


def role_line(role: Role) -> str:
    return f"{role.name} {role.kind} x{role.replicas} ranks {role.ranks_per_pod} step {role.creation_order}"


def flow_line(flow: Flow) -> str:
    at = f"[{flow.destination_index}]" if flow.destination_index is not None else ""
    ports = ", ".join(map(str, flow.ports))
    any_port, optional = " any" if flow.any_port else "", "" if flow.required else " optional"
    return f"{flow.kind} {flow.source} -> {flow.destination}{at}{any_port} {ports}{optional}"


def meeting_line(meeting: Rendezvous | None) -> str | None:
    if meeting is None:
        return None
    where = f"{meeting.role}[{meeting.index}]" if meeting.role else "outside"
    return f"{meeting.address}:{meeting.port} {where}"


def service_line(service: JobService) -> str:
    parts = [f"{len(service.selector)} labels", "headless" if service.headless else "cluster IP"]
    return ", ".join([*parts, " ".join(map(str, service.ports))] if service.ports else parts)


def gang_line(gang: Gang | None) -> str | None:
    if gang is None:
        return None
    least = f" min {gang.min_count}" if gang.min_count is not None else ""
    return f"{gang.system}{least}{f' {gang.mode} {gang.topology_key}' if gang.topology_key else ''}"


def check_pods(job: TrainingJob, wanted: dict[str, Any]) -> None:
    pods = {p.name: p for p in job.pods}
    assert len(pods) == len(job.pods), "pod names must be distinct"
    for name, facts in wanted.items():
        pod = pods[name]
        if "rank" in facts:
            assert pod.rank == facts["rank"], name
        if "labels" in facts:
            assert dict(pod.labels) == facts["labels"], name
        if "hosts" in facts:
            assert list(pod.host_names) == facts["hosts"], name
        assert facts.get("has", {}).items() <= pod.labels.items(), name
        assert not set(facts.get("lacks", [])) & set(pod.labels), name


def check_job(job: TrainingJob, wanted: dict[str, Any]) -> None:
    assert job.distributed is wanted.get("distributed", True), wanted["ref"]
    assert job.copies == wanted.get("copies", 1)
    exact = {
        "world": lambda: job.world_size,
        "group": lambda: dict(job.group_labels),
        "rendezvous": lambda: meeting_line(job.rendezvous),
        "roles": lambda: [role_line(r) for r in job.roles],
        "services": lambda: {s.name: service_line(s) for s in job.services},
        "gang": lambda: gang_line(job.gang),
        "scheduler": lambda: job.scheduler_name,
        "extra": lambda: [f"{e.body['kind']} {e.body['metadata']['name']}" for e in job.extra_objects],
    }
    for key, value in exact.items():
        if key in wanted:
            assert value() == wanted[key], f"{wanted['ref']}: {key}"
    if "flows" in wanted:
        assert sorted(map(flow_line, job.flows)) == sorted(wanted["flows"]), wanted["ref"]
    if wanted.get("pods") == {}:
        assert job.pods == ()
    check_pods(job, wanted.get("pods", {}))
    for role, parts in wanted.get("spec", {}).items():
        spec = job.role(role).template.spec
        assert {k: spec[k] for k in parts} == parts, role
    for key in ("notes", "unsupported"):
        for text in wanted.get(key, []):
            assert any(text in line for line in getattr(job, key)), (key, text, getattr(job, key))
    if "place" in wanted:
        line, prefix = wanted["place"]
        assert (job.source.at("spec").span.line, list(job.source.prefix)) == (line, prefix)


def check_problems(found: tuple[Problem, ...], wanted: list[str]) -> None:
    assert len(found) == len(wanted), [p.message for p in found]
    for problem, text in zip(found, wanted, strict=True):
        message, _, line = text.partition(" @")
        assert f"{problem.kind} {problem.message}".startswith(message)
        assert not line or problem.location.span.line == int(line), (text, problem.location)
        assert "\n" not in problem.message


@pytest.mark.parametrize("name", SCENARIOS)
def test_scenario(name: str) -> None:
    (expected,) = read(ROOT / name / "expected.yaml")
    jobs, problems = expand(objects(ROOT / name / "input.yaml"))
    wanted = expected["jobs"] or []
    assert [j.ref for j in jobs] == [w["ref"] for w in wanted]
    for job, facts in zip(jobs, wanted, strict=True):
        check_job(job, facts)
    check_problems(problems, expected.get("problems", []))


def test_every_kind_of_the_registry_has_a_scenario() -> None:
    from stallscope.load.kinds.registry import KINDS

    seen = {(o.group, o.kind) for name in SCENARIOS for o in objects(ROOT / name / "input.yaml")}
    assert set(KINDS) <= seen


def test_every_place_of_the_registry_holds_a_function() -> None:
    from stallscope.load.kinds.registry import KINDS, WRAPPERS, expander_of, opener_of

    assert all(callable(expander_of(key)) for key in KINDS)
    assert all(callable(opener_of(key)) for key in WRAPPERS)
    assert expander_of(("", "Pod")) is opener_of(("", "Pod")) is None
