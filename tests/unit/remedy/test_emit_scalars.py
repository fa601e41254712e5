"""What we write must be read as meant, by YAML 1.1, by Kubernetes' rules, and by JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from stallscope.load.stream import parse_stream
from stallscope.remedy import emit
from stallscope.remedy.emit import Style


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("zone-a", "zone-a"),
        ("topology.kubernetes.io/zone", "topology.kubernetes.io/zone"),
        ("/dev/shm", "/dev/shm"),
        ("yes", '"yes"'),
        ("Off", '"Off"'),
        ("null", '"null"'),
        ("1", '"1"'),
        ("0x1f", '"0x1f"'),
        ("1e3", '"1e3"'),
        ("12:30", '"12:30"'),
        ("", '""'),
        ("- a", '"- a"'),
        ("<<", '"<<"'),
        ("~", '"~"'),
        ("a: b", '"a: b"'),
        ("*", '"*"'),
        (True, "true"),
        (None, "null"),
        (8, "8"),
        (0.5, "0.5"),
        ("tab\there", '"tab\\there"'),
        ("nel\x85", '"nel\\u0085"'),
        ("\ufeff", '"\\ufeff"'),
    ],
)
def test_scalars(value: Any, text: str) -> None:
    assert emit.scalar(value) == text


def test_colons_are_plain_in_a_block_only() -> None:
    assert emit.scalar("registry.example/a:v1", block=True) == "registry.example/a:v1"
    assert emit.scalar("registry.example/a:v1") == '"registry.example/a:v1"'
    assert emit.scalar("a:1", block=True) == '"a:1"'


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=12)
VALUES = st.recursive(
    st.one_of(
        TEXT, st.integers(-(2**40), 2**40), st.booleans(), st.none(), st.sampled_from(["on", "0777", "1_000", ".inf"])
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXT, inner, max_size=3)),
    max_leaves=8,
)


@given(st.dictionaries(TEXT, VALUES, min_size=1, max_size=3), st.sampled_from([2, 3, 4]), st.sampled_from([0, 2]))
def test_a_document_is_read_as_it_was_meant(body: dict[str, Any], step: int, dash: int) -> None:
    text = emit.document(body, Style(step=step, dash=dash))
    [document], _ = parse_stream(text)
    assert document.value == body
    assert yaml.safe_load(text) == body


@given(VALUES)
def test_flow_and_json_are_read_as_meant(value: Any) -> None:
    assert json.loads(emit.flow(value, Style(json=True))) == value
    assert json.loads(emit.pretty_json(value, 4, Style(json=True, multiline=True))) == value
    [document], _ = parse_stream(f"k: {emit.flow(value, Style())}\n")
    assert document.value == {"k": value}
