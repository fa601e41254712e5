"""Istio: who is in the mesh, mTLS, AuthorizationPolicy, and the path of a connection (istio.io references)."""

from __future__ import annotations

from typing import Any

import pytest

from stallscope.load.inputs import load_text
from stallscope.policy.istio import MeshPod, Path, membership, mesh_facts
from stallscope.policy.istio_mtls import mtls_mode
from stallscope.policy.istio_path import MeshVerdict, mesh_path

MESHED = {"train": {"istio-injection": "enabled"}, "plain": {"team": "x"}, "ambient": {"istio.io/dataplane-mode": "ambient"}}
INJECT = "sidecar.istio.io/inject"


def mesh_pod(namespace: str = "train", **fields: Any) -> MeshPod:
    return MeshPod(namespace=namespace, **fields)


@pytest.mark.parametrize(
    ("pod", "labels", "path"),
    [
        (mesh_pod(), {"istio-injection": "enabled"}, Path.SIDECAR),
        (mesh_pod(), {"istio.io/rev": "stable"}, Path.SIDECAR),
        (mesh_pod(), {"istio-injection": "disabled", "istio.io/rev": "x"}, Path.PLAIN),
        (mesh_pod(), {}, Path.PLAIN),
        (mesh_pod(labels={INJECT: "false"}), {"istio-injection": "enabled"}, Path.PLAIN),
        (mesh_pod(labels={INJECT: "true"}), {}, Path.SIDECAR),
        (mesh_pod(labels={INJECT: "true"}), {"istio-injection": "disabled"}, Path.PLAIN),
        (mesh_pod(labels={"istio.io/rev": "canary"}), {}, Path.SIDECAR),
        (mesh_pod(annotations={INJECT: "false"}), {"istio-injection": "enabled"}, Path.PLAIN),
        (mesh_pod(annotations={INJECT: "true"}), {}, Path.PLAIN),
        (mesh_pod(annotations={INJECT: "false"}, labels={INJECT: "true"}), {"istio-injection": "enabled"}, Path.SIDECAR),
        (mesh_pod(host_network=True), {"istio-injection": "enabled"}, Path.PLAIN),
        (mesh_pod("kube-system"), {"istio-injection": "enabled"}, Path.PLAIN),
        (mesh_pod(), {"istio.io/dataplane-mode": "ambient"}, Path.AMBIENT),
        (mesh_pod(labels={"istio.io/dataplane-mode": "none"}), {"istio.io/dataplane-mode": "ambient"}, Path.PLAIN),
        (mesh_pod(labels={"istio.io/dataplane-mode": "ambient"}), {}, Path.AMBIENT),
    ],
)
def test_membership(pod: MeshPod, labels: dict[str, str], path: Path) -> None:
    assert membership(pod, mesh_facts([], {pod.namespace: labels})).path is path


def test_an_annotation_alone_is_a_weak_opt_out() -> None:
    facts = mesh_facts([], MESHED)
    assert membership(mesh_pod(annotations={INJECT: "false"}), facts).weak
    assert not membership(mesh_pod(labels={INJECT: "false"}), facts).weak


def test_unknown_namespace_labels_are_a_missing_fact_only_where_there_is_a_mesh() -> None:
    objects = load_text(
        {"p.yaml": "apiVersion: security.istio.io/v1\nkind: PeerAuthentication\nmetadata: {name: d}\n"}
    ).objects
    assert membership(mesh_pod("new"), mesh_facts(objects, {})).path is Path.UNKNOWN
    assert membership(mesh_pod("new"), mesh_facts([], {})).path is Path.PLAIN


def peer_auth(namespace: str, spec: str, name: str = "default") -> str:
    return (
        f"apiVersion: security.istio.io/v1\nkind: PeerAuthentication\nmetadata: {{name: {name}, namespace: {namespace}}}\n"
        f"spec: {{{spec}}}\n---\n"
    )


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        ("", "PERMISSIVE"),
        (peer_auth("istio-system", "mtls: {mode: STRICT}"), "STRICT"),
        (peer_auth("istio-system", "mtls: {mode: STRICT}") + peer_auth("train", "mtls: {mode: PERMISSIVE}"), "PERMISSIVE"),
        (peer_auth("istio-system", "mtls: {mode: STRICT}") + peer_auth("train", "mtls: {mode: UNSET}"), "STRICT"),
        (peer_auth("other", "mtls: {mode: STRICT}"), "PERMISSIVE"),
        (peer_auth("train", "selector: {matchLabels: {app: llm}}, mtls: {mode: DISABLE}"), "DISABLE"),
        (peer_auth("train", "selector: {matchLabels: {app: x}}, mtls: {mode: DISABLE}"), "PERMISSIVE"),
        (
            peer_auth(
                "train",
                'selector: {matchLabels: {app: llm}}, mtls: {mode: STRICT}, portLevelMtls: {"29500": {mode: DISABLE}}',
            ),
            "DISABLE",
        ),
        (peer_auth("train", "mtls: {mode: STRICT}") + peer_auth("train", "mtls: {mode: DISABLE}", "b"), "UNCLEAR"),
    ],
)
def test_mtls_mode(text: str, mode: str) -> None:
    assert mtls_mode(load_text({"p.yaml": text}).objects, "train", {"app": "llm"}, 29500).mode == mode


