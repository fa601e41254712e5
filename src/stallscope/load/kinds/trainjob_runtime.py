"""From a TrainJob and its runtime to the JobSet the Trainer makes (trainer v2.3 pkg/runtime/core, plugins/jobset)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from stallscope.judge.inputs import ProblemKind
from stallscope.load.kinds.builtin_runtimes import ANCESTOR, RUNTIMES
from stallscope.load.kinds.context import Context, count
from stallscope.load.kinds.jobset import ReplicatedJob, Shape
from stallscope.load.kinds.trainjob_patch import merge, overlay_for, patches_for
from stallscope.model.kube import KubeObject
from stallscope.model.source import Route, as_list, as_map, as_str, as_str_map, dig
from stallscope.model.workload import PodTemplate

GROUP = "trainer.kubeflow.org"


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """A training runtime: `source` is the object of the files, ``None`` when it is built into Trainer or not known."""

    name: str
    body: Mapping[str, Any]
    source: KubeObject | None = None
    known: bool = True

    @property
    def policy(self) -> Mapping[str, Any]:
        return as_map(dig(self.body, "spec", "mlPolicy"))

    @property
    def framework(self) -> str:
        """The policy source: ``torch``, ``mpi``, ``jax``, ``xgboost``, ``flux``; empty for plain runtimes."""
        return next((f for f in ("torch", "mpi", "jax", "xgboost", "flux") if self.policy.get(f) is not None), "")

    @property
    def launcher_is_node(self) -> bool:
        return dig(self.policy, "mpi", "runLauncherAsNode") is True


def find_runtime(ctx: Context, obj: KubeObject) -> Runtime | None:
    """
    The runtime of ``spec.runtimeRef``: from the files, else built in by name, else a lone ``node`` job (then `known` is
    false and one problem says what to pass along). ``None`` when the reference has no name.
    """
    name = as_str(obj.get("spec", "runtimeRef", "name"))
    kind = as_str(obj.get("spec", "runtimeRef", "kind"), "ClusterTrainingRuntime")
    if not name:
        ctx.problem(ProblemKind.INVALID, obj, ("spec", "runtimeRef", "name"), "spec.runtimeRef.name is missing")
        return None
    found = ctx.find(GROUP, kind, name, obj.namespace if kind == "TrainingRuntime" else None)
    if found is not None:
        return Runtime(name=name, body=found.body, source=found)
    if kind == "ClusterTrainingRuntime" and name in RUNTIMES:
        return Runtime(name=name, body=RUNTIMES[name])
    ctx.problem(
        ProblemKind.UNSUPPORTED,
        obj,
        ("spec", "runtimeRef", "name"),
        f"{kind} {name} is not among the files and is not one that Trainer installs",
        f"pass the file that defines {kind} {name} too",
    )
    return Runtime(name=name, body=_LONE_NODE, known=False)


_LONE_NODE: Mapping[str, Any] = {
    "spec": {
        "template": {
            "spec": {
                "replicatedJobs": [
                    {
                        "name": "node",
                        "template": {
                            "metadata": {"labels": {ANCESTOR: "trainer"}},
                            "spec": {"template": {"spec": {"containers": [{"name": "node"}]}}},
                        },
                    }
                ]
            }
        }
    }
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One replicated job after merging: the job, its step (``trainer``, ``dataset-initializer``, …) and its node count."""

    job: ReplicatedJob
    step: str


def steps_of(ctx: Context, obj: KubeObject, runtime: Runtime) -> tuple[Step, ...] | None:
    """Every replicated job with overrides and trainer fields applied; ``None`` after reporting why not."""
    base: Route = ("spec", "template", "spec", "replicatedJobs")
    holder = runtime.source or obj
    items = as_list(dig(runtime.body, *base))
    steps: list[Step] = []
    for index, item in enumerate(items):
        name = as_str(dig(item, "name"))
        if not name or not isinstance(item, Mapping):
            continue
        step = as_str(dig(item, "template", "metadata", "labels", ANCESTOR))
        numbers = _numbers(ctx, obj, runtime, holder, (*base, index), name, step)
        if numbers is None:
            return None
        replicas, nodes = numbers
        in_trainer = step == "trainer" or (runtime.launcher_is_node and name == "node")
        job = ReplicatedJob(
            name=name,
            replicas=replicas,
            parallelism=nodes,
            template=_template(obj, runtime, (*base, index), item, name, step if not in_trainer else "trainer"),
            group=as_str(item.get("groupName"), "default"),
            depends_on=tuple((as_str(dig(d, "name")), as_str(dig(d, "status"))) for d in as_list(item.get("dependsOn"))),
            replicas_route=("spec", "trainer", "numNodes"),
        )
        steps.append(Step(job=job, step=step))
    if not steps:
        ctx.problem(ProblemKind.INVALID, holder, base, f"runtime {runtime.name} has no replicated jobs")
        return None
    return tuple(steps)


