"""The admission path: which webhooks a job needs, and at which port of which pods (Kubernetes, dynamic admission)."""

from __future__ import annotations

import pytest

from stallscope.analysis import analyse
from stallscope.findings import Finding
from stallscope.judge.outside import outside_end
from stallscope.load.inputs import load_text
from stallscope.model.traffic import Outside

JOB = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: llm, namespace: train, labels: {queue: a}}
spec:
  pytorchReplicaSpecs:
    Master: {replicas: 1, template: {metadata: {labels: {app: llm}}, spec: {containers: [{name: pytorch, image: x}]}}}
    Worker: {replicas: 3, template: {metadata: {labels: {app: llm}}, spec: {containers: [{name: pytorch, image: x}]}}}
"""
HOOK = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: checks}
webhooks:
- name: v.checks.example
  clientConfig: {service: {name: checks, namespace: platform, path: /validate}}
  rules: [{apiGroups: [GROUP], apiVersions: [v1], operations: [CREATE], resources: [RESOURCE]}]
"""
SERVICE = """\
apiVersion: v1
kind: Service
metadata: {name: checks, namespace: platform}
spec: {selector: {app: checks}, ports: [{port: 443, targetPort: hook}]}
"""
WORKLOAD = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: gatekeeper-of-jobs, namespace: platform}
spec:
  template:
    metadata: {labels: {app: checks, tier: platform}}
    spec: {containers: [{name: c, image: x, ports: [{name: hook, containerPort: 8443}]}]}
"""
DENY = """\
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: closed, namespace: platform}
spec:
  podSelector: {matchLabels: {tier: platform}}
  ingress:
  - from: [{namespaceSelector: {}}]
    ports: [{port: 8443}]
"""


def hook(group: str = "kubeflow.org", resource: str = "pytorchjobs", more: str = "") -> str:
    return HOOK.replace("GROUP", repr(group)).replace("RESOURCE", repr(resource)) + more


def findings(*documents: str, rule: str = "STL214") -> list[Finding]:
    found = analyse(load_text({f"{i}.yaml": text for i, text in enumerate((JOB, *documents))})).findings
    return [f for f in found if f.rule == rule]


def test_the_port_and_pods_are_those_behind_the_service() -> None:
    (found,) = findings(hook(), SERVICE, WORKLOAD, DENY)
    assert "on TCP 8443" in found.message, "the Service's named target port, not a guess"
    assert "NetworkPolicy platform/closed" in found.message
    assert str(found.severity) == "error"
    assert (
        findings(hook(), SERVICE, WORKLOAD, DENY.replace("  - from: [{namespaceSelector: {}}]\n    ports", "  - ports"))
        == []
    )


@pytest.mark.parametrize(
    ("group", "resource", "more", "needed"),
    [
        ("kubeflow.org", "pytorchjobs", "", True),
        ("*", "*", "", True),
        ("", "pods", "", True),  # no pod without it
        ("kubeflow.org", "tfjobs", "", False),
        ("ray.io", "pytorchjobs", "", False),
        ("kubeflow.org", "pytorchjobs", "  objectSelector: {matchLabels: {queue: a}}\n", True),
        ("kubeflow.org", "pytorchjobs", "  objectSelector: {matchLabels: {queue: b}}\n", False),
        ("", "pods", "  objectSelector: {matchLabels: {app: llm}}\n", True),
        ("kubeflow.org", "pytorchjobs", "  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: train}}\n", True),
        ("kubeflow.org", "pytorchjobs", "  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: x}}\n", False),
        ("kubeflow.org", "pytorchjobs", "  namespaceSelector: {matchLabels: {team: nlp}}\n", False),  # nobody states labels
    ],
)
def test_which_webhooks_a_job_needs(group: str, resource: str, more: str, needed: bool) -> None:
    assert bool(findings(hook(group, resource, more), SERVICE, WORKLOAD, DENY)) is needed


def test_a_webhook_that_may_fail_is_a_warning() -> None:
    (found,) = findings(hook(more="  failurePolicy: Ignore\n"), SERVICE, WORKLOAD, DENY)
    assert str(found.severity) == "warning"


def test_without_its_workload_the_selectors_labels_are_what_is_known() -> None:
    number = SERVICE.replace("targetPort: hook", "targetPort: 8443")
    assert findings(hook(), number, DENY) == [], "whether the pods have tier=platform is not known, so nothing denies them"
    (found,) = findings(hook(), number, DENY.replace("tier: platform", "app: checks"))
    assert "TCP 8443" in found.message


@pytest.mark.parametrize(
    ("name", "taken"),
    [("training-operator", True), ("kubeflow-mpi-operator", True), ("gpu-operator", False), ("prometheus-operator", False)],
)
def test_without_configuration_the_operator_of_the_kind_is_known_by_name_only(name: str, taken: bool) -> None:
    operator = WORKLOAD.replace("gatekeeper-of-jobs", name)
    found = findings(operator, DENY)
    assert bool(found) is taken
    if taken:
        assert "on TCP 9443" in found[0].message, "the operator's default, which the policy does not open"


PROMETHEUS = """\
apiVersion: monitoring.coreos.com/v1
kind: Prometheus
metadata: {name: k8s, namespace: monitoring}
spec: {serviceAccountName: prom}
"""


def test_prometheus_is_the_operators_object_before_any_name() -> None:
    operator = WORKLOAD.replace("gatekeeper-of-jobs", "prometheus-operator").replace("namespace: platform", "namespace: m")
    objects = load_text({"a.yaml": operator, "b.yaml": PROMETHEUS}).objects
    end = outside_end(Outside.PROMETHEUS, objects).endpoint
    assert end is not None
    assert (end.namespace, end.service_account) == ("monitoring", "prom")
    assert dict(end.labels)["app.kubernetes.io/name"] == "prometheus"
    assert outside_end(Outside.PROMETHEUS, load_text({"a.yaml": operator}).objects).endpoint is None


def test_a_denied_scrape_names_the_policy() -> None:
    scraped = JOB.replace("image: x}", "image: x, ports: [{name: metrics, containerPort: 9400}]}")
    closed = (
        "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: own, namespace: train}\n"
        "spec: {podSelector: {}, ingress: [{from: [{podSelector: {}}]}]}\n"
    )
    found = analyse(load_text({"j.yaml": scraped, "p.yaml": PROMETHEUS, "n.yaml": closed})).findings
    (denied,) = [f for f in found if f.rule == "STL403"]
    assert "NetworkPolicy train/own" in denied.message
    assert (denied.primary.file, denied.primary.span.line) == ("n.yaml", 4)