def path(text: str, source: MeshPod, destination: MeshPod, port: int = 40000, **options: bool) -> MeshVerdict:
    return mesh_path(load_text({"p.yaml": text}).objects, mesh_facts([], MESHED), source, destination, port, **options)


STRICT = peer_auth("istio-system", "mtls: {mode: STRICT}")


@pytest.mark.parametrize(
    ("text", "source", "destination", "outcome"),
    [
        ("", mesh_pod("plain"), mesh_pod("plain"), "allowed"),
        ("", mesh_pod(), mesh_pod(), "proxied"),
        ("", mesh_pod(), mesh_pod("plain"), "proxied"),
        (STRICT, mesh_pod("plain"), mesh_pod(), "denied"),
        (STRICT, mesh_pod(), mesh_pod(), "denied"),
        (STRICT, mesh_pod("ambient"), mesh_pod("ambient"), "proxied"),
        (STRICT, mesh_pod("plain"), mesh_pod("ambient"), "denied"),
        (STRICT, mesh_pod(labels={INJECT: "false"}), mesh_pod(labels={INJECT: "false"}), "allowed"),
        (STRICT, mesh_pod(labels={INJECT: "false"}), mesh_pod(), "denied"),
    ],
)
def test_collective_traffic(text: str, source: MeshPod, destination: MeshPod, outcome: str) -> None:
    """Pod address, undeclared port: what NCCL and Gloo use."""
    assert path(text, source, destination).outcome == outcome


def test_strict_names_the_object_and_why() -> None:
    verdict = path(STRICT, mesh_pod(), mesh_pod())
    assert "STRICT" in verdict.reason
    assert verdict.location is not None
    assert verdict.location.span.line == 4
    assert path(STRICT, mesh_pod(), mesh_pod(), by_service=True).outcome == "proxied"


def test_excluded_ports_bypass_the_sidecar() -> None:
    out = {"traffic.sidecar.istio.io/excludeOutboundPorts": "40000"}
    into = {"traffic.sidecar.istio.io/excludeInboundPorts": "40000, 40001"}
    assert path(STRICT, mesh_pod(annotations=out), mesh_pod(annotations=into)).outcome == "allowed"
    assert path(STRICT, mesh_pod(annotations=out), mesh_pod(annotations=into), 40002).outcome == "denied"


def authz(spec: str, namespace: str = "train") -> str:
    return (
        f"apiVersion: security.istio.io/v1\nkind: AuthorizationPolicy\nmetadata: {{name: a, namespace: {namespace}}}\n"
        f"spec: {{{spec}}}\n---\n"
    )


RDZV = 'rules: [{to: [{operation: {ports: ["23456"]}}]}]'


@pytest.mark.parametrize(
    ("spec", "port", "outcome"),
    [
        (RDZV, 23456, "proxied"),
        (RDZV, 40000, "denied"),
        ("", 40000, "denied"),
        ("rules: [{}]", 40000, "proxied"),
        ("action: DENY, rules: [{}]", 40000, "denied"),
        ("action: DENY, " + RDZV, 40000, "proxied"),
        ("selector: {matchLabels: {app: x}}", 40000, "proxied"),
        ("rules: [{from: [{source: {namespaces: [train]}}]}]", 40000, "denied"),
        ("action: DENY, rules: [{from: [{source: {notNamespaces: [train]}}]}]", 40000, "denied"),
        ("rules: [{to: [{operation: {methods: [GET]}}]}]", 40000, "denied"),
        ("action: DENY, rules: [{to: [{operation: {methods: [GET]}}]}]", 40000, "denied"),
        ("action: AUDIT, rules: [{}]", 40000, "proxied"),
        ("action: CUSTOM, provider: {name: p}, rules: [{}]", 40000, "unjudged"),
        ("rules: [{from: [{source: {ipBlocks: [10.0.0.0/8]}}]}]", 40000, "unjudged"),
        ("rules: [{when: [{key: destination.port, values: ['40000']}]}]", 40000, "proxied"),
        ("rules: [{when: [{key: 'request.headers[x]', values: [y]}]}]", 40000, "denied"),
    ],
)
def test_authorization_of_pod_address_traffic(spec: str, port: int, outcome: str) -> None:
    """A sidecar sends it without mTLS, so the source has no namespace and no principal."""
    assert path(authz(spec), mesh_pod(), mesh_pod(labels={"app": "llm"}), port).outcome == outcome


def test_identified_callers_have_names() -> None:
    by_name = authz("rules: [{from: [{source: {principals: ['cluster.local/ns/train/sa/trainer']}}]}]")
    caller = mesh_pod(service_account="trainer")
    assert path(by_name, caller, mesh_pod(), by_service=True).outcome == "proxied"
    assert path(by_name, mesh_pod(), mesh_pod(), by_service=True).outcome == "denied"
    assert (
        path(
            by_name.replace("cluster.local/ns/train/sa/trainer", "*/sa/trainer"), caller, mesh_pod(), by_service=True
        ).outcome
        == "proxied"
    )


def test_only_the_rendezvous_port_allowed_leaves_collectives_refused() -> None:
    """kubeflow/trainer#1634: allowing 23456 only moved the hang."""
    verdict = path(authz(RDZV), mesh_pod(), mesh_pod())
    assert (verdict.outcome, verdict.reason) == ("denied", "no rule of an ALLOW policy admits it")
    assert [r.policy for r in verdict.rules] == ["AuthorizationPolicy train/a"]
