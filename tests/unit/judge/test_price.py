"""The incident's figures: about 40 % busy when split and 85 % when co-located, from the stated link classes."""

from __future__ import annotations

import pytest

from stallscope.collective.cost import Algorithm
from stallscope.collective.links import EGRESS_PRICES
from stallscope.judge.price import PriceFacts, price
from stallscope.judge.witness import Witness
from stallscope.model.kube import from_body
from stallscope.model.workload import Pod, PodTemplate, Role, RoleKind, TrainingJob

BODY = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "llm", "namespace": "train"}}


def job(ranks: int, annotations: dict[str, str] | None = None) -> TrainingJob:
    source = from_body({**BODY, "metadata": {**BODY["metadata"], "annotations": annotations or {}}})
    template = PodTemplate(source=source, route=())
    pods = tuple(
        Pod(name=f"llm-worker-{i}", namespace="train", role="Worker", index=i, labels={}, rank=i) for i in range(ranks)
    )
    role = Role(name="Worker", kind=RoleKind.WORKER, replicas=ranks, template=template)
    return TrainingJob(kind="PyTorchJob", name="llm", namespace="train", source=source, roles=(role,), pods=pods)


def placed(zones: str) -> Witness:
    return Witness(
        nodes={f"llm-worker-{i}": f"n{i}" for i in range(len(zones))}, zones={f"n{i}": z for i, z in enumerate(zones)}
    )


def test_the_incident_moves_from_about_85_to_about_40_percent():
    found = price(job(4), placed("abab"), PriceFacts())
    assert found is not None
    # 7B parameters, 65,536 tokens a GPU at 40 % of 312 TFLOP/s: 6 x 7e9 x 65,536 / 124.8e12 = 22.06 s of compute.
    # Ring of 4: 6 x 14 GB / 4 = 21 GB over each edge: 4.2 s at 40 Gbit/s, 33.6 s at 5 Gbit/s.
    assert found.together.busy_share == pytest.approx(22.06 / (22.06 + 4.2), abs=0.005)
    assert found.split.busy_share == pytest.approx(22.06 / (22.06 + 33.6), abs=0.005)
    assert 0.30 <= found.throughput_loss <= 0.60
    assert found.interleaved


def test_the_bill_is_bytes_per_hour_times_the_stated_price():
    facts = PriceFacts(gradient_bytes=8e9, compute_seconds=1.0, egress=EGRESS_PRICES["aws"])
    found = price(job(4), placed("aabb"), facts)
    assert found is not None
    # 2 crossing edges x 2(3)/4 x 8 GB = 24 GB a step.
    assert found.split.cross_zone_bytes == pytest.approx(24e9)
    steps_per_hour = 3600 / found.split.step_seconds
    assert found.dollars_per_hour == pytest.approx(24 * steps_per_hour * 0.02)
    assert price(job(4), placed("aabb"), PriceFacts()).dollars_per_hour is None


def test_what_is_stated_wins_and_what_is_assumed_says_so():
    assumed = price(job(2), placed("ab"), PriceFacts())
    assert any("assumed: 7B" in line for line in assumed.inputs)
    stated = price(
        job(2, {"stallscope.dev/gradient-bytes": "2GB", "stallscope.dev/compute-ms": "300"}), placed("ab"), PriceFacts()
    )
    assert stated.inputs[0] == "gradients 2 GB a step (stated)"
    assert stated.together.step_seconds == pytest.approx(0.3 + 2 * (2e9 / 2 / 5e9 + 60e-6))


def test_pending_ranks_have_no_price():
    assert (
        price(job(2), Witness(nodes={"llm-worker-0": "n0", "llm-worker-1": None}, zones={"n0": "a"}), PriceFacts()) is None
    )
    assert price(job(2), None, PriceFacts()) is None


def test_a_stated_model_size_gives_two_bytes_a_parameter():
    found = price(job(2, {"stallscope.dev/parameters": "1.5B"}), placed("ab"), PriceFacts())
    assert found.inputs[0] == "gradients 3 GB a step (1.5e+09 parameters in bf16, stated)"


def test_a_tree_pays_latency_by_depth_and_bytes_once():
    facts = PriceFacts(gradient_bytes=8e9, compute_seconds=1.0, algorithm=Algorithm.TREE)
    found = price(job(8), placed("aaaabbbb"), facts)
    # 2 passes x 3 levels x 500 us, and half of S in each tree, both ways: 8 GB at 625 MB/s.
    assert found.split.communication_seconds == pytest.approx(6 * 500e-6 + 8e9 / 625e6)
    assert any(line.startswith("tree all-reduce") for line in found.inputs)
