"""The fixes of one line or two: mesh opt-out, shared memory, NCCL's interface, names of pods that are not ready."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from stallscope.errors import PatchRefused
from stallscope.findings import Finding
from stallscope.judge.result import Judgement
from stallscope.model.kube import KubeObject
from stallscope.model.source import as_list, as_str, as_str_map, dig
from stallscope.model.workload import Overlay, Role, TrainingJob
from stallscope.remedy import templates
from stallscope.remedy.model import Plan, Remedy, Unfixed
from stallscope.remedy.ops import Op
from stallscope.remedy.roles import labels_of, present
from stallscope.remedy.workbench import Bench

_SHM = "/dev/shm"  # noqa: S108
#: Mesh -> where its opt-out stands on the pod template, and what it says (istio.io, linkerd.io).
_OPT_OUT = {
    "Istio": ("labels", "sidecar.istio.io/inject", "false"),
    "Istio ambient": ("labels", "istio.io/dataplane-mode", "none"),
    "Linkerd": ("annotations", "linkerd.io/inject", "disabled"),
}


def plan_small(bench: Bench, job: TrainingJob, judgement: Judgement, findings: list[Finding]) -> Plan:
    """One remedy a finding that has a small fix."""
    plan = Plan()
    for finding in findings:
        planner = _PLANNERS.get(finding.rule)
        if planner is None:
            continue
        attempt = bench.fork()
        before = len(attempt.done)
        try:
            title = planner(attempt, job, judgement, finding)
        except PatchRefused as refused:
            plan += Plan(unfixed=(Unfixed(job=job.ref, rules=(finding.rule,), reason=refused.message, hint=finding.help),))
            continue
        made = tuple(attempt.done[before:])
        if title and made:
            bench.adopt(attempt)
            plan += Plan((_remedy(job, finding, title, made),))
    return plan


def _remedy(job: TrainingJob, finding: Finding, title: str, made: tuple[Op, ...]) -> Remedy:
    assumptions = _ASSUMED.get(finding.rule, ())
    if finding.rule == "STL301" and "eth0" not in title:
        assumptions = ()
    slug = _SLUGS[finding.rule]
    return Remedy(slug=slug, title=title, job=job.ref, rules=(finding.rule,), ops=made, assumptions=assumptions)


def _mesh(bench: Bench, job: TrainingJob, _: Judgement, finding: Finding) -> str:
    found = _OPT_OUT.get(finding.key)
    if found is None:
        return ""
    section, key, value = found
    for role in present(job):
        if not role.template.patchable and role.template.overlay is None:
            continue
        now = (role.template.labels if section == "labels" else role.template.annotations).get(key)
        if now is None:
            templates.metadata_set(bench, role, section, {key: value})
        elif now != value:
            bench.replace(role.template.source, (*role.template.route, "metadata", section, key), value)
    return f"every pod template opts out of {finding.key} ({section[:-1]} {key}: {value})"


def _shm(bench: Bench, job: TrainingJob, _: Judgement, finding: Finding) -> str:
    if not finding.fixable:
        return ""
    role, name = _role_and_rest(job, finding.key)
    containers = as_list(role.template.spec.get("containers"))
    index = next((i for i, c in enumerate(containers) if dig(c, "name") == name), None)
    if index is None:
        return ""
    volume = _memory_volume(role)
    added = None if volume else {"name": _free_volume(role), "emptyDir": {"medium": "Memory"}}
    mount = {"name": volume or _free_volume(role), "mountPath": _SHM}
    if role.template.overlay is not None:
        _shm_by_overlay(bench, role.template.overlay, name, added, mount)
    else:
        if added:
            templates.spec_append(bench, role, ("volumes",), added)
        templates.spec_append(bench, role, ("containers", index, "volumeMounts"), mount)
    return f"a memory volume at {_SHM} for {name} of {role.name}"


def _shm_by_overlay(
    bench: Bench, overlay: Overlay, container: str, volume: Mapping[str, Any] | None, mount: Mapping[str, str]
) -> None:
    """Volumes and containers merge by name there (Kubeflow Trainer, trainjob_types.go PodSpecPatch, ContainerPatch)."""
    obj, base = templates.open_overlay(bench, overlay)
    if volume:
        bench.append(obj, (*base, "volumes"), volume, by=("name",))
    index = bench.append(obj, (*base, "containers"), {"name": container}, by=("name",))
    bench.append(obj, (*base, "containers", index, "volumeMounts"), mount)


def _free_volume(role: Role) -> str:
    return "dshm" if "dshm" not in _volumes(role) else "stallscope-shm"


def _volumes(role: Role) -> list[str]:
    return [as_str(dig(v, "name")) for v in as_list(role.template.spec.get("volumes"))]


def _memory_volume(role: Role) -> str | None:
    volumes = as_list(role.template.spec.get("volumes"))
    return next((as_str(dig(v, "name")) for v in volumes if dig(v, "emptyDir", "medium") == "Memory"), None)


def _interface(bench: Bench, job: TrainingJob, _: Judgement, finding: Finding) -> str:
    role, name = _role_and_rest(job, finding.key)
    changed = []
    for c, container in enumerate(as_list(role.template.spec.get("containers"))):
        for e, entry in enumerate(as_list(dig(container, "env"))):
            old = dig(entry, "value")
            place = role.template.at("spec", "containers", c, "env", e, "value")
            if dig(entry, "name") == name and isinstance(old, str) and finding.primary == place:
                new = _interface_value(name, old)
                templates.spec_replace(bench, role, ("containers", c, "env", e, "value"), new)
                changed.append(new)
    return f"{name}={changed[0]} in {role.name}" if changed else ""


def _interface_value(name: str, old: str) -> str:
    """An exclusion gets loopback back (NCCL's own default excludes it); anything else becomes the pod's interface."""
    if old.startswith("^") and name.startswith("NCCL"):
        return "^lo," + old[1:]
    return "eth0"


def _service(bench: Bench, job: TrainingJob, judgement: Judgement, finding: Finding) -> str:
    """The headless Service of the pods' names: unready pods, a selector that misses them, a cluster IP."""
    kind = finding.key.partition(":")[0]
    route = {"unready": ("spec",), "selects-nothing": ("spec", "selector"), "not-headless": ("spec", "clusterIP")}.get(kind)
    service = next((o for o in _services(judgement, job) if route and o.at(*route) == finding.primary), None)
    if service is None:
        return ""
    if kind == "unready":
        bench.set(service, ("spec", "publishNotReadyAddresses"), True)
        return f"{service.ref} publishes the names of pods that are not ready"
    if kind == "not-headless":
        bench.set(service, ("spec", "clusterIP"), "None")
        return f"{service.ref} is headless"
    return _selector(bench, job, service)


def _selector(bench: Bench, job: TrainingJob, service: KubeObject) -> str:
    """Values replaced by those that all pods of the job carry under the same keys."""
    roles = present(job)
    for key, value in as_str_map(service.get("spec", "selector")).items():
        carried = {labels_of(job, r).get(key) for r in roles}
        wanted = next(iter(carried)) if len(carried) == 1 else None
        if wanted is None:
            raise PatchRefused(f"the pods of {job.ref} carry no label {key}")
        if wanted != value:
            bench.replace(service, ("spec", "selector", key), wanted)
    return f"{service.ref} selects the pods of {job.name}"


def _services(judgement: Judgement, job: TrainingJob) -> Iterator[KubeObject]:
    return (o for o in judgement.inputs.objects if o.kind == "Service" and o.namespace == job.namespace)


def _role_and_rest(job: TrainingJob, key: str) -> tuple[Role, str]:
    role, _, rest = key.partition(":")
    try:
        return job.role(role), rest
    except KeyError as error:
        raise PatchRefused(f"{job.ref} has no role {role}") from error


_PLANNERS: Mapping[str, Callable[[Bench, TrainingJob, Judgement, Finding], str]] = {
    "STL206": _mesh,
    "STL301": _interface,
    "STL302": _shm,
    "STL308": _service,
}
_SLUGS = {
    "STL206": "mesh-opt-out",
    "STL301": "nccl-interface",
    "STL302": "shared-memory",
    "STL308": "headless-service",
}
_ASSUMED: Mapping[str, tuple[str, ...]] = {
    "STL301": ("the pods' interface is eth0, as on nearly every CNI",),
    "STL302": ("what is written to /dev/shm counts against the container's memory limit",),
}
