from __future__ import annotations

import pytest

from stallscope.collective.links import DEFAULT_PROFILE
from stallscope.collective.profile import parse_bytes, parse_delay, parse_rate, profile_from_body
from stallscope.errors import UsageError


def test_units_are_those_of_tc():
    assert parse_rate("40Gbit") == 5e9
    assert parse_rate("1 mbit") == 125_000
    assert parse_delay("60us") == pytest.approx(60e-6)
    assert parse_bytes("14GB") == 14e9
    assert parse_bytes("2GiB") == 2 * 1024**3
    assert parse_rate("fast") is None


def test_a_class_left_out_keeps_its_cited_default():
    profile = profile_from_body({"name": "mine", "links": {"cross-zone": {"rate": "5Gbit", "loss": "0.01%"}}})
    assert profile.cross_zone.bandwidth == 625e6
    assert profile.cross_zone.loss == pytest.approx(1e-4)
    assert profile.zone == DEFAULT_PROFILE.zone


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ([], "mapping"),
        ({"links": {"rack": {}}}, "rack"),
        ({"links": {"zone": {"speed": "1Gbit"}}}, "speed"),
        ({"links": {"zone": {"rate": "fast"}}}, "fast"),
        ({"links": {"zone": {"rate": "0Gbit"}}}, "0Gbit"),
        ({"links": {"zone": {"mtu": 12}}}, "12"),
        ({"links": {"zone": 3}}, "mapping"),
    ],
)
def test_a_bad_profile_names_the_part(body, word):
    with pytest.raises(UsageError, match=word):
        profile_from_body(body, where="p.yaml")
