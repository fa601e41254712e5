"""STL308: the ranks find each other by pod DNS names, and no headless Service makes those names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from stallscope.findings import Confidence, Finding, Severity
from stallscope.judge.inputs import Inputs
from stallscope.judge.result import Judgement
from stallscope.model.kube import KubeObject
from stallscope.model.labels import Requirement, Selector
from stallscope.model.source import Location, as_str, as_str_map, dig
from stallscope.model.workload import Role, TrainingJob
from stallscope.rules.base import Report
from stallscope.rules.support.containers import containers, ranked_roles
from stallscope.rules.support.words import label

_REPORT = Report("STL308", "headless-service-missing", Severity.WARNING, fixable=True)
#: Kinds whose user, not a controller, provides the Service.
_OWN_SERVICE = {"StatefulSet": ("spec", "serviceName"), "Job": ("spec", "template", "spec", "subdomain")}


def check(judgement: Judgement) -> Iterable[Finding]:
    for judged in judgement.jobs:
        job = judged.job
        if len(job.pods) < 2 or not job.distributed or job.source.kind not in _OWN_SERVICE:
            continue
        yield from _one(job, judgement.inputs)


def _one(job: TrainingJob, inputs: Inputs) -> Iterator[Finding]:
    route = _OWN_SERVICE[job.source.kind]
    name = as_str(job.source.get(*route))
    if not name:
        if job.source.kind == "StatefulSet":
            yield _nameless(job, job.source.at(*route))
        return
    service = next((o for o in inputs.objects if _is_service(o, name, job.namespace)), None)
    place = job.source.at(*route)
    if service is None:
        yield _absent(job, name, place)
    elif as_str(service.get("spec", "clusterIP")) != "None":
        yield _not_headless(job, service, place)
    elif not _selects(job, service):
        yield _selects_nothing(job, service, place)
    else:
        yield from _unready(job, service)


def _is_service(item: KubeObject, name: str, namespace: str) -> bool:
    return item.kind == "Service" and item.name == name and item.namespace == namespace


def _selects(job: TrainingJob, service: KubeObject) -> bool:
    wanted: Mapping[str, str] = as_str_map(service.get("spec", "selector"))
    selector = Selector(tuple(Requirement(k, "In", (v,)) for k, v in wanted.items()))
    return bool(wanted) and any(selector.matches(p.labels) for p in job.pods)


_SEES = (
    "what you will see: 'cannot be retrieved (gai error: -2 - Name or service not known)' for the peer's name, until the "
    "rendezvous timeout"
)


def _nameless(job: TrainingJob, place: Location) -> Finding:
    return _REPORT.finding(
        f"{job.ref} has no serviceName, so its pods have no DNS names",
        (label(place, "serviceName names the headless Service of the pods", primary=True),),
        subject=job.ref,
        key="no-name",
        confidence=Confidence.DEPENDS,
        notes=(_SEES, "does not matter when the ranks meet through a Service or an address of another kind"),
        help="create a headless Service (clusterIP: None) and name it in serviceName",
        fixable=False,
    )


def _absent(job: TrainingJob, name: str, place: Location) -> Finding:
    return _REPORT.finding(
        f"{job.ref} relies on the headless Service {name}, which is not among the files",
        (label(place, f"no Service {job.namespace}/{name} was read", primary=True),),
        subject=job.ref,
        key="absent",
        severity=Severity.INFO,
        confidence=Confidence.DEPENDS,
        notes=(_SEES, "holds unless the Service already exists in the cluster"),
        help=f"add a Service {name} with clusterIP: None and the pods' labels as selector",
        fixable=False,
    )


def _not_headless(job: TrainingJob, service: KubeObject, place: Location) -> Finding:
    return _REPORT.finding(
        f"{service.ref} is not headless, so the pods of {job.ref} have no names of their own",
        (
            label(service.at("spec", "clusterIP"), "needs clusterIP: None", primary=True),
            label(place, "the pods' names live under this Service"),
        ),
        subject=job.ref,
        key="not-headless",
        notes=(_SEES,),
        help="set clusterIP: None",
        fixable=False,
    )


def _selects_nothing(job: TrainingJob, service: KubeObject, place: Location) -> Finding:
    return _REPORT.finding(
        f"{service.ref} selects no pod of {job.ref}, so their names do not resolve",
        (
            label(service.at("spec", "selector"), "no pod of the job carries these labels", primary=True),
            label(place, "the pods' names live under this Service"),
        ),
        subject=job.ref,
        key="selects-nothing",
        severity=Severity.ERROR,
        notes=(_SEES,),
        help="use labels of the job's pod template in the selector",
        fixable=False,
    )


def _unready(job: TrainingJob, service: KubeObject) -> Iterator[Finding]:
    """Names of pods that are not Ready are only published on request; readiness that needs the rendezvous never comes."""
    if service.get("spec", "publishNotReadyAddresses") is True:
        return
    for role in ranked_roles(job):
        place = _readiness(role)
        if place is None:
            continue
        yield _REPORT.finding(
            f"{service.ref} hides pods of {job.ref} until they are Ready, and {role.name} has a readiness probe",
            (
                label(service.at("spec"), "publishNotReadyAddresses is not set", primary=True),
                label(place, "not Ready, hence without a DNS name, until this succeeds"),
            ),
            subject=job.ref,
            key=f"unready:{role.name}",
            confidence=Confidence.DEPENDS,
            notes=(
                "if the probe succeeds only after the ranks have met, name and readiness wait for each other for ever",
                _SEES,
            ),
            help="set publishNotReadyAddresses: true on the headless Service",
        )
        return


def _readiness(role: Role) -> Location | None:
    return next((c.at("readinessProbe") for c in containers(role) if dig(c.body, "readinessProbe") is not None), None)


RULE = _REPORT.rule(
    check,
    what="An Indexed Job or StatefulSet whose ranks meet by pod name lacks a headless Service, or has one that is not "
    "headless, selects other pods, or hides pods that are not Ready yet.",
    why="Pod names exist in DNS only under a headless Service. Without it every rank looks up a name that never appears.",
    bad="""\
apiVersion: v1
kind: Service
metadata: {name: llm}
spec:
  selector: {app: llm-training}     # the pods carry app: llm
  ports: [{port: 29500}]
""",
    good="""\
apiVersion: v1
kind: Service
metadata: {name: llm}
spec:
  clusterIP: None
  publishNotReadyAddresses: true
  selector: {app: llm}
  ports: [{port: 29500}]
""",
    fix="Give the job a headless Service whose selector matches the pod template and that publishes not-ready addresses.",
    sources=(
        "https://kubernetes.io/docs/concepts/services-networking/dns-pod-service/",
        "https://github.com/sgl-project/sglang/issues/5553",
        "https://github.com/kubeflow/mpi-operator/pull/703",
    ),
)
