"""
The admission path: which webhooks the API server must reach before a job, or its pods, can exist.

Source: Kubernetes "Dynamic Admission Control": a webhook whose rules and selectors match is called at its Service's port
(443 unless it says otherwise), through to the target port of the pods; ``failurePolicy`` Fail (the default) rejects the
object when the call fails. Addresses given as ``url`` are outside the cluster and not judged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from stallscope.judge.outside import OutsideEnd, outside_end
from stallscope.judge.services import behind, target_port
from stallscope.model.kube import KubeObject
from stallscope.model.labels import parse_selector
from stallscope.model.source import as_list, as_map, as_str
from stallscope.model.traffic import Flow, FlowKind, Outside, port
from stallscope.model.workload import TrainingJob

CONFIGURATIONS = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")
_NAME_LABEL = "kubernetes.io/metadata.name"
_POD = ("", "pods")
_JOB = ("batch", "jobs")
_JOBSET = ("jobset.x-k8s.io", "jobsets")
#: What the controller of a kind creates on the way to pods; each must be admitted.
_CREATES: Mapping[str, tuple[tuple[str, str], ...]] = {
    "TrainJob": (_JOBSET, _JOB, _POD),
    "JobSet": (_JOB, _POD),
    "RayJob": (("ray.io", "rayclusters"), _POD),
    "RayService": (("ray.io", "rayclusters"), _POD),
    "LeaderWorkerSet": (("apps", "statefulsets"), _POD),
}


class _Hook(NamedTuple):
    """One webhook of a configuration object. `resources` of this job that it is called for."""

    holder: KubeObject
    body: Mapping[str, Any]
    called_for: tuple[str, ...]

    @property
    def blocks(self) -> bool:
        return self.body.get("failurePolicy") != "Ignore"


def admission_flows(
    job: TrainingJob, objects: Sequence[KubeObject], namespaces: Mapping[str, Mapping[str, str]]
) -> Mapping[Flow, OutsideEnd]:
    """
    The webhook flows of `job` and the pods at their end. From the webhook configurations among `objects` where they name
    the job's kind, what it creates, or pods; else the operator's own webhook as the kind assumes it, if the operator is
    among them. A flow is `required` when a failed call rejects the object.
    """
    guessed = [f for f in job.flows if f.kind is FlowKind.WEBHOOK]
    holders = [o for o in objects if o.kind in CONFIGURATIONS and o.group == "admissionregistration.k8s.io"]
    made = [(hook, *pair) for hook in _hooks(job, holders, namespaces) if (pair := _flow(hook, objects)) is not None]
    found = {flow: end for _, flow, end in reversed(made)}
    if guessed and not any(_plural(job.source.kind) in hook.called_for for hook, _, _ in made):
        end = outside_end(Outside.OPERATOR, objects, job)
        if end.endpoint is not None:
            found |= {replace(flow, required=True): end for flow in guessed}
    return found


def _hooks(job: TrainingJob, holders: Iterable[KubeObject], namespaces: Mapping[str, Mapping[str, str]]) -> Iterator[_Hook]:
    wanted = ((job.source.group, _plural(job.source.kind)), *_CREATES.get(job.source.kind, (_POD,)))
    for holder in holders:
        for body in map(as_map, as_list(holder.get("webhooks"))):
            called_for = tuple(
                resource
                for group, resource in wanted
                if _rules_match(body, group, resource) and _selected(body, job, resource)
            )
            if called_for and _namespace_selected(body, job.namespace, namespaces):
                yield _Hook(holder=holder, body=body, called_for=called_for)


def _plural(kind: str) -> str:
    return f"{kind.lower()}s"


def _rules_match(body: Mapping[str, Any], group: str, resource: str) -> bool:
    return any(
        _lists(rule, "apiGroups", group) and _lists(rule, "resources", resource) and _lists(rule, "operations", "CREATE")
        for rule in map(as_map, as_list(body.get("rules")))
    )


def _lists(rule: Mapping[str, Any], key: str, wanted: str) -> bool:
    listed = as_list(rule.get(key))
    return wanted in listed or "*" in listed or (key == "resources" and "*/*" in listed)


def _selected(body: Mapping[str, Any], job: TrainingJob, resource: str) -> bool:
    """``objectSelector`` on the labels of the object itself: the job's own, or those of any of its pods."""
    selector = parse_selector(body.get("objectSelector"))
    if selector is None or not selector.requirements:
        return True
    if resource == _POD[1]:
        return any(selector.matches(pod.labels) for role in job.roles for pod in job.pods_of(role.name)[:1])
    return resource == _plural(job.source.kind) and bool(selector.matches(job.source.labels))


def _namespace_selected(body: Mapping[str, Any], name: str, namespaces: Mapping[str, Mapping[str, str]]) -> bool:
    """``namespaceSelector``; labels nobody stated are not assumed, so such a webhook is left out."""
    selector = parse_selector(body.get("namespaceSelector"))
    if selector is None or not selector.requirements:
        return True
    known = namespaces.get(name)
    if known is None and any(r.key != _NAME_LABEL for r in selector.requirements):
        return False
    return bool(selector.matches({_NAME_LABEL: name, **(known or {})}))


def _flow(hook: _Hook, objects: Sequence[KubeObject]) -> tuple[Flow, OutsideEnd] | None:
    reference = as_map(as_map(hook.body.get("clientConfig")).get("service"))
    name, namespace = as_str(reference.get("name")), as_str(reference.get("namespace"))
    if not name or not namespace:
        return None
    service = next((o for o in objects if o.kind == "Service" and (o.namespace, o.name) == (namespace, name)), None)
    end = behind(service, objects, str(Outside.OPERATOR)) if service is not None else None
    if service is None or end is None or end.endpoint is None:
        return None
    asked = reference.get("port", 443)
    number = target_port(service, asked if isinstance(asked, int) else 443, end.endpoint)
    if number is None:
        return None
    flow = Flow(
        kind=FlowKind.WEBHOOK,
        source=Outside.API_SERVER,
        destination=Outside.OPERATOR,
        ports=(port(number),),
        reason=f"{hook.holder.ref} sends {' and '.join(hook.called_for)} to Service {namespace}/{name}",
        required=hook.blocks,
    )
    return flow, end
