"""Resource arithmetic against hand calculations from the cited Kubernetes sources."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from stallscope.placement.amounts import asked_by, host_ports, is_counted, whole

GI = 1024**3
ANY = "0.0.0.0"  # noqa: S104 - the API's own word for "any address"


def box(requests: dict[str, Any] | None = None, limits: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {"name": "c", "resources": {"requests": requests or {}, "limits": limits or {}}, **more}


def test_containers_add_up() -> None:
    spec = {"containers": [box({"cpu": "1500m", "memory": "1Gi"}), box({"cpu": "1", "nvidia.com/gpu": "4"})]}
    assert asked_by(spec).requests == {"cpu": 2500, "memory": GI, "nvidia.com/gpu": 4}


def test_a_limit_without_a_request_is_the_request() -> None:
    spec = {"containers": [box({"cpu": "1"}, {"cpu": "4", "nvidia.com/gpu": 8})]}
    assert asked_by(spec).requests == {"cpu": 1000, "nvidia.com/gpu": 8}


def test_init_containers_count_by_their_maximum() -> None:
    spec = {"containers": [box({"cpu": "1"})], "initContainers": [box({"cpu": "3"}), box({"cpu": "2", "memory": "1Gi"})]}
    assert asked_by(spec).requests == {"cpu": 3000, "memory": GI}


def test_a_sidecar_adds_to_the_sum_and_to_later_init_containers() -> None:
    # KEP-753: max(sum of containers + sidecars, init + sidecars started before it) = max(1 + 0.5, 2 + 0.5)
    spec = {
        "containers": [box({"cpu": "1"})],
        "initContainers": [box({"cpu": "500m"}, restartPolicy="Always"), box({"cpu": "2"})],
    }
    assert asked_by(spec).requests == {"cpu": 2500}


def test_an_init_container_before_the_sidecar_does_not_pay_for_it() -> None:
    spec = {
        "containers": [box({"cpu": "1"})],
        "initContainers": [box({"cpu": "2"}), box({"cpu": "500m"}, restartPolicy="Always")],
    }
    assert asked_by(spec).requests == {"cpu": 2000}


def test_overhead_comes_on_top() -> None:
    spec = {"containers": [box({"cpu": "1"})], "overhead": {"cpu": "250m", "memory": "120Mi"}}
    assert asked_by(spec).requests == {"cpu": 1250, "memory": 120 * 1024**2}


def test_pod_level_requests_replace_the_sum_of_supported_resources() -> None:
    spec = {
        "containers": [box({"cpu": "1", "nvidia.com/gpu": 1})],
        "resources": {"requests": {"cpu": "6", "nvidia.com/gpu": 9}},
    }
    assert asked_by(spec).requests == {"cpu": 6000, "nvidia.com/gpu": 1}


@pytest.mark.parametrize(("containers", "cpu"), [([box({"cpu": "1"})], 1000), ([box()], 8000)])
def test_pod_level_limits_become_requests_only_where_no_container_asks(containers: list[Any], cpu: int) -> None:
    # defaultPodRequests: with container requests the pod-level request is their sum, else the pod-level limit
    assert asked_by({"containers": containers, "resources": {"limits": {"cpu": "8"}}}).requests == {"cpu": cpu}


def test_zero_requests_and_uncounted_names_are_left_out() -> None:
    assert asked_by({"containers": [box({"cpu": "0", "storage": "1Gi", "hugepages-2Mi": "4Mi"})]}).requests == {
        "hugepages-2Mi": 4 * 1024**2
    }


@pytest.mark.parametrize(("resource", "amount", "expected"), [("cpu", "1/3", 334), ("memory", "1/2", 1), ("x/y", "5/2", 3)])
def test_amounts_round_up(resource: str, amount: str, expected: int) -> None:
    assert whole(resource, Fraction(amount)) == expected


@pytest.mark.parametrize(
    "name", ["nvidia.com/gpu", "hugepages-1Gi", "attachable-volumes-aws-ebs", "memory", "ephemeral-storage"]
)
def test_counted_resources(name: str) -> None:
    assert is_counted(name)


@pytest.mark.parametrize("name", ["storage", "requests.nvidia.com/gpu", "gpu"])
def test_other_names_are_not_counted(name: str) -> None:
    assert not is_counted(name)


def test_unreadable_amounts_are_named_not_guessed() -> None:
    asked = asked_by({"containers": [box({"cpu": "four", "memory": "1Gi"})]})
    assert asked.requests == {"memory": GI}
    assert asked.unreadable == ("resource amount cpu='four'",)


def test_scores_assume_defaults_for_silent_containers() -> None:
    # util.GetNonzeroRequests: 100m and 200 MiB per container without requests
    assert asked_by({"containers": [box(), box({"cpu": "1", "memory": "1Gi"})]}).scoring == (1100, GI + 200 * 1024**2)


def test_host_ports_of_containers_and_sidecars() -> None:
    spec = {
        "containers": [
            {"ports": [{"containerPort": 1, "hostPort": 2, "protocol": "UDP", "hostIP": "10.0.0.1"}, {"containerPort": 3}]}
        ],
        "initContainers": [
            {"restartPolicy": "Always", "ports": [{"containerPort": 4, "hostPort": 4}]},
            {"ports": [{"hostPort": 5}]},
        ],
    }
    assert host_ports(spec) == (("10.0.0.1", "UDP", 2), (ANY, "TCP", 4))


def test_on_the_host_network_container_ports_are_host_ports() -> None:
    spec = {"hostNetwork": True, "containers": [{"ports": [{"containerPort": 29500}]}]}
    assert host_ports(spec) == ((ANY, "TCP", 29500),)
