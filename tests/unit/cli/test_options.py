from __future__ import annotations

import pytest

from stallscope.cli.options import InputOptions, parse_cni, parse_version, split_commas
from stallscope.errors import UsageError
from stallscope.judge.inputs import ClusterFacts


def test_facts() -> None:
    options = InputOptions(cni="cilium@v1.18.7-rc.1", k8s_version="v1.31", cilium_option=("enable-policy=always", "a = b"))
    assert options.facts() == ClusterFacts(
        cni="cilium",
        cni_version=(1, 18, 7),
        kubernetes_version=(1, 31),
        cilium_options=(("enable-policy", "always"), ("a", "b")),
    )
    assert InputOptions().facts() == ClusterFacts()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (InputOptions(cni="weave"), "--cni: unknown network plugin 'weave'"),
        (InputOptions(cni="cilium@new"), "--cni: 'new' is no version"),
        (InputOptions(k8s_version="latest"), "--k8s-version: 'latest' is no version"),
        (InputOptions(cilium_option=("x",)), "--cilium-option: 'x' is not key=value"),
    ],
)
def test_values_that_are_none(options, message) -> None:
    with pytest.raises(UsageError) as caught:
        options.facts()
    assert caught.value.message == message


def test_the_same_input_again() -> None:
    options = InputOptions(paths=("my jobs/", "-"), nodes=("n.yaml",), namespace="train", cni="cilium@1.18")
    assert options.again() == "'my jobs/' - --nodes n.yaml -n train --cni cilium@1.18"
    assert InputOptions(paths=("x" * 90,), nodes=("n",)).again() == "PATH… --nodes n"


def test_parts() -> None:
    assert parse_cni("") == ("", ())
    assert parse_cni("calico") == ("calico", ())
    assert parse_version("1.31.4+k3s1", "--x") == (1, 31, 4)
    assert split_commas(("a, b", "", "c,")) == ("a", "b", "c")
