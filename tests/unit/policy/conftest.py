"""Small vocabulary for the policy tests: YAML in, verdicts out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from stallscope.load.inputs import load_text
from stallscope.model.traffic import Endpoint, PeerEdge, Protocol, Verdict
from stallscope.policy.engine import EngineOptions, PolicySet, compile_policies

#: Every namespace of these tests, with all its labels.
NAMESPACES = {"train": {"team": "ml"}, "other": {"team": "web"}, "kube-system": {}}


@pytest.fixture
def policies() -> Callable[..., PolicySet]:
    """YAML text -> compiled policies; keywords are those of EngineOptions."""

    def build(text: str, cni: str = "generic", **options: Any) -> PolicySet:
        options.setdefault("namespaces", NAMESPACES)
        return compile_policies(load_text({"p.yaml": text}).objects, EngineOptions(cni=cni, **options))

    return build


@pytest.fixture
def pod() -> Callable[..., Endpoint]:
    """A pod: ``pod("a", zone="z")`` in namespace train, or ``pod("other/a")``."""

    def build(name: str, /, *, end: dict[str, Any] | None = None, **labels: str) -> Endpoint:
        namespace, _, bare = name.rpartition("/")
        return Endpoint(name=bare, namespace=namespace or "train", labels=tuple(labels.items()), **(end or {}))

    return build


@pytest.fixture
def ask() -> Callable[..., Verdict]:
    """The verdict of one edge."""

    def judge(
        policy_set: PolicySet, source: Endpoint, destination: Endpoint, port: int = 29500, protocol: Protocol = Protocol.TCP
    ) -> Verdict:
        return policy_set.evaluate(PeerEdge(source=source, destination=destination, port=port, protocol=protocol))

    return judge