def _numbers(
    ctx: Context,
    obj: KubeObject,
    runtime: Runtime,
    holder: KubeObject,
    route: Route,
    name: str,
    step: str,
) -> tuple[int, int] | None:
    """
    Replicas and pods of a replicated job: pods are the template's parallelism, or mlPolicy.numNodes (1) for the trainer
    step; spec.trainer.numNodes replaces it, and of an MPI job's nodes the launcher is one when it runs as a node.
    """
    asked = count(ctx, obj, ("spec", "trainer", "numNodes"), default=-1)
    if asked is None:
        return None
    if runtime.source is not None:
        nodes = count(ctx, holder, (*route, "template", "spec", "parallelism"), default=1)
        policy = count(ctx, holder, ("spec", "mlPolicy", "numNodes"), default=1)
        replicas = count(ctx, holder, (*route, "replicas"), default=1)
    else:
        nodes, policy, replicas = 1, 1, 1
    if nodes is None or policy is None or replicas is None:
        return None
    nodes = max(nodes, 1)
    if step == "trainer" and runtime.policy:
        nodes = max(policy, 1)
    if runtime.framework == "mpi":
        if asked >= 0 and name == "node":
            nodes = max(asked - 1, 1) if runtime.launcher_is_node else asked
    elif asked >= 0 and step == "trainer":
        nodes = asked
    return (1 if step else replicas), nodes


def _template(obj: KubeObject, runtime: Runtime, route: Route, item: Mapping[str, Any], name: str, step: str) -> PodTemplate:
    pod = as_map(dig(item, "template", "spec", "template"))
    labels, annotations = as_str_map(dig(pod, "metadata", "labels")), as_str_map(dig(pod, "metadata", "annotations"))
    spec: Mapping[str, Any] = as_map(pod.get("spec"))
    sources: dict[str, tuple[KubeObject, Route]] = {}
    for patch in patches_for(obj, name):
        labels, annotations = {**labels, **patch.labels}, {**annotations, **patch.annotations}
        spec = merge(spec, patch.spec)
        sources |= {key: (obj, (*patch.route, key)) for key in patch.spec}
    trainer = as_map(obj.get("spec", "trainer"))
    if step == "trainer" and trainer:
        whole = as_str(dig(item, "template", "metadata", "labels", ANCESTOR)) == "trainer"
        changed = _with_trainer(spec, trainer, whole=whole)
        if changed is not spec:
            spec = changed
            sources["containers"] = (obj, ("spec", "trainer"))
    if runtime.source is not None:
        source, where, reason = runtime.source, (*route, "template", "spec", "template"), ""
    else:
        source, where = obj, ("spec", "runtimeRef")
        reason = f"runtime {runtime.name} is built into Trainer" if runtime.known else f"runtime {runtime.name} is not here"
    return PodTemplate(
        labels=labels,
        annotations=annotations,
        spec=spec,
        source=source,
        route=where,
        spec_sources=sources,
        patchable=runtime.source is not None,
        why_not=reason,
        overlay=overlay_for(obj, name),
    )


def _with_trainer(spec: Mapping[str, Any], trainer: Mapping[str, Any], *, whole: bool) -> Mapping[str, Any]:
    """
    The container ``node`` with the TrainJob's fields: env and resources always, image, command and args only in the
    trainer step itself (`whole`; builder.go Trainer, newRuntimeInfo).
    """
    containers = list(as_list(spec.get("containers")))
    at = next((i for i, c in enumerate(containers) if dig(c, "name") == "node"), None)
    if at is None:
        return spec
    keys = ("image", "command", "args") if whole else ()
    change: dict[str, Any] = {k: trainer[k] for k in keys if trainer.get(k) is not None}
    if isinstance(trainer.get("env"), list):
        change["env"] = trainer["env"]
    if isinstance(trainer.get("resourcesPerNode"), Mapping):
        change["resources"] = trainer["resourcesPerNode"]
    if not change:
        return spec
    containers[at] = merge(containers[at], change)
    return {**spec, "containers": containers}


def shape_of(obj: KubeObject, runtime: Runtime, steps: tuple[Step, ...]) -> Shape:
    """The JobSet of the TrainJob: same name and namespace, network of the runtime's template."""
    network = as_map(dig(runtime.body, "spec", "template", "spec", "network"))
    hostnames = network.get("enableDNSHostnames") is not False
    return Shape(
        name=obj.name,
        namespace=obj.namespace,
        jobs=tuple(replace(s.job) for s in steps),
        subdomain=(as_str(network.get("subdomain")) or obj.name) if hostnames else "",
        publish_not_ready=network.get("publishNotReadyAddresses") is not False,
        in_order=dig(runtime.body, "spec", "template", "spec", "startupPolicy", "startupPolicyOrder") == "InOrder",
    )
